"""After a change, what was changed is left alone for a while: the papers' grace period.

T. Heinze et al., "Auto-scaling Techniques for Elastic Data Stream Processing", 2014, section IV.A:
"after each scaling decision the affected host is not touched for a certain period of time, called grace period".

Departures from the paper: the scope may also be an operator or the whole application.

A grace period follows a change that was let through here and has been requested since. Hence a plan that a guard further
out vetoes starts none, and neither does the loss of a host, whose replacement must not wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from springtide.errors import InvalidValue, nearest, require
from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.model.change import change
from springtide.model.decision import Decision, WhyNot
from springtide.model.protocols import AnyPolicy, View
from springtide.plan.guards.partial import refuse
from springtide.plan.guards.replica_count import shards_by_replica

_APPLICATION = "the application"  # the one thing that changes in the scope of that name


class Scope(StrEnum):
    """What a change sets the grace period for."""

    APPLICATION = "application"
    OPERATOR = "operator"
    HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class CooldownMemory:
    """When each thing last changed; and of the last decision its time, what it planned, and what was requested before."""

    inner: Any
    changed_s: Mapping[str, float] = field(default_factory=dict)
    decided_s: float = 0.0
    requested: Allocation | None = None
    planned: Allocation | None = None


@dataclass(frozen=True, slots=True)
class Cooldown:
    """Refuses to touch an application, operator or host for `grace_s` after a change of it.

    With the scope `operator` or `host`, everything else in the plan still goes through. With the scope `host`, an
    operator's change is refused if it touches a host that is left alone, even if it touches other hosts as well.
    """

    name: ClassVar[str] = "cooldown"
    summary: ClassVar[str] = "what was changed is left alone for a grace period"

    policy: AnyPolicy
    _: KW_ONLY
    grace_s: float = 60.0
    scope: Scope = Scope.APPLICATION

    def __post_init__(self) -> None:
        require(self.grace_s >= 0, f"{self.name}: grace_s must be 0 or more, not {self.grace_s}")
        if self.scope not in list(Scope):
            raise InvalidValue(
                f"{self.name}: there is no scope {self.scope!r}; {nearest(self.scope, [s.value for s in Scope])}"
            )

    def start(self) -> CooldownMemory:
        return CooldownMemory(inner=self.policy.start())

    def decide(self, view: View, memory: CooldownMemory) -> tuple[Decision, CooldownMemory]:
        decision, inner = self.policy.decide(view, memory.inner)
        changed_s = self._cooling(view, memory)
        ages = {what: self._age(view.now_s - time_s) for what, time_s in changed_s.items()}
        decision = self._guarded(decision, view.requested, ages)
        return decision, CooldownMemory(
            inner=inner, changed_s=changed_s, decided_s=view.now_s, requested=view.requested, planned=decision.planned
        )

    def _cooling(self, view: View, memory: CooldownMemory) -> dict[str, float]:
        """What changed less than the grace period ago, and when."""
        changed_s = dict(memory.changed_s)
        if memory.requested is not None and memory.planned is not None:
            let_through = self._touched(memory.requested, memory.planned)
            requested = self._touched(memory.requested, view.requested)
            changed_s |= dict.fromkeys(let_through & requested, memory.decided_s)
        return {what: time_s for what, time_s in changed_s.items() if view.now_s - time_s < self.grace_s}

    def _touched(self, before: Allocation, after: Allocation) -> set[str]:
        difference = change(before, after)
        match self.scope:
            case Scope.OPERATOR:
                return set(difference.operators)
            case Scope.HOST:
                changed_hosts = {*difference.hosts_added, *difference.hosts_released}
                return changed_hosts.union(*_touched_hosts(before, after).values())
            case _:
                return {_APPLICATION} if difference else set()

    def _guarded(self, decision: Decision, base: Allocation, ages: Mapping[str, str]) -> Decision:
        wanted = change(base, decision.planned)
        if not (ages and wanted):
            return decision
        its_own = {what: f"it {age}" for what, age in ages.items()}
        match self.scope:
            case Scope.OPERATOR:
                return refuse(decision, base, self.name, operators=its_own, hosts={})
            case Scope.HOST:
                operators = {
                    operator: f"{host} {ages[host]}"
                    for operator, hosts in _touched_hosts(base, decision.planned).items()
                    for host in sorted(hosts & ages.keys())[:1]  # one reason is enough
                }
                return refuse(decision, base, self.name, operators=operators, hosts=its_own)
            case _:
                return decision.refused(base, WhyNot(self.name, str(wanted), f"{_APPLICATION} {ages[_APPLICATION]}"))

    def _age(self, age_s: float) -> str:
        return f"changed {age_s:g} s ago and the grace period is {self.grace_s:g} s"


def _touched_hosts(before: Allocation, after: Allocation) -> dict[str, set[str]]:
    """Per changed operator, the hosts on which its replicas or their shards differ."""
    return {name: _differing_hosts(before.operators[name], after.operators[name]) for name in change(before, after).operators}


def _differing_hosts(old: OperatorAllocation, new: OperatorAllocation) -> set[str]:
    before, after = _contents(old), _contents(new)
    return {host for host in before | after if before.get(host) != after.get(host)}


def _contents(operator: OperatorAllocation) -> dict[str, list[list[int]]]:
    """Per host, the shards of each replica on it, whatever the replicas' numbers."""
    contents: dict[str, list[list[int]]] = {}
    for host, shards in zip(operator.replica_hosts, shards_by_replica(operator), strict=True):
        contents.setdefault(host, []).append(shards)
    return {host: sorted(replicas) for host, replicas in contents.items()}
