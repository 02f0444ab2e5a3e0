"""Replicas follow the backlog: one more where rows wait too long, one fewer where none has waited for a while.

A small, complete policy to start a new one from; `docs/writing-a-policy.md` walks through it. It is not taken from a paper.
Rules: everything is planned from `view.requested`; one replica per operator and interval; a replica goes to a host with a
free core, to a new host if there is none; a host without a replica is released.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from springtide.errors import require
from springtide.model.allocation import Allocation, new_host_names
from springtide.model.application import Operator
from springtide.model.decision import Decision, Expectation, WhyNot
from springtide.model.observation import OperatorObservation
from springtide.model.protocols import View
from springtide.plan.guards.replica_count import grow, shrink
from springtide.plan.placement.loads import Loads


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLengthMemory:
    """For how many intervals in a row each operator could have done with one replica fewer."""

    calm: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLength:
    """Adds a replica where the backlog takes longer than `high_s`, removes one after `calm` intervals without need of it.

    A replica is not needed while nothing waits and the others would be no busier than `target` without it.

    >>> QueueLength(high_s=1.0)
    QueueLength(high_s=1.0, calm=5, target=0.7)
    >>> QueueLength(high_s=-1)
    Traceback (most recent call last):
    springtide.errors.InvalidValue: queue-length: high_s must be above 0, not -1
    """

    name: ClassVar[str] = "queue-length"
    summary: ClassVar[str] = "one replica more where rows wait too long, one fewer where none waits"
    reference: ClassVar[str] = "Springtide's documentation, docs/writing-a-policy.md: an example, not taken from a paper."

    high_s: float = 2.0
    calm: int = 5
    target: float = 0.7

    def __post_init__(self) -> None:
        require(math.isfinite(self.high_s) and self.high_s > 0, f"{self.name}: high_s must be above 0, not {self.high_s}")
        require(self.calm >= 1, f"{self.name}: calm must be at least 1, not {self.calm}")
        require(0 < self.target <= 1, f"{self.name}: target must be above 0 and at most 1, not {self.target}")

    def start(self) -> QueueLengthMemory:
        return QueueLengthMemory()

    def decide(self, view: View, memory: QueueLengthMemory) -> tuple[Decision, QueueLengthMemory]:
        planned = view.requested
        calm: dict[str, int] = {}
        steps: list[str] = []
        why_not: list[WhyNot] = []
        for operator in view.application.operators:
            seen, placed = view.observation.operators[operator.name], planned.operators[operator.name]
            if len(seen.replica_utilisation) != placed.replicas:
                continue  # a change is under way: what was measured is not what was requested
            if seen.backlog_s > self.high_s:
                finding = f"{operator.name} needs {seen.backlog_s:.1f} s for its backlog"
                host, obstacle = _host_for_one_more(view, planned, operator)
                if host is None:
                    why_not.append(WhyNot(self.name, f"add a replica ({finding})", obstacle))
                    continue
                planned = planned if host in planned.hosts else planned.with_hosts((*planned.hosts, host))
                planned = planned.with_operator(operator.name, grow(placed, (host,)))
                steps.append(f"{finding}: one replica more on {host}")
            elif self._could_do_with_fewer(seen, placed.replicas):
                calm[operator.name] = memory.calm.get(operator.name, 0) + 1
                if calm[operator.name] >= self.calm:
                    planned = planned.with_operator(operator.name, shrink(placed, placed.replicas - 1))
                    steps.append(f"{operator.name} at {seen.utilisation:.2f} has no backlog: one replica fewer")
                    del calm[operator.name]
        planned = _without_empty_hosts(planned, view.pool.min_hosts)
        decision = Decision(
            planned=planned,
            reason="; ".join(steps) or _calm_reason(view),
            expected=Expectation(utilisation=Loads(view).highest_utilisation(planned)),
            why_not=tuple(why_not),
        )
        return decision, QueueLengthMemory(calm=calm)

    def _could_do_with_fewer(self, seen: OperatorObservation, replicas: int) -> bool:
        busy = seen.utilisation * replicas
        return replicas > 1 and seen.backlog_s < 0.1 * self.high_s and busy <= self.target * (replicas - 1)


def _host_for_one_more(view: View, planned: Allocation, operator: Operator) -> tuple[str | None, str]:
    """The host for one more replica; or None, and why there is none."""
    if planned.operators[operator.name].replicas >= operator.replica_limit:
        return None, f"it may have no more than {operator.replica_limit}"
    emptiest = min(planned.hosts, key=planned.replicas_on)
    if planned.replicas_on(emptiest) < view.pool.host.cores:
        return emptiest, ""
    if len(planned.hosts) < view.pool.max_hosts:
        # A host that is on its way out still has its name.
        taken = frozenset({*planned.hosts, *view.observation.hosts})
        return new_host_names(taken, 1)[0], ""
    return None, f"all cores of the pool's {view.pool.max_hosts} hosts are taken"


def _without_empty_hosts(planned: Allocation, min_hosts: int) -> Allocation:
    empty = [h for h in planned.hosts if planned.replicas_on(h) == 0][: max(0, len(planned.hosts) - min_hosts)]
    return planned.with_hosts(tuple(h for h in planned.hosts if h not in empty)) if empty else planned


def _calm_reason(view: View) -> str:
    longest = max(view.observation.operators.values(), key=lambda seen: seen.backlog_s)
    return f"hold: the longest backlog is {longest.backlog_s:.1f} s, that of {longest.name}"
