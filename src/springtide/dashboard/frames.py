"""One interval as a picture: what each operator had to do, which host serves which shard, and which shards have moved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from springtide.journal.records import AllocationRecord, ObservationRecord, OperatorLoadRecord, PlacementRecord

Placed = dict[str, PlacementRecord]


RECENT_S = 15.0  # what operators and shards had to do is told of so long: of many live intervals, no batch ends in one


def frame(recent: Sequence[ObservationRecord], before: AllocationRecord | None) -> dict[str, Any]:
    """The last of some observations, its allocations filled in, beside the allocation of the interval before.

    Rates of operators and shards are means over all of them.
    """
    seen = recent[-1]
    assert seen.observed is not None
    assert seen.requested is not None
    seconds, placed = seen.end_s - seen.start_s, by_operator(seen.observed)
    over_s = sum(one.end_s - one.start_s for one in recent)
    loads = {o.name: [load for one in recent for load in one.operators if load.name == o.name] for o in seen.operators}
    return {
        "interval": seen.interval,
        "time_s": seen.time_s,
        "sources": [{"name": s.name, "rows_per_s": _rate(s.rows, seconds)} for s in seen.sources],
        "rates_over_s": over_s,
        "operators": [_operator(loads[o.name], placed.get(o.name), over_s) for o in seen.operators],
        "hosts": [
            {
                "name": h.name,
                "state": h.state,
                "cores": h.cores,
                "utilisation": h.utilisation,
                "busy_share": h.busy_share,
                "replicas": h.replicas,
            }
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


def _operator(loads: Sequence[OperatorLoadRecord], placed: PlacementRecord | None, over_s: float) -> dict[str, Any]:
    load, hosts = loads[-1], [] if placed is None else shard_hosts(placed)
    return {
        "name": load.name,
        "offered_per_s": _rate(_sum(one.offered_rows for one in loads), over_s),
        "processed_per_s": _rate(_sum(one.processed_rows for one in loads), over_s),
        "backlog_rows": load.backlog_rows,
        "replicas": load.replicas,
        "utilisation": load.utilisation,
        "busy_share": load.busy_share,
        "costs": msgspec.to_builtins(load.costs),
        "trigger_s": load.trigger_s,
        "latency_s": load.latency_s,
        "replica_hosts": [] if placed is None else list(placed.replica_hosts),
        "shard_hosts": hosts,
        "shard_rows_per_s": _shard_rates(loads, over_s) if load.shards and hosts else None,
    }


def _shard_rates(loads: Sequence[OperatorLoadRecord], over_s: float) -> list[float | None]:
    by_shard = zip(*(load.shards.rows for load in loads if load.shards), strict=True)
    return [_rate(_sum(rows), over_s) for rows in by_shard]


def _sum(rows: Iterable[float | None]) -> float | None:
    """Of what is known; unknown if nothing is."""
    known = [one for one in rows if one is not None]
    return sum(known) if known else None


def _rate(rows: float | None, seconds: float) -> float | None:
    return None if rows is None else rows / seconds
