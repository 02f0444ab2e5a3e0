"""More replicas than cores, so that operators share the cores: none is held up by whole numbers, or by a burst of its own,
while cores are idle.

A replica costs nothing, and the cores of a host cost the same whether they are used or not. With one core for each replica an
operator that needs 1.3 cores gets one or two of them; with about twice as many replicas as cores each takes what it needs.

In batches a replica is a task, which costs something, and takes a slot only while it runs: there every operator has as many as
there are slots, and no more.
"""

from __future__ import annotations

import math

from springtide.model.protocols import View
from springtide.plan.placement.counts import demand_cores

_REPLICAS_PER_CORE = 2.0
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
