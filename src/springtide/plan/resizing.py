"""How many replicas an operator has on the hosts it is on: more where one is saturated, fewer where fewer would do.

FUGU's operators are single-threaded and its hosts are judged as a whole (Heinze et al. 2014, section II). Here a host has
several cores and a replica uses one of them, so a replica can be saturated on a host that is nearly idle. Rules:

* an operator is resized once its busiest replica was above the upper threshold for `consecutive` intervals, or its
  replicas would have fitted in fewer at the target utilisation for as many;
* a keyed operator is regrouped inside the hosts that hold its shards, which moves no state;
* an operator without shards gets as many replicas as its load needs at the target, on hosts with room below the upper
  threshold (they mostly carry the load already), or loses its last one;
* hosts are never added here: a saturated host is overloaded, and relocation's affair.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.model.decision import WhyNot
from springtide.model.protocols import View
from springtide.plan.loads import bins, moves_by_shard, unit_hosts, unit_loads
from springtide.plan.placement import Bin, Unit, place
from springtide.plan.regrouping import arrange, replicas_needed
from springtide.plan.thresholds import Thresholds
from springtide.plan.wording import plural


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
        if seen[name].replica_utilisation.max() > thresholds.upper:
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


def resize(view: View, allocation: Allocation, streaks: Mapping[str, int], thresholds: Thresholds) -> Resizing:
    """The allocation with every operator resized whose streak is long enough, in the order of the application.

    Operators whose shards have been regrouped in it already, because some of them moved, are left as they are.
    """
    steps: list[str] = []
    why_not: list[WhyNot] = []
    for operator in view.application.operators:
        name, streak = operator.name, streaks.get(operator.name, 0)
        before = allocation.operators[name]
        if abs(streak) < thresholds.consecutive or (before.shard_replicas and before != view.requested.operators[name]):
            continue
        finding = _finding(view, name, streak, thresholds)
        after = _resized(view, allocation, name, streak, thresholds)
        if after != before:
            allocation = allocation.with_operator(name, after)
            steps.append(f"{finding}: {_difference(before, after)}")
        elif streak > 0:
            why_not.append(WhyNot(thresholds.name, f"relieve {name} ({finding})", _obstacle(view, name, before)))
    return Resizing(allocation=allocation, steps=tuple(steps), why_not=tuple(why_not))


def _resized(view: View, allocation: Allocation, name: str, streak: int, thresholds: Thresholds) -> OperatorAllocation:
    placed = allocation.operators[name]
    operator = view.application.operator(name)
    if moves_by_shard(operator):
        return arrange(view, name, placed, unit_hosts(operator, placed), thresholds.target)
    if streak < 0:
        return OperatorAllocation(placed.replica_hosts[:-1], placed.shard_replicas)
    return _with_more_replicas(view, allocation, name, thresholds)


def _with_more_replicas(view: View, allocation: Allocation, name: str, thresholds: Thresholds) -> OperatorAllocation:
    """As many replicas as the load needs, if hosts have room for them: each old replica gives the new ones their share."""
    placed = allocation.operators[name]
    loads = unit_loads(view, name, placed)
    total = Unit(
        operator=name,
        index=0,
        cpu_cores=float(loads.cpu_cores.sum()),
        memory_bytes=float(loads.memory_bytes.sum()),
        network_bytes_per_s=float(loads.network_bytes_per_s.sum()),
    )
    wanted = max(placed.replicas + 1, replicas_needed(total.cpu_cores, thresholds.target))
    count = min(wanted, view.application.operator(name).replica_limit)
    new = [_share(total, count, i) for i in range(placed.replicas, count)]
    shared = _shared(
        bins(view, allocation, thresholds.upper), placed, _share(total, placed.replicas, 0), _share(total, count, 0)
    )
    placement = place(new, shared, (), view.application)
    hosts = [placement.hosts[unit] for unit in new if unit in placement.hosts]
    return OperatorAllocation((*placed.replica_hosts, *hosts), placed.shard_replicas)


def _share(total: Unit, count: int, index: int) -> Unit:
    return replace(
        total,
        index=index,
        cpu_cores=total.cpu_cores / count,
        memory_bytes=total.memory_bytes / count,
        network_bytes_per_s=total.network_bytes_per_s / count,
    )


def _shared(before: tuple[Bin, ...], placed: OperatorAllocation, old_share: Unit, new_share: Unit) -> list[Bin]:
    after = []
    for its_bin in before:
        for _ in range(placed.replica_hosts.count(its_bin.host)):
            its_bin = its_bin.minus(old_share).plus(new_share)  # noqa: PLW2901
        after.append(its_bin)
    return after


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
