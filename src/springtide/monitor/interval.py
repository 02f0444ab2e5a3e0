"""From what a backend counted over an interval to what an observation says: rates, utilisation, backlog in seconds.

Every backend fills `OperatorCounts` from its own sources and leaves the arithmetic to this module, so that the words
of an observation mean the same everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from springtide.model.observation import FloatArray, OperatorObservation, ShardLoads


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OperatorCounts:
    """One operator's counters over one interval.

    `age_s` sums, over the rows that left it, how old each was; `busy_s` is the core time its rows took.
    """

    name: str
    offered_rows: float
    processed_rows: float
    emitted_rows: float
    dropped_rows: float
    backlog_rows: float
    age_s: float
    busy_s: float
    nominal_service_time_s: float
    replica_busy_s: FloatArray
    shards: ShardLoads


def operator_observation(counts: OperatorCounts, interval_s: float) -> OperatorObservation:
    replicas = len(counts.replica_busy_s)
    processed = max(0.0, counts.processed_rows)
    service_time_s = counts.busy_s / processed if processed > 0 else counts.nominal_service_time_s
    replica_utilisation = counts.replica_busy_s / interval_s
    return OperatorObservation(
        name=counts.name,
        offered_rows=max(0.0, counts.offered_rows),
        processed_rows=processed,
        emitted_rows=max(0.0, counts.emitted_rows),
        dropped_rows=max(0.0, counts.dropped_rows),
        backlog_rows=max(0.0, counts.backlog_rows),
        backlog_s=max(0.0, counts.backlog_rows) * service_time_s / replicas,
        service_time_s=service_time_s,
        utilisation=sum(replica_utilisation.tolist()) / replicas,
        latency_s=counts.age_s / processed if processed > 0 else 0.0,
        replica_utilisation=replica_utilisation,
        shards=counts.shards,
    )
