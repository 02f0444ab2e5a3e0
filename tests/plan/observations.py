"""What a policy sees of an application whose load is known: `view(app, placed, {"count": 2.4})` is 2.4 cores of work.

An operator's load is a number of cores, shared evenly by its shards or replicas, or one number for each of them. Hosts and
replicas are as busy as what is placed on them, so the figures always fit together; nothing is capped at what a host has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from factories import host_observation, observation, operator_observation, shard_loads
from springtide.model.allocation import Allocation, HostType, OperatorAllocation, Pool
from springtide.model.application import Application, Operator
from springtide.model.decision import Decision
from springtide.model.observation import FloatArray, HostState, OperatorObservation
from springtide.model.protocols import AnyPolicy, Forecast, View

INTERVAL_S = 20.0
POOL = Pool(host=HostType(cores=4), min_hosts=1, max_hosts=10)

Cores = Mapping[str, float | Sequence[float]]


def view(
    application: Application,
    placed: Allocation,
    loads: Cores,
    *,
    index: int = 0,
    pool: Pool = POOL,
    requested: Allocation | None = None,
    states: Mapping[str, HostState] | None = None,
    forecast: Forecast | None = None,
) -> View:
    """One interval with everything where `placed` says; `states` names the hosts that are not simply running."""
    operators = {o.name: _operator(o, placed.operators[o.name], loads.get(o.name, 0.0)) for o in application.operators}
    hosts = {
        host: host_observation(
            host,
            utilisation=_busy_cores(host, placed, operators) / pool.host.cores,
            cores=pool.host.cores,
            state=(states or {}).get(host, HostState.RUNNING),
        )
        for host in (*placed.hosts, *(h for h in states or {} if h not in placed.hosts))
    }
    seen = observation(
        index=index,
        interval_s=INTERVAL_S,
        application=application,
        allocation=placed,
        requested=requested,
        operators=operators,
        hosts=hosts,
    )
    demand = {o.name: float(np.sum(loads.get(o.name, 0.0))) / o.service_time_s for o in application.operators}
    rates = {name: rows / INTERVAL_S for name, rows in seen.source_rows.items()}
    gains = {name: {o: d / (len(rates) * rate) for o, d in demand.items()} for name, rate in rates.items()}
    return View(application=application, pool=pool, observation=seen, demand_rows_per_s=demand, gains=gains, forecast=forecast)


def play(
    policy: AnyPolicy, application: Application, placed: Allocation, loads: Sequence[Cores], pool: Pool = POOL
) -> Iterator[Decision]:
    """The policy's decisions, one per interval; each is carried out at once and seen in the next interval."""
    memory = policy.start()
    for index, load in enumerate(loads):
        decision, memory = policy.decide(view(application, placed, load, index=index, pool=pool), memory)
        placed = decision.planned
        yield decision


def placed_on(*, hosts: int | None = None, **operators: Any) -> Allocation:
    """An allocation by hand: a tuple of host numbers per operator, one per shard or replica.

    `placed_on(count=shards(0, 0, 1))` has shards 0 and 1 on host-0 and shard 2 on host-1, in one replica on each;
    `placed_on(parse=(0, 1))` has a replica on each.
    """
    values = {name: v if isinstance(v, OperatorAllocation) else replicas(*v) for name, v in operators.items()}
    used = {int(h.removeprefix("host-")) for v in values.values() for h in v.replica_hosts}
    return Allocation(tuple(f"host-{i}" for i in range(hosts or max(used) + 1)), values)


def replicas(*hosts: int) -> OperatorAllocation:
    return OperatorAllocation(tuple(f"host-{h}" for h in hosts))


def shards(*hosts: int) -> OperatorAllocation:
    """One replica on each host, which serves all the shards there."""
    order = sorted(set(hosts))
    return OperatorAllocation(tuple(f"host-{h}" for h in order), tuple(order.index(h) for h in hosts))


def shard_hosts(decision: Decision, name: str) -> list[str]:
    placed = decision.planned.operators[name]
    return [placed.shard_host(s) for s in range(len(placed.shard_replicas))]


def _operator(operator: Operator, placed: OperatorAllocation, load: float | Sequence[float]) -> OperatorObservation:
    count = len(placed.shard_replicas) or placed.replicas
    cores = np.full(count, load / count) if isinstance(load, int | float) else np.array(load, dtype=float)
    at = np.array(placed.shard_replicas) if placed.shard_replicas else np.arange(count)
    busy: FloatArray = np.bincount(at, weights=cores, minlength=placed.replicas).astype(float)
    even = shard_loads(count, rows=1000.0, state_bytes=operator.state_bytes_per_shard)
    return operator_observation(
        operator,
        placed,
        interval_s=INTERVAL_S,
        utilisation=float(busy.mean()),
        replica_utilisation=busy,
        shards=replace(even, rows=cores * INTERVAL_S / operator.service_time_s, busy_s=cores * INTERVAL_S),
    )


def _busy_cores(host: str, placed: Allocation, operators: Mapping[str, OperatorObservation]) -> float:
    return sum(
        float(operators[name].replica_utilisation[r])
        for name, operator in placed.operators.items()
        for r, its_host in enumerate(operator.replica_hosts)
        if its_host == host and name in operators
    )
