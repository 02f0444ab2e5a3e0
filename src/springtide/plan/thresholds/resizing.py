"""How many replicas an operator has on the hosts it is on: more where one is saturated, fewer where fewer would do.

FUGU's operators are single-threaded and its hosts are judged as a whole (Heinze et al. 2014, section II). Here a host has
several cores and a replica uses one of them, so a replica can be saturated on a host that is nearly idle. Rules:

* an operator is resized once its busiest replica was above the upper threshold for `consecutive` intervals, or its
  replicas would have fitted in fewer at the target utilisation for as many;
* a keyed operator is regrouped inside the hosts that hold its shards, which moves no state; while one of its replicas is
  saturated, no host gets fewer of them;
* an operator without shards gets as many replicas as its load needs at the target, on hosts with room below the upper
  threshold (they mostly carry the load already), or just one more if no host has room for all of its share; or it loses
  its last one;
* hosts are never added here: a saturated host is overloaded, and relocation's affair.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.model.decision import WhyNot
from springtide.model.protocols import View
from springtide.plan.placement.loads import Loads, moves_by_shard, unit_hosts
from springtide.plan.placement.packing import place
from springtide.plan.placement.regrouping import arrange, replicas_needed
from springtide.plan.thresholds.judging import Thresholds
from springtide.plan.thresholds.wording import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Resizing:
    """The allocation with other numbers of replicas, what was done in words, and what could not be."""

    allocation: Allocation
    steps: tuple[str, ...]
    why_not: tuple[WhyNot, ...]


def replica_verdicts(view: View, thresholds: Thresholds) -> dict[str, int]:
    """1 for an operator with a saturated replica, -1 for one that would fit in fewer; others are left out.

    An operator whose replicas are being changed is not judged: what was measured is not what was requested.
    """
    verdicts: dict[str, int] = {}
    seen = view.observation.operators
    for name, placed in view.requested.operators.items():
        if name not in seen or len(seen[name].replica_utilisation) != placed.replicas:
            continue
        if max(seen[name].replica_utilisation.tolist()) > thresholds.upper:
            verdicts[name] = 1
        elif (
            placed.replicas > _fewest(placed)
            and replicas_needed(seen[name].utilisation * placed.replicas, thresholds.target) < placed.replicas
        ):
            verdicts[name] = -1
    return verdicts


def _fewest(placed: OperatorAllocation) -> int:
    """Every host that holds shards needs a replica."""
    return len(set(placed.replica_hosts)) if placed.shard_replicas else 1


def resize(loads: Loads, allocation: Allocation, streaks: Mapping[str, int], thresholds: Thresholds) -> Resizing:
    """The allocation with every operator resized whose streak is long enough, in the order of the application.

    Operators whose shards have been regrouped in it already, because some of them moved, are left as they are.
    """
    view = loads.view
    steps: list[str] = []
    why_not: list[WhyNot] = []
    for operator in view.application.operators:
        name, streak = operator.name, streaks.get(operator.name, 0)
        before = allocation.operators[name]
        if abs(streak) < thresholds.consecutive or (before.shard_replicas and before != view.requested.operators[name]):
            continue
        finding = _finding(view, name, streak, thresholds)
        after = _resized(loads, allocation, name, streak, thresholds)
        if after != before:
            allocation = allocation.with_operator(name, after)
            steps.append(f"{finding}: {_difference(before, after)}")
        elif streak > 0:
            why_not.append(WhyNot(thresholds.name, f"relieve {name} ({finding})", _obstacle(view, name, before)))
    return Resizing(allocation=allocation, steps=tuple(steps), why_not=tuple(why_not))


def _resized(loads: Loads, allocation: Allocation, name: str, streak: int, thresholds: Thresholds) -> OperatorAllocation:
    placed = allocation.operators[name]
    operator = loads.view.application.operator(name)
    if moves_by_shard(operator):
        return arrange(loads, name, placed, unit_hosts(operator, placed), thresholds.target, shrink=streak < 0)
    if streak < 0:
        return OperatorAllocation(placed.replica_hosts[:-1])
    cores = float(loads.of_operator(name, placed).cpu_cores.sum())
    wanted = max(placed.replicas + 1, replicas_needed(cores, thresholds.target))
    hosts = _hosts_for_more(loads, allocation, name, min(wanted, operator.replica_limit), thresholds.upper)
    return OperatorAllocation((*placed.replica_hosts, *hosts), placed.shard_replicas)


def _hosts_for_more(loads: Loads, allocation: Allocation, name: str, count: int, upper: float) -> list[str]:
    """The hosts with room for more replicas, up to `count` in all, once the present ones have given them their share.

    To find out what is free then, the new ones are thought to be on the first one's host, and taken away again.
    """
    placed = allocation.operators[name]
    first = placed.replica_hosts[0]
    together = OperatorAllocation((*placed.replica_hosts, *[first] * (count - placed.replicas)), placed.shard_replicas)
    imagined = allocation.with_operator(name, together)
    new = [u for u in loads.units_on(imagined, first) if u.operator == name and u.index >= placed.replicas]
    free = {b.host: b for b in loads.bins(imagined, upper)}
    for unit in new:
        free[first] = free[first].minus(unit)
    placement = place(new, tuple(free.values()), (), loads.view.application)
    found = [placement.hosts[unit] for unit in new if unit in placement.hosts]
    # A saturated replica keeps its host's load down. One more, where most is free, lets it show: relocation's affair then.
    roomiest = max(free.values(), key=lambda b: b.cpu_cores)
    return found or [roomiest.host for _ in new[:1] if roomiest.cpu_cores > 0]


def _finding(view: View, name: str, streak: int, thresholds: Thresholds) -> str:
    seen = view.observation.operators[name]
    if streak < 0:
        intervals = plural(-streak, "interval")
        return f"{name} at {seen.utilisation:.2f} fits in fewer replicas at {thresholds.target:.2f} for {intervals}"
    return thresholds.finding(f"{name}'s busiest replica", float(seen.replica_utilisation.max()), streak)


def _difference(before: OperatorAllocation, after: OperatorAllocation) -> str:
    if after.shard_replicas:
        return f"regroup its shards from {before.replicas} into {after.replicas} replicas"
    return f"{before.replicas} -> {after.replicas} replicas"


def _obstacle(view: View, name: str, placed: OperatorAllocation) -> str:
    operator = view.application.operator(name)
    if placed.replicas >= operator.replica_limit:
        return f"it may have no more than {plural(operator.replica_limit, 'replica')}"
    if moves_by_shard(operator):
        return "its shards cannot be grouped any better on the hosts they are on"
    return "no host has room for another replica"
