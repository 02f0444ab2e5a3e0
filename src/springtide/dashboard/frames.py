"""One interval as a picture: what each operator had to do, which host serves which shard, and which shards have moved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from springtide.journal.records import AllocationRecord, ObservationRecord, OperatorLoadRecord, PlacementRecord

Placed = dict[str, PlacementRecord]


def frame(seen: ObservationRecord, before: AllocationRecord | None) -> dict[str, Any]:
    """An observation, its allocations filled in, beside the allocation of the interval before."""
    assert seen.observed is not None
    assert seen.requested is not None
    seconds, placed = seen.end_s - seen.start_s, by_operator(seen.observed)
    return {
        "interval": seen.interval,
        "time_s": seen.time_s,
        "sources": [{"name": s.name, "rows_per_s": _rate(s.rows, seconds)} for s in seen.sources],
        "operators": [_operator(o, placed.get(o.name), seconds) for o in seen.operators],
        "hosts": [
            {"name": h.name, "state": h.state, "cores": h.cores, "utilisation": h.utilisation, "replicas": h.replicas}
            for h in seen.hosts
        ],
        "moves": [] if before is None else list(moves(before, seen.observed)),
        "pending": list(moves(seen.observed, seen.requested)),
        "events": list(seen.events),
    }


def moves(before: AllocationRecord, after: AllocationRecord) -> Iterator[dict[str, Any]]:
    """The shards that another host serves."""
    if before is after:
        return
    placed = by_operator(before)
    for operator in after.operators:
        was = placed.get(operator.operator)
        if was is None or was == operator:
            continue
        for shard, (old, new) in enumerate(zip(shard_hosts(was), shard_hosts(operator), strict=False)):
            if old != new:
                yield {"operator": operator.operator, "shard": shard, "from": old, "to": new}


def shard_hosts(placed: PlacementRecord) -> list[str]:
    """The host of each shard; none for an operator without shards."""
    return [placed.replica_hosts[replica] for replica in placed.shard_replicas]


def by_operator(allocation: AllocationRecord) -> Placed:
    return {placed.operator: placed for placed in allocation.operators}


def _operator(load: OperatorLoadRecord, placed: PlacementRecord | None, seconds: float) -> dict[str, Any]:
    hosts = [] if placed is None else shard_hosts(placed)
    return {
        "name": load.name,
        "offered_per_s": _rate(load.offered_rows, seconds),
        "processed_per_s": _rate(load.processed_rows, seconds),
        "backlog_rows": load.backlog_rows,
        "replicas": load.replicas,
        "utilisation": load.utilisation,
        "latency_s": load.latency_s,
        "replica_hosts": [] if placed is None else list(placed.replica_hosts),
        "shard_hosts": hosts,
        "shard_rows_per_s": [_rate(rows, seconds) for rows in load.shards.rows] if load.shards and hosts else None,
    }


def _rate(rows: float | None, seconds: float) -> float | None:
    return None if rows is None else rows / seconds
