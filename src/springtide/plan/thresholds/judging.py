"""When is a host, or all of them together, over- or underloaded: what the two threshold policies share.

T. Heinze, V. Pappalardo, Z. Jerzak, C. Fetzer, "Auto-scaling Techniques for Elastic Data Stream Processing", ICDE Workshops
2014, pp. 296-302, sections IV and IV.A.

| symbol | here | unit |
|---|---|---|
| t_up, maximal host utilisation | `upper` | share of the cores |
| t_down, minimal host utilisation | `lower` | share of the cores |
| target utilisation | `target` | share of the cores |
| n, successive measurements | `consecutive` | intervals |
| grace period | `grace_s` | s |

A streak is how many intervals in a row something was above the upper threshold (counted up from 0) or below the lower
one (counted down). Memory is a value: everything here returns a new one.

Who rests: "after each scaling decision the affected host is not touched" (section IV.A). It is the host that the decision was
about, which gave units away and stays, and the one that was rented for them. A host that merely receives does not rest: the
placement may use any host with enough capacity (section II), and the first that fits would rest for ever.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from springtide.errors import require
from springtide.model.allocation import Allocation
from springtide.model.application import Application
from springtide.model.change import change
from springtide.model.observation import HostState
from springtide.model.protocols import View
from springtide.plan.placement.loads import unit_hosts

AVERAGE = "average of all hosts"  # the name under which the streak of the global policy is kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """The paper's three parameters, at its default configuration, and the two it does not give a value for.

    Three measurements in a row are more than one stray interval. The grace period covers the start of a new host
    (30 s by default) and some intervals in which its load can be seen.
    """

    name: ClassVar[str]

    upper: float = 0.8
    lower: float = 0.3
    target: float = 0.6
    consecutive: int = 3
    grace_s: float = 60.0

    def __post_init__(self) -> None:
        require(0 < self.upper <= 1, f"{self.name}: upper must be above 0 and at most 1, not {self.upper}")
        require(0 <= self.lower < self.upper, f"{self.name}: lower must be 0 or more and below upper, not {self.lower}")
        require(
            self.lower < self.target <= self.upper,
            f"{self.name}: target must be above lower and at most upper, not {self.target}",
        )
        require(self.consecutive >= 1, f"{self.name}: consecutive must be at least 1, not {self.consecutive}")
        require(
            math.isfinite(self.grace_s) and self.grace_s >= 0, f"{self.name}: grace_s must be 0 or more, not {self.grace_s}"
        )

    def verdict(self, utilisation: float) -> int:
        """1 above the upper threshold, -1 below the lower one, 0 between them."""
        return (utilisation > self.upper) - (utilisation < self.lower)

    def finding(self, who: str, utilisation: float, streak: int) -> str:
        """`host-2 at 0.91 > 0.80 for 3 intervals`, or `for 1 of 3 intervals` while that is too few."""
        beyond = f"> {self.upper:.2f}" if streak > 0 else f"< {self.lower:.2f}"
        needed = f" of {self.consecutive}" if abs(streak) < self.consecutive else ""
        several = abs(streak) > 1 or needed
        return f"{who} at {utilisation:.2f} {beyond} for {abs(streak)}{needed} interval{'s' if several else ''}"

    def between(self) -> str:
        return f"between {self.lower:.2f} and {self.upper:.2f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdMemory:
    """What a threshold policy remembers from one interval to the next.

    `running` are the hosts that ran when the last interval ended (None before the first, when those that run are taken to
    have been there); `requested` and `decided_s` say from what, and when, was decided last.
    """

    running: frozenset[str] | None = None
    requested: Allocation | None = None
    decided_s: float = 0.0
    streaks: Mapping[str, int] = field(default_factory=dict)
    operator_streaks: Mapping[str, int] = field(default_factory=dict)
    grace_until_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """The hosts a policy found over- or underloaded, each with why; underloaded ones in the order they are to be released.

    `headline` is said before all of them; `otherwise` is the reason to hold when no host is marked.
    """

    overloaded: Mapping[str, str]
    underloaded: Mapping[str, str]
    headline: str = ""
    otherwise: str

    def without(self, hosts: Collection[str]) -> Marked:
        return replace(
            self,
            overloaded={host: why for host, why in self.overloaded.items() if host not in hosts},
            underloaded={host: why for host, why in self.underloaded.items() if host not in hosts},
        )


def counted(streaks: Mapping[str, int], verdicts: Mapping[str, int]) -> dict[str, int]:
    """The streaks one interval later. What gets no verdict, or the verdict 0, has no streak.

    >>> counted({"a": 2, "b": -1, "c": 5}, {"a": 1, "b": 1, "c": 0})
    {'a': 3, 'b': 1}
    """
    lengths = {name: max(0, streaks.get(name, 0) * verdict) for name, verdict in verdicts.items()}  # 0 where it turned
    return {name: verdict * (lengths[name] + 1) for name, verdict in verdicts.items() if verdict}


def after_change(view: View, memory: ThresholdMemory, grace_s: float) -> ThresholdMemory:
    """The memory, after whatever was requested since the last decision.

    Hosts that gave units, and new ones, begin their grace period. These, hosts that received, and operators that were
    changed begin a new streak. It is what was requested that counts, so a plan that a guard vetoed starts no grace period.
    """
    grace_until_s = dict(memory.grace_until_s)
    streaks, operator_streaks = memory.streaks, memory.operator_streaks
    if memory.requested is not None and memory.requested is not view.requested:
        difference = change(memory.requested, view.requested)
        touched = touched_hosts(view.application, memory.requested, view.requested)
        rest = scaled_hosts(view.application, memory.requested, view.requested)
        grace_until_s |= dict.fromkeys(sorted(rest), memory.decided_s + grace_s)
        changed = touched | {*difference.hosts_released}
        streaks = _without(streaks, {*changed, AVERAGE} if changed else ())
        operator_streaks = _without(operator_streaks, difference.operators)
    return ThresholdMemory(
        running=memory.running,
        requested=view.requested,
        decided_s=view.now_s,
        streaks=streaks,
        operator_streaks=operator_streaks,
        grace_until_s={
            h: until_s for h, until_s in grace_until_s.items() if until_s > view.now_s and h in view.requested.hosts
        },
    )


def scaled_hosts(application: Application, before: Allocation, after: Allocation) -> set[str]:
    """The hosts that gave a unit, and new ones."""
    return {*change(before, after).hosts_added, *(giver for giver, _ in _unit_moves(application, before, after))}


def touched_hosts(application: Application, before: Allocation, after: Allocation) -> set[str]:
    """The hosts that gave or received a unit, and new ones. Replicas that came or went are not counted: no state moved."""
    moves = _unit_moves(application, before, after)
    return {*change(before, after).hosts_added, *(host for giver_and_receiver in moves for host in giver_and_receiver)}


def _unit_moves(application: Application, before: Allocation, after: Allocation) -> Iterator[tuple[str, str]]:
    """Who gave a unit to whom."""
    for name in change(before, after).operators:
        operator = application.operator(name)
        old = unit_hosts(operator, before.operators[name])
        new = unit_hosts(operator, after.operators[name])
        yield from (pair for pair in zip(old, new, strict=False) if pair[0] != pair[1])


def _without(streaks: Mapping[str, int], names: Iterable[str]) -> dict[str, int]:
    gone = set(names)
    return {name: streak for name, streak in streaks.items() if name not in gone}


def judged_hosts(view: View, memory: ThresholdMemory) -> dict[str, float]:
    """The utilisation of each host whose load means something: it ran for the whole interval, and is to stay."""
    seen = view.observation.hosts
    return {
        host: seen[host].utilisation
        for host in view.requested.hosts
        if host in seen and seen[host].state is HostState.RUNNING and (memory.running is None or host in memory.running)
    }
