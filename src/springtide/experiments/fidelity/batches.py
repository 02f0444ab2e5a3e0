"""Batches of a live run, as what they cost is worked out from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from springtide.backends.spark.jvm.status import Task
from springtide.backends.spark.query import BatchRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One replica's part in a batch: its shards (0 if the operator has none), its rows, and what its task took."""

    host: str
    shards: int
    rows: float
    run_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBatch:
    """`began_s` and `ended_s` are when its function was called and returned, by the clock."""

    operator: str
    began_s: float
    ended_s: float
    rows: float
    emitted: float
    moved_shards: int
    parts: tuple[Part, ...]


@dataclass(slots=True)
class Batches:
    """Everything that a backend tells of batches, by operator, in their order."""

    by_operator: dict[str, list[MeasuredBatch]] = field(default_factory=dict)

    def note(self, operator: str, record: BatchRecord, tasks: Sequence[Task]) -> None:
        batch = MeasuredBatch(
            operator=operator,
            began_s=record.started_s,
            ended_s=record.finished_s,
            rows=record.rows_in,
            emitted=record.rows_out,
            moved_shards=record.moved_shards,
            parts=_parts(record, [task for task in tasks if task.last_stage]),
        )
        self.by_operator.setdefault(operator, []).append(batch)


def _parts(record: BatchRecord, tasks: Sequence[Task]) -> tuple[Part, ...]:
    groups = record.routing.groups
    known = [task for task in tasks if task.index < len(groups)]
    shares = None
    if record.shard_bytes is not None and record.shard_bytes.sum() > 0:
        shares = record.shard_bytes / record.shard_bytes.sum()
    found = []
    for task in known:
        group = list(groups[task.index])
        share = float(np.sum(shares[group])) if shares is not None and group else 1 / len(known)
        found.append(Part(host=task.executor, shards=len(group), rows=record.rows_in * share, run_s=task.run_s))
    return tuple(found)
