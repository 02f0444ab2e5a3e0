"""What the policies with Elasticutor's model say: what it came to, what was wanted and could not be, what to expect."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from springtide.model.allocation import Allocation
from springtide.model.decision import WhyNot
from springtide.model.observation import FloatArray
from springtide.model.protocols import View
from springtide.plan.executors.measuring import Executors, Team
from springtide.plan.sizing.jackson import Sizing

_NAMED = 3  # a reason that lists more hosts or operators than these is not read


def finding(sizing: Sizing, t_max_s: float) -> str:
    """The result of the model in a few words.

    >>> finding(Sizing(servers=(3, 2), sojourn_s=0.0123), 2.171)
    '5 cores for E[T] of 0.0123 s, at most 2.17 s'
    """
    cores = sum(sizing.servers)
    what = f"{cores} core{'s' if cores > 1 else ''}"
    if math.isinf(sizing.sojourn_s):
        return f"{what} are all there are, and too few"
    return f"{what} for E[T] of {sizing.sojourn_s:.3g} s, {'at most' if sizing.sojourn_s <= t_max_s else 'not'} {t_max_s:.3g} s"


def summary(before: Allocation, after: Allocation) -> str:
    """What changes, by hosts, replicas and routes, in a line that can be read however large the application is."""
    had, has = set(before.hosts), set(after.hosts)
    added = [host for host in after.hosts if host not in had]
    released = [host for host in before.hosts if host not in has]
    parts = [f"{verb} {_listed(hosts, 'hosts')}" for verb, hosts in (("add", added), ("release", released)) if hosts]
    counts, routes = [], []
    for name, placed in after.operators.items():
        was = before.operators[name]
        if placed.replicas != was.replicas:
            counts.append(f"{name} {was.replicas} -> {placed.replicas} replicas")
        elif placed is not was:
            routes.append(name)
    if counts:
        parts.append(_listed(counts, "operators", "; "))
    if routes:
        parts.append(f"re-route {_listed(routes, 'operators')}")
    return "; ".join(parts) or "change nothing"


def _listed(items: Sequence[str], what: str, between: str = ", ") -> str:
    """
    >>> _listed(["host-1", "host-2"], "hosts"), _listed(["a", "b", "c", "d", "e"], "operators")
    ('host-1, host-2', 'a, b, c and 2 more operators')
    """
    if len(items) <= _NAMED:
        return between.join(items)
    rest = len(items) - _NAMED
    return f"{between.join(items[:_NAMED])} and {rest} more {what if rest > 1 else what.removesuffix('s')}"


def refusals(who: str, view: View, executors: Executors, sizing: Sizing, t_max_s: float) -> list[WhyNot]:
    """What the model asked for and the pool or an operator does not allow."""
    found = []
    pool = view.pool
    cores = pool.max_hosts * pool.host.cores
    limits = f"the pool has no more than {cores} cores"
    stable = sum(executors.network.stable_servers)
    if stable > cores:
        busy = sum(executors.network.offered)
        found.append(WhyNot(who, f"a core for each of the {stable} replicas that {busy:.1f} busy cores make", limits))
    elif sizing.sojourn_s > t_max_s:
        why = limits if sum(sizing.servers) >= cores else "more cores would not help"
        found.append(WhyNot(who, f"E[T] of {t_max_s:.3g} s instead of {sizing.sojourn_s:.3g} s", why))
    names = [team.operator.name for team in executors.teams for _ in range(team.count)]
    for name in dict.fromkeys(names[j] for j in sizing.saturated):
        limit = view.application.operator(name).replica_limit
        load = sum(load for load, its_name in zip(executors.network.offered, names, strict=True) if its_name == name)
        found.append(WhyNot(who, f"enough cores for {name}", f"it may have {limit} replicas, and is offered {load:.1f} cores"))
    return found


def busiest_host(view: View, executors: Executors, planned: Allocation) -> float | None:
    """The highest utilisation of a host: as measured while nothing changes, else as the demand adds up where it will be."""
    if planned is view.requested:
        return max((h.utilisation for h in view.observation.running_hosts), default=None)
    position = {host: i for i, host in enumerate(planned.hosts)}
    at = [position[host] for team in executors.teams for host in planned.operators[team.operator.name].replica_hosts]
    loads = [np.minimum(1.0, _shares(team, planned) * team.busy_cores) for team in executors.teams]
    busy = np.bincount(at, weights=np.concatenate(loads))
    return min(1.0, float(busy.max()) / view.pool.host.cores)


def _shares(team: Team, planned: Allocation) -> FloatArray:
    """The share of the operator's rows that each replica will get."""
    placed = planned.operators[team.operator.name]
    if placed is team.placed:
        return team.replica_loads
    if not placed.shard_replicas:
        return np.full(placed.replicas, 1.0 / placed.replicas)
    return np.bincount(placed.shard_replicas, weights=team.weights, minlength=placed.replicas).astype(np.float64)
