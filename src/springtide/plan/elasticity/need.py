"""From what each operator needs to a decision: replicas, hosts, the reason, the vetoes and what is expected.

A policy says how many replicas every operator should have and how many cores it expects the operator to keep busy; where they
go is `placement.counts`. The papers that come through here have a fixed cluster. Here the hosts are so many that what all
operators keep busy together, no replica more than one core, is `host_utilisation` of the hosts' cores. While the numbers stay
as they are, nothing moves: to even out shards whose loads change is what the guard `balance` is for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from springtide.errors import require
from springtide.model.allocation import Allocation, Pool
from springtide.model.change import change
from springtide.model.decision import Decision, Expectation, WhyNot
from springtide.model.protocols import View
from springtide.plan.placement.counts import allocate, demand_cores, hosts_for, service_time_s
from springtide.plan.thresholds.wording import plural

_ROUNDING = 1e-9  # 3.0000000001 cores are 3 cores
_NAMED_OPERATORS = 3  # a reason that lists more than these is not read


@dataclass(frozen=True, slots=True)
class Need:
    """How many replicas an operator should have, and how many cores it is expected to keep busy if it may."""

    replicas: int
    cores: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ByNeed:
    """The one parameter that all these policies have: how busy hosts are to be."""

    name: ClassVar[str]

    host_utilisation: float = 0.7

    def __post_init__(self) -> None:
        require(
            0 < self.host_utilisation <= 1,
            f"{self.name}: host_utilisation must be above 0 and at most 1, not {self.host_utilisation}",
        )

    def resized(self, view: View, needs: Mapping[str, Need], finding: Callable[[str], str]) -> Decision:
        """The decision that gives every operator what it needs; `finding` says of an operator why it needs that."""
        limits = {o.name: o.replica_limit for o in view.application.operators}
        replicas = {name: min(need.replicas, limits[name]) for name, need in needs.items()}
        busy = {name: min(need.cores, replicas[name]) for name, need in needs.items()}
        cores = sum(busy.values())
        hosts = hosts_for(view.pool, cores / self.host_utilisation)
        planned = view.requested if _are_there(view.requested, replicas, hosts) else allocate(view, replicas, hosts)
        beyond_limit = tuple(
            WhyNot(self.name, f"{need.replicas} replicas ({finding(name)})", f"{name} may have no more than {limits[name]}")
            for name, need in needs.items()
            if need.replicas > limits[name]
        )
        return Decision(
            planned=planned,
            reason=self._reason(view, planned, f"{cores:.2f} cores at {self.host_utilisation:.2f}", finding),
            expected=Expectation(utilisation=busiest_host(view, planned, busy)),
            why_not=(*beyond_limit, *self._beyond_pool(view.pool, cores / self.host_utilisation)),
        )

    def _reason(self, view: View, planned: Allocation, total: str, finding: Callable[[str], str]) -> str:
        before, after = len(view.requested.hosts), len(planned.hosts)
        difference = change(view.requested, planned)
        if not difference:
            return f"hold: {planned.replicas} replicas on {plural(after, 'host')} do for {total}"
        steps = [f"{finding(name)}: {old} -> {new} replicas" for name, (old, new) in difference.replicas.items()]
        more = len(steps) - _NAMED_OPERATORS
        steps = steps[:_NAMED_OPERATORS] + [f"{plural(more, 'operator')} more"] * (more > 0)
        if before != after:
            steps.append(f"{total}: {before} -> {plural(after, 'host')}")
        return "; ".join(steps)

    def _beyond_pool(self, pool: Pool, cores: float) -> tuple[WhyNot, ...]:
        wanted = max(1, math.ceil(cores / pool.host.cores - _ROUNDING))
        if pool.min_hosts <= wanted <= pool.max_hosts:
            return ()
        too_many = wanted > pool.max_hosts
        why = f"has only {plural(pool.max_hosts, 'host')}" if too_many else f"keeps at least {plural(pool.min_hosts, 'host')}"
        return (WhyNot(self.name, plural(wanted, "host"), f"the pool {why}"),)


def _are_there(now: Allocation, replicas: Mapping[str, int], hosts: int) -> bool:
    return len(now.hosts) == hosts and all(now.operators[name].replicas == count for name, count in replicas.items())


def replicas_for(cores: float) -> int:
    """The fewest replicas, each with a core to itself, that have so many cores.

    >>> replicas_for(2.275), replicas_for(3.0), replicas_for(0.0)
    (3, 3, 1)
    """
    return max(1, math.ceil(cores - _ROUNDING))


def cores_needed(view: View, demand_rows_per_s: Mapping[str, float], *, waiting: bool) -> dict[str, float]:
    """How many cores each operator needs for that demand, and to process the rows that wait now within one interval."""
    needed = demand_cores(view, demand_rows_per_s)
    if waiting:
        for operator in view.application.operators:
            seen = view.observation.operators.get(operator.name)
            if seen is not None and seen.backlog_rows > 0:
                needed[operator.name] += seen.backlog_rows * service_time_s(view, operator) / view.observation.interval_s
    return needed


def busiest_host(view: View, planned: Allocation, busy_cores: Mapping[str, float]) -> float:
    """The utilisation of the busiest host if an operator's replicas share what it keeps busy evenly; 1 at most."""
    load = dict.fromkeys(planned.hosts, 0.0)
    for name, placed in planned.operators.items():
        share = busy_cores[name] / placed.replicas
        for host in placed.replica_hosts:
            load[host] += share
    return min(1.0, max(load.values()) / view.pool.host.cores)
