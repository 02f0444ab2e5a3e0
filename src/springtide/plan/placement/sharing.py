"""More replicas than cores, so that operators share the cores: none is held up by whole numbers, or by a burst of its own,
while cores are idle.

A replica costs nothing, and the cores of a host cost the same whether they are used or not. With one core for each replica an
operator that needs 1.3 cores gets one or two of them; with about twice as many replicas as cores each takes what it needs.

In batches a replica is a task, which costs something, and takes a slot only while it runs: there an operator has about twice
its part of the slots, and no more than there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from springtide.model.application import Operator
from springtide.model.batch import longest_batches_s
from springtide.model.observation import FloatArray, HostState
from springtide.model.protocols import View
from springtide.plan.placement.counts import demand_cores, predict_skew, service_time_s, shard_weights

_REPLICAS_PER_CORE = 2.0
_SATURATED = 0.97
_UNEVEN = 1.2
_TOO_FEW = 0.6  # of its part: an operator with fewer replicas may be held up while cores are idle


def sharing_replicas(view: View, hosts: int) -> dict[str, int]:
    """Each operator's part of two replicas for every core of so many hosts, rounded up; those it has without any demand."""
    if view.observation.in_batches:
        parts = BatchParts.of(view)
        return {o.name: int(parts.tasks(o, hosts * view.pool.host.cores)) for o in view.application.operators}
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


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchParts:
    """What each operator's batches take of the slots: `fixed` cores whatever comes, if batches are as long as the objective
    allows, and the part `rows` of the cores that are left for rows. So the parts are those of slots that are all needed, and
    do not change with the load."""

    fixed: Mapping[str, float]
    rows: Mapping[str, float]

    @classmethod
    def of(cls, view: View) -> BatchParts:
        longest_s = longest_batches_s(view.application)
        demand = demand_cores(view)
        if sum(demand.values()) <= 0:  # as rows that may come would spread
            demand = {
                o.name: service_time_s(view, o) * sum(gains.get(o.name, 0.0) for gains in view.gains.values())
                for o in view.application.operators
            }
        total = sum(demand.values())
        fixed = {}
        for operator in view.application.operators:
            seen = view.observation.operators.get(operator.name)
            costs = None if seen is None else seen.costs
            taken_s = 0.0 if costs is None else costs.fixed_s(tasks=0, shards=operator.shards if operator.keyed else 0)
            fixed[operator.name] = taken_s / longest_s[operator.name]
        rows = {name: cores / total if total > 0 else 1 / len(demand) for name, cores in demand.items()}
        return cls(fixed=fixed, rows=rows)

    def tasks(self, operator: Operator, slots: FloatArray | float) -> FloatArray:
        """Tasks of an operator on so many slots: twice its part of them, and no more than there are."""
        offered = np.asarray(slots, dtype=np.float64)
        fixed = sum(self.fixed.values())
        part = (self.fixed[operator.name] + self.rows[operator.name] * offered) / (fixed + offered)
        wanted = np.ceil(_REPLICAS_PER_CORE * part * offered - 1e-9)
        found: FloatArray = np.clip(wanted, 1.0, np.maximum(1.0, np.minimum(offered, operator.replica_limit)))
        return found


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
