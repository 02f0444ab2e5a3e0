"""What a micro-batch costs: estimates with their errors, and how long a batch takes by them.

A batch of n rows runs as r tasks that serve S shards, on h slots. It takes

    duration = driver + skew (batch + task r + shard S + row n) / h        seconds

| symbol | field | meaning |
|---|---|---|
| A | driver_s | time of a batch in which none of its tasks runs: planning, scheduling, committing |
| E | batch_s | slot time of a batch whatever its size: the tasks that read its input and feed the replicas |
| B | task_s | slot time of one more task |
| C | shard_s | slot time of one more shard: its state is opened and committed, rows or none |
| D | row_s | slot time of one more row |
| k | skew | the busiest slot's time over the mean slot's: the batch waits for it |
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from springtide.errors import require
from springtide.model.application import Application


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value and its standard error. What has not been told apart from something else has a large error."""

    value: float
    error: float

    def __post_init__(self) -> None:
        require(math.isfinite(self.value) and self.value >= 0, f"an estimated cost must be 0 or more, not {self.value}")
        require(self.error >= 0, f"the error of an estimate must be 0 or more, not {self.error}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCosts:
    """What the batches of one operator cost, as far as they have shown it."""

    driver_s: Estimate
    batch_s: Estimate
    task_s: Estimate
    shard_s: Estimate
    row_s: Estimate
    skew: Estimate
    batches: float  # that the estimates rest on, the older ones counting less

    def fixed_s(self, *, tasks: float, shards: float) -> float:
        """Slot time of a batch without rows."""
        return self.batch_s.value + self.task_s.value * tasks + self.shard_s.value * shards

    def duration_s(self, *, rows: float, tasks: float, shards: float, slots: float) -> float:
        """How long a batch of so many rows takes."""
        work_s = self.fixed_s(tasks=tasks, shards=shards) + self.row_s.value * rows
        return self.driver_s.value + self.skew.value * work_s / slots

    def rows_within(self, duration_s: float, *, tasks: float, shards: float, slots: float) -> float:
        """The rows of a batch that takes so long, or longer if it would not be worth its fixed costs: rows take three
        fifths of it at least. Infinite where rows cost nothing."""
        if self.row_s.value <= 0:
            return math.inf
        empty_s = self.duration_s(rows=0.0, tasks=tasks, shards=shards, slots=slots)
        for_rows_s = max(duration_s - empty_s, 1.5 * empty_s)
        return for_rows_s * slots / (self.skew.value * self.row_s.value)


def longest_batches_s(application: Application) -> dict[str, float]:
    """The longest batch of each operator with which the objective is kept.

    A row waits for the next batch, for up to one batch, and then for that batch. So the objective's percentile q of its latency
    is about (1 + q) batches, for each of the operators that it passes one after the other; they share the objective evenly.
    """
    before: dict[str, int] = {}
    for operator in application.operators:  # in topological order
        before[operator.name] = 1 + max((before.get(e.upstream, 0) for e in application.inputs(operator.name)), default=0)
    after: dict[str, int] = {}
    for operator in reversed(application.operators):
        after[operator.name] = max((1 + after[e.downstream] for e in application.outputs(operator.name)), default=0)
    slo = application.slo
    return {name: slo.latency_s / ((1 + slo.percentile) * (before[name] + after[name])) for name in before}
