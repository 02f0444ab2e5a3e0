"""More replicas than cores, so that operators share the cores: none is held up by whole numbers, or by a burst of its own,
while cores are idle.

A replica costs nothing, and the cores of a host cost the same whether they are used or not. With one core for each replica an
operator that needs 1.3 cores gets one or two of them; with about twice as many replicas as cores each takes what it needs.

In batches a replica is a task, which costs something, and takes a slot only while it runs: there every operator has as many as
there are slots, and no more.
"""

from __future__ import annotations

import math

import numpy as np

from springtide.model.application import Operator
from springtide.model.observation import HostState
from springtide.model.protocols import View
from springtide.plan.placement.counts import demand_cores, predict_skew, shard_weights

_REPLICAS_PER_CORE = 2.0
_SATURATED = 0.97
_UNEVEN = 1.2
_TOO_FEW = 0.6  # of its part: an operator with fewer replicas may be held up while cores are idle


def sharing_replicas(view: View, hosts: int) -> dict[str, int]:
    """Each operator's part of two replicas for every core of so many hosts, rounded up; those it has without any demand.

    In batches, one for every core.
    """
    if view.observation.in_batches:
        return {o.name: min(hosts * view.pool.host.cores, o.replica_limit) for o in view.application.operators}
    cores = demand_cores(view)
    total = sum(cores.values())
    if total <= 0:
        return {name: placed.replicas for name, placed in view.requested.operators.items()}
    slots = _REPLICAS_PER_CORE * hosts * view.pool.host.cores
    return {
        o.name: min(max(1, math.ceil(slots * cores[o.name] / total - 1e-9)), o.replica_limit)
        for o in view.application.operators
    }


def short_of_replicas(view: View, hosts: int) -> list[str]:
    """Operators with much fewer replicas than their part of so many hosts."""
    wanted = sharing_replicas(view, hosts)
    return [name for name, placed in view.requested.operators.items() if placed.replicas < _TOO_FEW * wanted[name]]


def held_up_operators(view: View) -> list[str]:
    """Operators with a replica that can do no more, or of which more is asked than it can do, while the hosts could."""
    hosts = view.observation.hosts.values()
    if any(h.state is not HostState.RUNNING or h.utilisation > _SATURATED for h in hosts):
        return []
    cores = demand_cores(view)
    return [o.name for o in view.application.operators if _most_asked_of_replica(view, o, cores[o.name]) > _SATURATED]


def _most_asked_of_replica(view: View, operator: Operator, cores: float) -> float:
    """The part of its time that the busiest replica was busy, or would be if the demand came as rows came to the shards now.

    Keys that change in the middle of an interval are seen at once in what came, but make nobody busy for all of it.
    """
    seen = view.observation.operators.get(operator.name)
    if seen is None or not seen.replica_utilisation.size:
        return 0.0
    busy = float(seen.replica_utilisation.max())
    placed = view.requested.operators[operator.name]
    if not operator.keyed:
        return busy
    asked = cores * np.bincount(placed.shard_replicas, weights=shard_weights(view, operator, placed))
    return max(busy, float(asked.max()))


def uneven_operators(view: View) -> list[str]:
    """Operators whose batches wait for a replica that has much more than it would have with shards dealt out evenly."""
    if not view.observation.in_batches:
        return []
    found = []
    for operator in view.application.operators:
        placed = view.requested.operators[operator.name]
        if operator.keyed and placed.replicas > 1:
            weights = shard_weights(view, operator, placed)
            busiest = float(np.bincount(placed.shard_replicas, weights=weights).max()) * placed.replicas
            if busiest > _UNEVEN * predict_skew(weights, placed.replicas) * float(weights.sum()):
                found.append(operator.name)
    return found
