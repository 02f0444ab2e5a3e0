"""From what a backend counted over an interval to what an observation says: rates, utilisation, backlog in seconds.

Every backend fills `IntervalCounts` from its own sources and leaves the arithmetic to this module, so that the words of an
observation mean the same everywhere. Counts are columns, one element per operator, because an application may have a
thousand of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from springtide.model.batch import BatchCosts
from springtide.model.observation import FloatArray, OperatorObservation, ShardLoads
from springtide.monitor.capacity import OperatorBatches

_LEAST_SERVICE_TIME_S = 1e-9  # what is divided by


@dataclass(frozen=True, slots=True)
class TriggerInterval:
    """How often batches start at most, and between what it can be set."""

    seconds: float = 0.0
    bounds_s: tuple[float, float] = (0.0, math.inf)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IntervalCounts:
    """All operators' counters over one interval, in the order of `names`.

    `age_s` sums, over the rows that left an operator, how old each was; `service_time_s` is the core time of one row more.
    Operator i's replicas are `replica_first[i]` to `replica_after[i]` in `replica_busy_s`. `batches` has one element for each
    operator where rows are processed in batches, and none where they are processed one by one; `triggers` likewise has the
    trigger interval of each that is in force.
    """

    names: Sequence[str]
    offered_rows: FloatArray
    processed_rows: FloatArray
    emitted_rows: FloatArray
    dropped_rows: FloatArray
    backlog_rows: FloatArray
    age_s: FloatArray
    replica_busy_s: FloatArray
    replica_first: NDArray[np.int64]
    replica_after: NDArray[np.int64]
    shards: Sequence[ShardLoads]
    service_time_s: FloatArray
    batches: Sequence[OperatorBatches] = ()
    triggers: Sequence[TriggerInterval] = ()


def operator_observations(counts: IntervalCounts, interval_s: float) -> dict[str, OperatorObservation]:
    """Every operator's observation, by name."""
    replicas = counts.replica_after - counts.replica_first
    processed = np.maximum(0.0, counts.processed_rows)
    backlog = np.maximum(0.0, counts.backlog_rows)
    latency_s = np.divide(counts.age_s, processed, out=np.zeros_like(processed), where=processed > 0)
    replica_busy_share = counts.replica_busy_s / interval_s
    service_time_s = np.maximum(_LEAST_SERVICE_TIME_S, counts.service_time_s)
    replica_utilisation = replica_busy_share
    if counts.batches:
        replica_utilisation = np.zeros_like(replica_busy_share)
        for its, first, after in zip(counts.batches, counts.replica_first, counts.replica_after, strict=True):
            replica_utilisation[first:after] = its.replica_utilisation(interval_s)
    replica_utilisation.setflags(write=False)
    columns = {
        "offered_rows": np.maximum(0.0, counts.offered_rows),
        "processed_rows": processed,
        "emitted_rows": np.maximum(0.0, counts.emitted_rows),
        "dropped_rows": np.maximum(0.0, counts.dropped_rows),
        "backlog_rows": backlog,
        "backlog_s": backlog * service_time_s / replicas,
        "service_time_s": service_time_s,
        "utilisation": _sums(replica_utilisation, counts.replica_first, counts.replica_after) / replicas,
        "busy_share": _sums(replica_busy_share, counts.replica_first, counts.replica_after) / replicas,
        "latency_s": latency_s,
    }
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    ranges = zip(counts.replica_first.tolist(), counts.replica_after.tolist(), strict=True)
    costs: Sequence[BatchCosts | None] = [its.costs for its in counts.batches] or [None] * len(counts.names)
    triggers = counts.triggers or [TriggerInterval()] * len(counts.names)
    return {
        name: OperatorObservation(
            name=name,
            **dict(zip(columns, row, strict=True)),
            replica_utilisation=replica_utilisation[first:after],
            shards=shards,
            costs=cost,
            trigger_s=trigger.seconds,
            trigger_bounds_s=trigger.bounds_s,
        )
        for name, row, (first, after), shards, cost, trigger in zip(
            counts.names, rows, ranges, counts.shards, costs, triggers, strict=True
        )
    }


def _sums(values: FloatArray, first: NDArray[np.int64], after: NDArray[np.int64]) -> FloatArray:
    """The sum of `values[first[i]:after[i]]` for every i; no range is empty."""
    bounds = np.column_stack([first, after]).ravel()
    return np.add.reduceat(np.append(values, 0.0), bounds)[::2]
