"""Units leave overloaded hosts, and all of them leave an underloaded host that can be done without.

T. Heinze, V. Pappalardo, Z. Jerzak, C. Fetzer, "Auto-scaling Techniques for Elastic Data Stream Processing", ICDE Workshops
2014, pp. 296-302, sections II, IV.A and IV.B: subset sum chooses what leaves an overloaded host so that it comes down to the
target utilisation; first-fit-decreasing finds a host for it, a new one if need be; an underloaded host is released if
everything on it fits elsewhere, and left alone otherwise. Which hosts are over- or underloaded is the policy's affair.

Departures from the paper:

* The paper takes a host "with enough capacity" without saying how much is enough. Here hosts are filled up to the target
  utilisation, no further, so that relieving one host does not overload the next.
* What is too large for an empty host at the target stays where it is: moving it would only move the overload.
* Loads are those of the units at the places requested for them. A host that is overloaded, but from which enough has been
  asked to move already, is not asked for more.
* A decision that adds hosts releases none, and a host that received units in it is not released by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from springtide.model.allocation import Allocation, new_host_names
from springtide.model.decision import WhyNot
from springtide.model.observation import HostState
from springtide.model.protocols import View
from springtide.plan.placement.loads import Loads, moves_by_shard, unit_hosts
from springtide.plan.placement.packing import Bin, Unit, place
from springtide.plan.placement.regrouping import move_units
from springtide.plan.placement.subset_sum import smallest_sum_reaching
from springtide.plan.thresholds.judging import Marked, Thresholds
from springtide.plan.thresholds.wording import described, plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Relocation:
    """The allocation after all moves, what was done in words, and what could not be."""

    allocation: Allocation
    steps: tuple[str, ...]
    why_not: tuple[WhyNot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """How far a plan has come: what is free, up to the target, on each host that it keeps, and what it moves where."""

    loads: Loads
    thresholds: Thresholds
    bins: Mapping[str, Bin]
    moves: Mapping[Unit, str] = field(default_factory=dict)
    steps: tuple[str, ...] = ()
    why_not: tuple[WhyNot, ...] = ()

    @property
    def view(self) -> View:
        return self.loads.view

    def and_so(self, step: str) -> _Draft:
        return replace(self, steps=(*self.steps, step))

    def but_not(self, what: str, why: str) -> _Draft:
        return replace(self, why_not=(*self.why_not, WhyNot(self.thresholds.name, what, why)))

    def described(self, units: Sequence[Unit]) -> str:
        return described(self.view.application, units)

    def destinations(self, units: Iterable[Unit]) -> str:
        hosts = {self.moves[unit] for unit in units}
        known = set(self.view.requested.hosts)
        return ", ".join(host if host in known else f"new {host}" for host in self.bins if host in hosts)


def relocate(loads: Loads, marked: Marked, thresholds: Thresholds) -> Relocation:
    """The marked hosts relieved or released, as far as possible. Who is not overloaded and not on its way out may receive."""
    view = loads.view
    leaving = {h.name for h in view.observation.hosts.values() if h.state is HostState.RELEASING}
    closed = {*leaving, *marked.overloaded}
    free = {b.host: replace(b, receives=b.host not in closed) for b in loads.bins(view.requested, thresholds.target)}
    draft = _relieve(_Draft(loads=loads, thresholds=thresholds, bins=free), marked.overloaded)
    if len(draft.bins) == len(free):
        for host, finding in marked.underloaded.items():
            draft = _release(draft, host, finding)
    return Relocation(
        allocation=move_units(loads, view.requested, draft.moves, tuple(draft.bins), thresholds.target),
        steps=draft.steps,
        why_not=draft.why_not,
    )


def _relieve(draft: _Draft, overloaded: Mapping[str, str]) -> _Draft:
    """What has to leave the overloaded hosts is placed all at once, on new hosts where nothing else fits."""
    surplus = {host: _surplus(draft, draft.bins[host]) for host in overloaded}
    origins = {unit: host for host, units in surplus.items() for unit in units}
    spare = _spare(draft)
    placement = place(origins, _without(draft.bins, origins), spare, draft.view.application)
    moves = _within_replica_limits(draft.view, placement.hosts, origins)
    used = set(moves.values())
    free = {**draft.bins, **{b.host: b for b in spare if b.host in used}}
    draft = replace(draft, bins=_moved(free, origins, moves), moves=moves)
    for host, finding in overloaded.items():
        draft = _reported(draft, finding, surplus[host]) if surplus[host] else _not_relieved(draft, free[host], finding)
    return draft


def _surplus(draft: _Draft, free: Bin) -> tuple[Unit, ...]:
    """The units whose leaving brings the host just down to the target, among those that an empty host could take."""
    if free.cpu_cores >= 0:
        return ()
    empty = draft.loads.empty_bin(free.host, draft.thresholds.target)
    movable = [unit for unit in draft.loads.units_on(draft.view.requested, free.host) if empty.fits(unit)]
    chosen = smallest_sum_reaching([unit.cpu_cores for unit in movable], -free.cpu_cores)
    return tuple(movable[i] for i in chosen)


def _spare(draft: _Draft) -> tuple[Bin, ...]:
    """The hosts that may still be rented. The names of hosts that are on their way out are not used again."""
    taken = frozenset({*draft.bins, *draft.view.observation.hosts})
    count = max(0, draft.view.pool.max_hosts - len(draft.bins))
    return tuple(draft.loads.empty_bin(host, draft.thresholds.target) for host in new_host_names(taken, count))


def _without(free: Mapping[str, Bin], origins: Mapping[Unit, str]) -> tuple[Bin, ...]:
    left = dict(free)
    for unit, host in origins.items():
        left[host] = left[host].minus(unit)
    return tuple(left.values())


def _moved(free: Mapping[str, Bin], origins: Mapping[Unit, str], moves: Mapping[Unit, str]) -> dict[str, Bin]:
    after = dict(free)
    for unit, host in moves.items():
        after[origins[unit]] = after[origins[unit]].minus(unit)
        after[host] = after[host].plus(unit)
    return after


def _within_replica_limits(view: View, hosts: Mapping[Unit, str], origins: Mapping[Unit, str]) -> dict[Unit, str]:
    """The moves, without those of an operator that would end up on more hosts than it may have replicas.

    That happens when it was to leave a host entirely and some of its units found no other place.
    """
    stuck = {unit.operator for unit in origins if unit not in hosts}
    too_many = {name for name in stuck if _too_many_hosts(view, name, hosts)}
    return {unit: host for unit, host in hosts.items() if unit.operator not in too_many}


def _too_many_hosts(view: View, name: str, hosts: Mapping[Unit, str]) -> bool:
    operator = view.application.operator(name)
    if not moves_by_shard(operator):
        return False
    moved = {unit.index: host for unit, host in hosts.items() if unit.operator == name}
    after = {moved.get(i, host) for i, host in enumerate(unit_hosts(operator, view.requested.operators[name]))}
    return len(after) > operator.replica_limit


def _not_relieved(draft: _Draft, free: Bin, finding: str) -> _Draft:
    target = draft.thresholds.target
    if free.cpu_cores >= 0:
        why = f"what was requested already leaves it at {target - free.cpu_cores / draft.view.pool.host.cores:.2f}"
    else:
        why = f"each shard or replica on it is too large for another host at {target:.2f}"
    return draft.but_not(f"relieve {free.host} ({finding})", why)


def _reported(draft: _Draft, finding: str, surplus: Sequence[Unit]) -> _Draft:
    """The draft with words for what leaves one overloaded host, and for what should and cannot."""
    moved = [unit for unit in surplus if unit in draft.moves]
    stuck = [unit for unit in surplus if unit not in draft.moves]
    if moved:
        draft = draft.and_so(f"{finding}: move {draft.described(moved)} to {draft.destinations(moved)}")
    if stuck:
        most = draft.view.pool.max_hosts
        pool_is_used_up = f"the pool has only {plural(most, 'host')}"
        limit = pool_is_used_up if len(draft.bins) >= most else "its operator may have no more replicas"
        why = f"no host has room for it below {draft.thresholds.target:.2f}, and {limit}"
        draft = draft.but_not(f"move {draft.described(stuck)} ({finding})", why)
    return draft


def _release(draft: _Draft, host: str, finding: str) -> _Draft:
    """Without the host, if everything on it fits elsewhere and it has not just received something itself."""
    if host in draft.moves.values():
        return draft
    wanted = f"release {host} ({finding})"
    if len(draft.bins) <= draft.view.pool.min_hosts:
        return draft.but_not(wanted, least_hosts(draft.view))
    units = draft.loads.units_on(draft.view.requested, host)
    others = tuple(b for b in draft.bins.values() if b.host != host)
    placement = place(units, others, (), draft.view.application)
    if placement.unplaced:
        why = f"{draft.described(placement.unplaced)} would fit on no other host below {draft.thresholds.target:.2f}"
        return draft.but_not(wanted, why)
    draft = replace(draft, bins={b.host: b for b in placement.bins}, moves={**draft.moves, **placement.hosts})
    where = f", {draft.described(units)} to {draft.destinations(units)}" if units else ""
    return draft.and_so(f"{finding}: release it{where}")


def least_hosts(view: View) -> str:
    """Why no host can be released from as few as there are."""
    return f"the pool keeps at least {plural(view.pool.min_hosts, 'host')}"
