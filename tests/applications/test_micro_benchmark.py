"""The micro-benchmark without Spark: what a tuple costs, what a bucket keeps, and that both ways to the checksum agree."""

from __future__ import annotations

import pickle
import random
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.applications.micro_benchmark.application import MicroBenchmark
from springtide.applications.micro_benchmark.calculator import Calculator
from springtide.applications.micro_benchmark.checksum import folded, summed, tuple_value
from springtide.applications.micro_benchmark.spending import spend
from springtide.errors import InvalidValue


class OneState:
    """Spark's state of one group."""

    def __init__(self) -> None:
        self.kept: tuple[Any, ...] | None = None

    @property
    def exists(self) -> bool:
        return self.kept is not None

    @property
    def get(self) -> tuple[Any, ...]:
        assert self.kept is not None
        return self.kept

    def update(self, kept: tuple[Any, ...]) -> None:
        self.kept = kept


def calculator(**how: Any) -> Calculator:
    return Calculator(**{"cost_us_per_tuple": 0.0, "waits": False, "buckets": 4, "state_bytes_per_bucket": 0, **how})


def tuples_of(keys: list[int]) -> pd.DataFrame:
    rows = range(len(keys))
    columns = {"row": rows, "key": keys, "value": [3 * row for row in rows], "payload": [f"p{row}" for row in rows]}
    return pd.DataFrame(columns).astype({"row": "int64", "key": "int64", "value": "int64"})


def run(state: OneState, batches: list[pd.DataFrame], **how: Any) -> dict[int, tuple[int, int]]:
    """What is said last of every key."""
    last: dict[int, tuple[int, int]] = {}
    for batch in batches:
        parts: Iterator[pd.DataFrame] = iter([batch.iloc[::2], batch.iloc[1::2]])
        for said in calculator(**how).taken((0,), parts, state):  # type: ignore[arg-type]
            last.update({row.key: (row.tuples, row.checksum) for row in said.itertuples()})
    return last


def right(tuples: pd.DataFrame) -> dict[int, tuple[int, int]]:
    return {row.key: (row.tuples, row.checksum) for row in summed(tuples).itertuples()}


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.lists(st.integers(1, 59), max_size=4), st.randoms())
def test_sums_are_the_same_however_tuples_fall_into_batches(keys: list[int], cuts: list[int], chance: random.Random) -> None:
    tuples = tuples_of(keys)
    edges = [0, *sorted({cut for cut in cuts if cut < len(keys)}), len(keys)]
    batches = [tuples.iloc[a:b] for a, b in pairwise(edges)]
    shuffled = [batch.iloc[chance.sample(range(len(batch)), len(batch))] for batch in batches]
    assert run(OneState(), shuffled) == right(tuples)


def test_a_tuple_that_is_lost_or_comes_twice_or_too_early_is_noticed() -> None:
    whole = tuples_of([1, 1, 1, 2])
    expected = right(whole)
    assert right(whole.drop(index=1))[1] != expected[1]
    assert right(pd.concat([whole, whole.iloc[[1]]]))[1] != expected[1]
    swapped = whole.assign(row=[1, 0, 2, 3])
    assert right(swapped)[1] != expected[1]
    assert right(swapped)[2] == expected[2]


def test_the_checksum_of_one_key_by_hand() -> None:
    values = [tuple_value(3 * row, f"p{row}") for row in range(3)]
    assert right(tuples_of([9, 9, 9])) == {9: (3, (values[0] * 961 + values[1] * 31 + values[2]) % 2**63)}


def test_sums_stay_exact_where_numbers_overflow() -> None:
    tuples = tuples_of([4] * 500)
    assert right(tuples)[4] == (500, folded(0, (tuple_value(3 * row, f"p{row}") for row in range(500))))


def test_the_state_has_the_size_that_is_asked_for_and_does_not_grow_with_the_stream() -> None:
    state = OneState()
    for first in range(0, 1000, 100):
        run(state, [tuples_of([first % 7] * 100)], state_bytes_per_bucket=4096)
        sums, ballast = state.get
        assert len(sums) + len(ballast) == 4096
    assert set(pickle.loads(state.get[0])) == {first % 7 for first in range(0, 1000, 100)}


def test_ballast_gives_way_to_sums_that_are_larger_than_the_size_asked_for() -> None:
    state = OneState()
    run(state, [tuples_of(list(range(100)))], state_bytes_per_bucket=64)
    assert state.get[1] == b""


def test_a_cost_is_processor_time_unless_it_is_to_be_waited_for() -> None:
    before_s = time.thread_time()
    spend(0.05)
    spent_s = time.thread_time() - before_s
    assert 0.05 <= spent_s < 0.06

    before_s, began_s = time.thread_time(), time.monotonic()
    spend(0.05, waits=True)
    assert time.thread_time() - before_s < 0.02
    assert time.monotonic() - began_s >= 0.05


def test_every_tuple_of_a_batch_is_paid_for() -> None:
    before_s = time.thread_time()
    run(OneState(), [tuples_of([1] * 40)], cost_us_per_tuple=1000.0)
    assert time.thread_time() - before_s >= 0.04


def test_the_state_of_a_shard_is_shared_out_to_its_buckets() -> None:
    assert MicroBenchmark().calculator().state_bytes_per_bucket == 4096  # 32 KiB in 64 / 8 buckets
    assert MicroBenchmark(state_kb_per_shard=0, buckets=16).calculator().state_bytes_per_bucket == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cost_us_per_tuple": -1.0}, "micro-benchmark: cost_us_per_tuple must be 0 or more, not -1.0"),
        ({"buckets": 0}, "micro-benchmark: buckets must be 1 or more, not 0"),
        ({"keys": 0}, "keys must be at least 1"),
        ({"shards": 0}, "shards must be 1 or more"),
    ],
)
def test_a_mistake_in_the_options_is_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        MicroBenchmark(**options)
