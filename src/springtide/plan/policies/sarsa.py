"""Each host by itself, as with local thresholds, but what to do at which utilisation is learned.

T. Heinze, V. Pappalardo, Z. Jerzak, C. Fetzer, "Auto-scaling Techniques for Elastic Data Stream Processing", ICDE Workshops
2014, pp. 296-302, section IV.C; placement as in section II (see `thresholds.relocation` and `placement`). The lookup table is
in `reinforcement.table`, the learning in `reinforcement.learning`, each with its symbols and departures.

| symbol | here | unit |
|---|---|---|
| step size of the table (section V.A) | `step` | share of the cores |
| imp | `impact` | |
| dur | `duration_visits` | learning steps |
| beta | `discount` | |
| thresholds, target, grace period | see `thresholds.judging` | |

Departures from the paper:

* A decision that the pool's limits, or a new host in the same decision, leave no room for is not punished: it says nothing
  of the host. Only one that the placement cannot carry out is.
* Nothing is learned from an action that was not taken (a guard vetoed it), from doing nothing while somebody else moved
  something to or from the host, or from a release that happened: the table goes with the host.
* `consecutive` is only for the resizing of operators: hosts are acted on at once, as the paper has it.
* The grace period is not given there; it is 60 s here. Which hosts rest is said in `thresholds.judging`.
* A host that is starting or being released, or that began to run in this interval, neither acts nor learns.
* FUGU's operators are single-threaded and stay as many as they are. Here a saturated operator gets more replicas, and
  one whose replicas would fit in fewer gets fewer (see `thresholds.resizing`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from springtide.errors import require
from springtide.model.allocation import Allocation
from springtide.model.decision import Decision
from springtide.model.protocols import View
from springtide.plan.reinforcement.learning import Learning, Taken
from springtide.plan.reinforcement.table import HostAction, Table, first_table
from springtide.plan.thresholds.judging import (
    Marked,
    ThresholdMemory,
    Thresholds,
    after_change,
    judged_hosts,
    touched_hosts,
)
from springtide.plan.thresholds.response import respond
from springtide.plan.thresholds.wording import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class SarsaMemory:
    """Each host's table, and the actions whose consequences have not been seen yet."""

    judging: ThresholdMemory = field(default_factory=ThresholdMemory)
    tables: Mapping[str, Table] = field(default_factory=dict)
    taken: Mapping[str, Taken] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sarsa(Thresholds):
    """Heinze et al. 2014, section IV.C: reinforcement learning for each host.

    A host's table says what scaling out, scaling in and doing nothing are worth at its utilisation. It begins as the
    thresholds would have it, and every action's consequence changes it. Scaling out moves what brings the host to `target`;
    scaling in releases it if everything on it fits elsewhere. A host that gave, or is new, rests for `grace_s`.
    """

    name: ClassVar[str] = "sarsa"
    summary: ClassVar[str] = "learns for each host at which utilisation to relieve or release it"
    reference: ClassVar[str] = (
        "T. Heinze, V. Pappalardo, Z. Jerzak, C. Fetzer. Auto-scaling Techniques for Elastic Data Stream Processing. "
        "IEEE 30th International Conference on Data Engineering Workshops (ICDEW), 2014, pp. 296-302. Section IV.C."
    )

    step: float = 0.05
    impact: float = 0.2
    duration_visits: float = 80.0
    discount: float = 0.1
    penalty: float = 1.0

    def __post_init__(self) -> None:
        Thresholds.__post_init__(self)
        require(0.01 <= self.step <= 0.5, f"{self.name}: step must lie between 0.01 and 0.5, not {self.step}")
        require(0 <= self.impact <= 1, f"{self.name}: impact must lie between 0 and 1, not {self.impact}")
        require(
            math.isfinite(self.duration_visits) and self.duration_visits > 0,
            f"{self.name}: duration_visits must be above 0, not {self.duration_visits}",
        )
        require(0 <= self.discount < 1, f"{self.name}: discount must be 0 or more and below 1, not {self.discount}")
        require(
            math.isfinite(self.penalty) and self.penalty >= 0, f"{self.name}: penalty must be 0 or more, not {self.penalty}"
        )

    def start(self) -> SarsaMemory:
        return SarsaMemory()

    def decide(self, view: View, memory: SarsaMemory) -> tuple[Decision, SarsaMemory]:
        judging = after_change(view, memory.judging, self.grace_s)
        awake = {h: u for h, u in judged_hosts(view, judging).items() if h not in judging.grace_until_s}
        taken = _still_meaningful(view, memory)
        tables = self._learned(view, memory, taken, awake)
        actions = {host: tables[host].best(tables[host].state(u)) for host, u in awake.items()}
        decision, judging = respond(view, judging, _mark(awake, tables, actions, resting=bool(judging.grace_until_s)), self)
        memory = SarsaMemory(
            judging=judging,
            tables=tables,
            taken={
                **{host: earlier for host, earlier in taken.items() if host not in awake},
                **dict(_newly_taken(view, decision.planned, awake, actions)),
            },
        )
        return decision, memory

    def _learned(
        self, view: View, memory: SarsaMemory, taken: Mapping[str, Taken], awake: Mapping[str, float]
    ) -> dict[str, Table]:
        """A table for every host there is, and for no other, after the lessons of those that are awake."""
        learning = Learning(
            target=self.target,
            impact=self.impact,
            duration_visits=self.duration_visits,
            discount=self.discount,
            penalty=self.penalty,
        )
        fresh = first_table(self.lower, self.upper, self.step)
        tables = {host: memory.tables.get(host, fresh) for host in view.requested.hosts}
        lessons = {host: learning.learned(tables[host], taken[host], awake[host]) for host in taken.keys() & awake.keys()}
        return tables | lessons


