"""Keeps hosts and replicas between a least and a most, whatever the policy plans.

Rules: a plan is clamped, never vetoed whole; the result is valid and within bounds even if what has been requested is
not. Hosts are clamped before replicas, because a host that goes takes no replica with it: they are placed elsewhere.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from springtide.errors import require
from springtide.model.allocation import Allocation, OperatorAllocation, new_host_names
from springtide.model.application import Operator
from springtide.model.decision import Decision, WhyNot
from springtide.model.protocols import AnyPolicy, View
from springtide.plan.guards.partial import keep_hosts
from springtide.plan.guards.replica_count import grow, shrink


@dataclass(frozen=True, slots=True)
class Bounded:
    """Between `min_hosts` and `max_hosts` hosts, and between `min_replicas` and `max_replicas` of every operator.

    0 (for the upper bounds also None) is no bound. An operator's own `replica_limit` is kept in any case, even where it
    is below `min_replicas`. It needs no memory of its own.
    """

    name: ClassVar[str] = "bounds"
    summary: ClassVar[str] = "hosts and replicas stay between a least and a most"

    policy: AnyPolicy
    _: KW_ONLY
    min_hosts: int = 0
    max_hosts: int | None = None
    min_replicas: int = 0
    max_replicas: int | None = None

    def __post_init__(self) -> None:
        for what in ("hosts", "replicas"):
            least, most = getattr(self, f"min_{what}"), getattr(self, f"max_{what}") or 0
            require(least >= 0, f"{self.name}: min_{what} must be 0 or more, not {least}")
            require(most >= 0, f"{self.name}: max_{what} must be 0 (no bound) or more, not {most}")
            require(not most or most >= least, f"{self.name}: max_{what} ({most}) must not be below min_{what} ({least})")

    def start(self) -> Any:
        return self.policy.start()

    def decide(self, view: View, memory: Any) -> tuple[Decision, Any]:
        decision, memory = self.policy.decide(view, memory)
        decision = self._enough_hosts(decision, view)
        decision = self._not_too_many_hosts(decision, view)
        for operator in view.application.operators:
            decision = self._clamped(decision, operator)
        return decision, memory

    def _enough_hosts(self, decision: Decision, view: View) -> Decision:
        planned = decision.planned
        if len(planned.hosts) >= self.min_hosts:
            return decision
        kept = keep_hosts(view.requested, planned, self.min_hosts)
        taken = frozenset({*kept.hosts, *view.requested.hosts, *view.observation.hosts})
        enough = kept.with_hosts((*kept.hosts, *new_host_names(taken, self.min_hosts - len(kept.hosts))))
        more = ", ".join(h for h in enough.hosts if h not in planned.hosts)
        why = f"at least {self.min_hosts} are needed: {more} as well"
        return decision.refused(enough, WhyNot(self.name, _counted(len(planned.hosts), "host"), why))

    def _not_too_many_hosts(self, decision: Decision, view: View) -> Decision:
        planned = decision.planned
        if not self.max_hosts or len(planned.hosts) <= self.max_hosts:
            return decision
        surplus = _most_dispensable(planned, view.requested)[: len(planned.hosts) - self.max_hosts]
        why = f"at most {self.max_hosts} are allowed: without {', '.join(surplus)}, whose replicas go to the others"
        return decision.refused(_without_hosts(planned, surplus), WhyNot(self.name, _counted(len(planned.hosts), "host"), why))

    def _clamped(self, decision: Decision, operator: Operator) -> Decision:
        most = min(self.max_replicas or operator.replica_limit, operator.replica_limit)
        least = min(self.min_replicas, most)
        planned = decision.planned
        placed = planned.operators[operator.name]
        if least <= placed.replicas <= most:
            return decision
        if placed.replicas > most:
            clamped, why = shrink(placed, most), f"at most {most} are allowed"
        else:
            clamped, why = grow(placed, _emptiest_hosts(planned, least - placed.replicas)), f"at least {least} are needed"
        veto = WhyNot(self.name, _counted(placed.replicas, "replica") + f" of {operator.name}", why)
        return decision.refused(planned.with_operator(operator.name, clamped), veto)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}"


def _most_dispensable(planned: Allocation, requested: Allocation) -> list[str]:
    """The planned hosts, those first that can best be done without: new ones, last added first, then the emptiest."""
    last_first = planned.hosts[::-1]
    new = [h for h in last_first if h not in requested.hosts]
    present = [h for h in last_first if h in requested.hosts]
    return new + sorted(present, key=planned.replicas_on)


def _without_hosts(planned: Allocation, surplus: list[str]) -> Allocation:
    """The plan with every replica on a surplus host placed on the remaining host that has the fewest by then."""
    load = Counter({h: planned.replicas_on(h) for h in planned.hosts if h not in surplus})
    placed = {
        name: OperatorAllocation(
            tuple(_emptiest(load) if h in surplus else h for h in operator.replica_hosts), operator.shard_replicas
        )
        for name, operator in planned.operators.items()
    }
    return Allocation(tuple(load), placed)


def _emptiest_hosts(planned: Allocation, count: int) -> tuple[str, ...]:
    """The hosts for `count` more replicas: each goes where there are the fewest by then."""
    load = Counter({h: planned.replicas_on(h) for h in planned.hosts})
    return tuple(_emptiest(load) for _ in range(count))


def _emptiest(load: Counter[str]) -> str:
    """The host with the fewest replicas, which has one more from now on."""
    host = min(load, key=load.__getitem__)
    load[host] += 1
    return host
