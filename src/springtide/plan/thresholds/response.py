"""From hosts that a threshold policy has marked to its decision and memory: relocate, resize, and say why.

Everything is planned from what was requested. When no host is marked and no operator's streak is long enough, nothing is
computed that a hold does not need: an application may have a thousand operators.
"""

from __future__ import annotations

from dataclasses import replace

from springtide.model.allocation import Allocation, new_host_names
from springtide.model.decision import Decision, Expectation, WhyNot
from springtide.model.protocols import View
from springtide.plan.placement.loads import Loads
from springtide.plan.thresholds.judging import Marked, ThresholdMemory, Thresholds, counted
from springtide.plan.thresholds.relocation import Relocation, least_hosts, relocate
from springtide.plan.thresholds.resizing import replica_verdicts, resize


def respond(view: View, memory: ThresholdMemory, marked: Marked, thresholds: Thresholds) -> tuple[Decision, ThresholdMemory]:
    """The decision for the marked hosts, and the memory for the next interval.

    Relocation comes before resizing, so that a saturated operator finds the room that moves have made.
    """
    loads = Loads(view)
    relocated = _relocated(loads, memory, marked, thresholds)
    streaks = counted(memory.operator_streaks, replica_verdicts(view, thresholds))
    resized = resize(loads, relocated.allocation, streaks, thresholds)
    planned, additions = restored(view, resized.allocation)
    decision = Decision(
        planned=planned,
        reason=_reason(marked, relocated, (*resized.steps, *additions)),
        expected=Expectation(utilisation=loads.highest_utilisation(planned)),
        why_not=(*relocated.why_not, *resized.why_not),
    )
    memory = replace(
        memory,
        running=frozenset(h.name for h in view.observation.running_hosts),
        # A streak goes on until something is done about it: what a guard vetoes now is wanted again.
        operator_streaks=streaks,
    )
    return decision, memory


def restored(view: View, allocation: Allocation) -> tuple[Allocation, tuple[str, ...]]:
    """With new hosts in place of lost ones, where fewer are left than the pool keeps at least."""
    missing = view.pool.min_hosts - len(allocation.hosts)
    if missing <= 0:
        return allocation, ()
    new = new_host_names(frozenset({*allocation.hosts, *view.observation.hosts}), missing)
    return allocation.with_hosts((*allocation.hosts, *new)), (f"{least_hosts(view)}: add {', '.join(new)}",)


def _relocated(loads: Loads, memory: ThresholdMemory, marked: Marked, thresholds: Thresholds) -> Relocation:
    """The marked hosts relocated, but for those that must not be touched; nothing is computed when no other is left."""
    view = loads.view
    forbidden = {
        host: f"it is in its grace period until {memory.grace_until_s[host]:g} s"
        for host in (*marked.overloaded, *marked.underloaded)
        if host in memory.grace_until_s
    }
    if len(view.requested.hosts) <= view.pool.min_hosts:
        forbidden |= dict.fromkeys(marked.underloaded, least_hosts(view))
    refused = tuple(
        WhyNot(thresholds.name, f"{verb} {host} ({finding})", forbidden[host])
        for verb, hosts in (("relieve", marked.overloaded), ("release", marked.underloaded))
        for host, finding in hosts.items()
        if host in forbidden
    )
    permitted = marked.without(forbidden)
    if not (permitted.overloaded or permitted.underloaded):
        return Relocation(allocation=view.requested, steps=(), why_not=refused)
    relocated = relocate(loads, permitted, thresholds)
    return replace(relocated, why_not=(*refused, *relocated.why_not))


def _reason(marked: Marked, relocated: Relocation, resized: tuple[str, ...]) -> str:
    """What is done and why; or, if hosts are marked and nothing moves, the first obstacle; or why no host is marked."""
    if relocated.steps:
        return "; ".join(part for part in (marked.headline, *relocated.steps, *resized) if part)
    if resized:
        return "; ".join(resized)
    if not relocated.why_not:
        return marked.otherwise
    first, *others = relocated.why_not
    more = f" (and {len(others)} more)" if others else ""
    return "; ".join(part for part in (marked.headline, f"hold: cannot {first.what}, because {first.why}{more}") if part)