def _still_meaningful(view: View, memory: SarsaMemory) -> dict[str, Taken]:
    """The actions that something can be learned from, after whatever was requested since.

    Of a scaling that was planned last time it is now known whether it was requested.
    """
    before = memory.judging.requested
    touched = set() if before is None else touched_hosts(view.application, before, view.requested)
    kept: dict[str, Taken] = {}
    for host, taken in memory.taken.items():
        undisturbed = taken.action is HostAction.NO_ACTION or taken.cancelled
        if host in view.requested.hosts and (taken.confirmed or (host in touched) != undisturbed):
            kept[host] = taken if undisturbed else replace(taken, confirmed=True)
    return kept


def _newly_taken(
    view: View, planned: Allocation, awake: Mapping[str, float], actions: Mapping[str, HostAction]
) -> Iterator[tuple[str, Taken]]:
    """What the hosts do now, as far as it will teach them something."""
    touched = touched_hosts(view.application, view.requested, planned)
    grows = not set(planned.hosts) <= set(view.requested.hosts)
    for host, action in actions.items():
        at_limit = {
            HostAction.SCALE_IN: grows or len(planned.hosts) <= view.pool.min_hosts,
            HostAction.NO_ACTION: False,
            HostAction.SCALE_OUT: len(planned.hosts) >= view.pool.max_hosts,
        }[action]
        taken = Taken(utilisation=awake[host], action=action)
        if action is HostAction.NO_ACTION or (action is HostAction.SCALE_OUT and host in touched):
            yield host, taken
        elif host not in touched and host in planned.hosts and not at_limit:
            yield host, replace(taken, cancelled=True)


def _mark(
    awake: Mapping[str, float], tables: Mapping[str, Table], actions: Mapping[str, HostAction], *, resting: bool
) -> Marked:
    findings = {host: _finding(host, u, tables[host], actions[host]) for host, u in awake.items()}
    out = [host for host in awake if actions[host] is HostAction.SCALE_OUT]
    idlest_first = sorted((host for host in awake if actions[host] is HostAction.SCALE_IN), key=lambda h: awake[h])
    return Marked(
        overloaded={host: findings[host] for host in out},
        underloaded={host: findings[host] for host in idlest_first},
        otherwise=_calm(awake, findings, resting),
    )


def _finding(host: str, utilisation: float, table: Table, action: HostAction) -> str:
    """`host-0 at 0.85 (scale out is worth 0.88, no action 0.60)`."""
    worth = f"{action} is worth {table.reward(utilisation, action):.2f}"
    if action is HostAction.NO_ACTION:
        return f"{host} at {utilisation:.2f} ({worth})"
    return f"{host} at {utilisation:.2f} ({worth}, no action {table.reward(utilisation, HostAction.NO_ACTION):.2f})"


def _calm(awake: Mapping[str, float], findings: Mapping[str, str], resting: bool) -> str:
    if not awake:
        return "hold: every host rests after a change" if resting else "no host has run for a whole interval yet"
    busiest = max(awake, key=lambda host: awake[host])
    return f"no action for {plural(len(awake), 'host')}: busiest {findings[busiest]}"
