"""From what a backend counted over an interval to what an observation says: rates, utilisation, backlog in seconds.

Every backend fills `IntervalCounts` from its own sources and leaves the arithmetic to this module, so that the words of an
observation mean the same everywhere. Counts are columns, one element per operator, because an application may have a
thousand of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from springtide.model.observation import FloatArray, OperatorObservation, ShardLoads


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IntervalCounts:
    """All operators' counters over one interval, in the order of `names`.

    `age_s` sums, over the rows that left an operator, how old each was; `busy_s` is the core time its rows took.
    Operator i's replicas are `replica_first[i]` to `replica_after[i]` in `replica_busy_s`.
    """

    names: Sequence[str]
    offered_rows: FloatArray
    processed_rows: FloatArray
    emitted_rows: FloatArray
    dropped_rows: FloatArray
    backlog_rows: FloatArray
    age_s: FloatArray
    busy_s: FloatArray
    nominal_service_time_s: FloatArray
    replica_busy_s: FloatArray
    replica_first: NDArray[np.int64]
    replica_after: NDArray[np.int64]
    shards: Sequence[ShardLoads]


def operator_observations(counts: IntervalCounts, interval_s: float) -> dict[str, OperatorObservation]:
    """Every operator's observation, by name."""
    replicas = counts.replica_after - counts.replica_first
    processed = np.maximum(0.0, counts.processed_rows)
    backlog = np.maximum(0.0, counts.backlog_rows)
    service_time_s = np.divide(counts.busy_s, processed, out=counts.nominal_service_time_s.copy(), where=processed > 0)
    latency_s = np.divide(counts.age_s, processed, out=np.zeros_like(processed), where=processed > 0)
    replica_utilisation = counts.replica_busy_s / interval_s
    replica_utilisation.setflags(write=False)
    columns = (
        np.maximum(0.0, counts.offered_rows),
        processed,
        np.maximum(0.0, counts.emitted_rows),
        np.maximum(0.0, counts.dropped_rows),
        backlog,
        backlog * service_time_s / replicas,
        service_time_s,
        _sums(replica_utilisation, counts.replica_first, counts.replica_after) / replicas,
        latency_s,
        counts.replica_first,
        counts.replica_after,
    )
    by_row = zip(counts.names, *(column.tolist() for column in columns), counts.shards, strict=True)
    return {
        name: OperatorObservation(
            name=name,
            offered_rows=offered,
            processed_rows=done,
            emitted_rows=emitted,
            dropped_rows=dropped,
            backlog_rows=waiting,
            backlog_s=waiting_s,
            service_time_s=service_s,
            utilisation=load,
            latency_s=age_s,
            replica_utilisation=replica_utilisation[first:after],
            shards=shards,
        )
        for name, offered, done, emitted, dropped, waiting, waiting_s, service_s, load, age_s, first, after, shards in by_row
    }


def _sums(values: FloatArray, first: NDArray[np.int64], after: NDArray[np.int64]) -> FloatArray:
    """The sum of `values[first[i]:after[i]]` for every i; no range is empty."""
    bounds = np.column_stack([first, after]).ravel()
    return np.add.reduceat(np.append(values, 0.0), bounds)[::2]
