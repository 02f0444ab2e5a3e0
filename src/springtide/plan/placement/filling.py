"""Replicas for all the cores there are: what a policy needs that decides on hosts only.

Each operator gets its part of the cores by demand, at least one replica and at most what it can use, rounded by largest
remainder. Replicas that are there and serve what comes are left alone: a slot that is dealt anew moves shards.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from springtide.model.allocation import Allocation
from springtide.model.observation import FloatArray
from springtide.model.protocols import View
from springtide.plan.placement.counts import demand_cores, service_time_s

_WORTHWHILE = 0.02  # how much more must be served for slots to be dealt anew: two operators must not trade one for ever
_NEXT_TO_NOTHING = 1e-9  # of the largest operator's demand
_ROUNDING = 1e-9


def fill(view: View, hosts: int) -> dict[str, int]:
    """How many replicas each operator gets when there are so many hosts.

    Operators' parts are even while nothing is known of their demand. There are fewer replicas than cores when the
    operators that have something to do can use no more, and more when there are more operators than cores.
    """
    return _by_name(view, rounded(_shares_of(view, hosts)))


def rounded(shares: FloatArray) -> NDArray[np.int64]:
    """Whole numbers with the same sum, by largest remainder.

    >>> rounded(np.array([1.5, 2.7, 3.8]))
    array([1, 3, 4])
    """
    counts = np.floor(shares + _ROUNDING).astype(np.int64)
    left = round(float(shares.sum())) - int(counts.sum())
    counts[np.argsort(counts - shares, kind="stable")[:left]] += 1
    return counts


def shared_out(weights: FloatArray, limits: NDArray[np.int64], slots: int) -> FloatArray:
    """Parts in proportion to the weights, each between 1 and its limit, that add up to `slots` if they can.

    >>> shared_out(np.array([3.0, 1.0]), np.array([8, 8]), 8), shared_out(np.array([3.0, 1.0]), np.array([4, 8]), 8)
    (array([6., 2.]), array([4., 4.]))
    """
    weights = np.where(weights > _NEXT_TO_NOTHING * weights.max(), weights / weights.max(), 0.0)
    busy, caps = weights[weights > 0], limits[weights > 0]
    # Each part is clip(level * weight, 1, limit). Their sum grows with the level from one bend to the next: a part begins to
    # grow at 1 and stops at its limit.
    bends = np.concatenate([1.0 / busy, caps / busy])
    order = np.argsort(bends, kind="stable")
    slopes = np.cumsum(np.concatenate([busy, -busy])[order])
    sums = len(weights) + np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(bends[order]))])
    level = np.interp(min(float(slots), sums[-1]), sums, bends[order])
    parts: FloatArray = np.clip(level * weights, 1.0, limits)
    return parts


def refill(view: View) -> dict[str, int] | None:
    """Replicas for the hosts there are, or None while those there are serve as much.

    As with `fill`, but an operator that would still be short has its part rounded up, so that no core is idle while rows
    wait: its replicas then share cores with others.
    """
    work = work_cores(view)
    now = {name: placed.replicas for name, placed in view.requested.operators.items()}
    if all(cores <= now[name] for name, cores in work.items()):
        return None
    hosts = len(view.requested.hosts)
    shares = _shares_of(view, hosts)
    filled = _by_name(view, rounded(shares))
    for name, most in _by_name(view, np.ceil(shares - _ROUNDING).astype(np.int64)).items():
        if work[name] > filled[name]:
            filled[name] = most
    cores = hosts * view.pool.host.cores
    return filled if _served(work, filled, cores) > _served(work, now, cores) * (1 + _WORTHWHILE) else None


def work_cores(view: View) -> dict[str, float]:
    """How many cores each operator could keep busy: with what it is offered, and with what waits, within an interval."""
    work = demand_cores(view)
    for operator in view.application.operators:
        seen = view.observation.operators.get(operator.name)
        if seen is not None:
            work[operator.name] += seen.backlog_rows * service_time_s(view, operator) / view.observation.interval_s
    return work


def _shares_of(view: View, hosts: int) -> FloatArray:
    limits = np.array([o.replica_limit for o in view.application.operators])
    demand = np.array(list(demand_cores(view).values()))
    return shared_out(demand if demand.sum() > 0 else np.ones(len(limits)), limits, hosts * view.pool.host.cores)


def _by_name(view: View, counts: NDArray[np.int64]) -> dict[str, int]:
    return dict(zip((o.name for o in view.application.operators), counts.tolist(), strict=True))


def _served(work: Mapping[str, float], replicas: Mapping[str, int], cores: int) -> float:
    return min(float(cores), sum(min(wanted, replicas[name]) for name, wanted in work.items()))


def busiest_utilisation(view: View, planned: Allocation) -> float | None:
    """Of the busiest host: as measured while nothing changes, else with each replica's even part of its operator's demand."""
    if planned is view.requested:
        return max((h.utilisation for h in view.observation.running_hosts), default=None)
    busy = dict.fromkeys(planned.hosts, 0.0)
    cores = demand_cores(view)
    for name, placed in planned.operators.items():
        each = min(1.0, cores[name] / placed.replicas)
        for host in placed.replica_hosts:
            busy[host] += each
    return min(1.0, max(busy.values()) / view.pool.host.cores)
