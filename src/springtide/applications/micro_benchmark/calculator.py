"""The calculator: keyed state that counts the tuples of every key and sums them up, at a cost for each tuple.

Spark calls a Python state function once per group and batch. With a group for each of 10,000 keys those calls would be
most of the work, so keys are gathered in buckets (`key` modulo `buckets`), and a bucket's state has all its keys. A
shard holds `buckets / shards` buckets on average; the state is filled up with ballast to the size that is asked for.

Tuples of a key are taken in the order of their rows. A tuple without a key or value is not counted.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from springtide.applications.micro_benchmark.checksum import folded, tuple_value
from springtide.applications.micro_benchmark.spending import spend

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState

SUMS = "key long, tuples long, checksum long"
STATE = "sums binary, ballast binary"

Sums = dict[int, tuple[int, int]]  # of every key, how many tuples there were, and their checksum


@dataclass(frozen=True, slots=True, kw_only=True)
class Calculator:
    """The operator: `calculated` is its function of a stream of tuples."""

    cost_us_per_tuple: float
    waits: bool
    buckets: int
    state_bytes_per_bucket: int

    def calculated(self, tuples: DataFrame) -> DataFrame:
        """What has changed: the sums of the keys that had tuples in the batch."""
        whole = tuples.where("key is not null and value is not null")
        bucketed = whole.selectExpr("row", "key", "value", "payload", f"pmod(key, {self.buckets}) as bucket")
        return bucketed.groupBy("bucket").applyInPandasWithState(self.taken, SUMS, STATE, "update", "NoTimeout")

    def taken(self, bucket: tuple[Any, ...], tuples: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:  # noqa: ARG002 - Spark names it
        """One bucket's tuples of a batch. They come in any order, and in parts of any size."""
        batch = pd.concat(list(tuples)).sort_values("row")
        sums: Sums = pickle.loads(state.get[0]) if state.exists else {}
        spend(len(batch) * self.cost_us_per_tuple / 1e6, waits=self.waits)
        changed = add(sums, batch)
        kept = pickle.dumps(sums)
        state.update((kept, bytes(max(0, self.state_bytes_per_bucket - len(kept)))))
        yield pd.DataFrame(changed, columns=["key", "tuples", "checksum"])


def add(sums: Sums, batch: pd.DataFrame) -> list[tuple[int, int, int]]:
    """Take the tuples in, and tell the sums that are new. `batch` is in the order of its rows.

    A loop over tuples: a bucket has few of each key in a batch, and groups of pandas cost more than their tuples.
    """
    changed = dict.fromkeys(batch["key"].tolist())
    for key, value, payload in zip(batch["key"].tolist(), batch["value"].tolist(), batch["payload"], strict=True):
        tuples, checksum = sums.get(key, (0, 0))
        sums[key] = (tuples + 1, folded(checksum, (tuple_value(value, payload),)))
    return [(key, *sums[key]) for key in changed]
