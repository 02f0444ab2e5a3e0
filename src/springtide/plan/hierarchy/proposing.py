"""What each operator proposes: one more replica, another host for one of them, or one replica fewer.

V. Cardellini, F. Lo Presti, M. Nardelli, G. Russo Russo, "Towards Hierarchical Autonomous Control for Elastic Data Stream
Processing in the Fog", Euro-Par 2017 Workshops: the Operator Managers' local policy, section 3.1 (symbols: see `wishing`).

An operator proposes one thing at a time, the most gainful one that it wishes for and that can be done: scale-out, migration,
scale-in.

Departures from the paper:

* The network delay between hosts is not observed, so all are equally near, and any with room may be chosen. Only a host that
  has a replica of the operator already is nearer: a new replica finds the operator's state there.
* Hosts are given in the paper and rented here. Where no host has room, a new one is added, if the pool has one.
* A host has room for a replica if that leaves it at U_max or below. The paper does not say.
* Which replica leaves an overloaded host is not said there: the busiest of the operator's on the busiest of its hosts.
* The operators propose one after another and see what those before them proposed, scale-outs first, so that two of them do
  not count on the same room. A host from which enough has been asked to move already is not overloaded.
* Shards are dealt by their load, not in equal numbers. With skewed keys a mean says little of the busiest replica, hence a
  scale-out is not proposed where a single shard makes the busiest replica what it is, nor a scale-in that would take a
  replica above S_s-out or a host above U_max.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.model.decision import WhyNot
from springtide.plan.hierarchy.room import Room
from springtide.plan.hierarchy.wishing import LocalRules, Wish, wishes
from springtide.plan.hierarchy.worth import Gain
from springtide.plan.placement.counts import dealt, shard_weights
from springtide.plan.placement.loads import Loads

_LEAST_GAIN = 1e-9  # of the busiest replica's load; less is rounding, not relief


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What an operator is to become, and why."""

    placed: OperatorAllocation
    finding: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposals:
    """The allocation if everything proposed is granted, why each operator proposes what it does, and what none could."""

    allocation: Allocation
    findings: Mapping[str, str]
    why_not: tuple[WhyNot, ...]


def propose(loads: Loads, rules: LocalRules, chance: Callable[[], np.random.Generator]) -> Proposals:
    """What the operators ask for. Chance is only asked for when somebody has a wish."""
    view = loads.view
    wished = wishes(view, rules)
    if not wished:
        return Proposals(allocation=view.requested, findings={}, why_not=())
    room = Room.of(loads, rules.max_utilisation, chance())
    placed = dict(view.requested.operators)
    findings: dict[str, str] = {}
    why_not: list[WhyNot] = []
    for wish in sorted(wished, key=lambda w: -w.gain):
        if wish.operator in findings:
            continue
        answer = _answer(room, rules, wish)
        if isinstance(answer, Proposal):
            placed[wish.operator] = answer.placed
            findings[wish.operator] = answer.finding
        elif answer:
            why_not.append(WhyNot(rules.who, f"{wish.gain} of {wish.operator} ({wish.finding})", answer))
    allocation = Allocation(tuple(room.hosts), placed) if findings else view.requested
    return Proposals(allocation=allocation, findings=findings, why_not=tuple(why_not))


def _answer(room: Room, rules: LocalRules, wish: Wish) -> Proposal | str:
    """What can be proposed to fulfil the wish; or why nothing can; or an empty text when nothing need be."""
    match wish.gain:
        case Gain.SCALE_OUT:
            return _scale_out(room, wish)
        case Gain.MIGRATION:
            return _migration(room, wish)
        case Gain.SCALE_IN:
            return _scale_in(room, rules, wish)


def _scale_out(room: Room, wish: Wish) -> Proposal | str:
    """One more replica, or why not."""
    view, name = room.view, wish.operator
    placed, operator = view.requested.operators[name], view.application.operator(name)
    n = placed.replicas
    if n >= operator.replica_limit:
        return f"it may have no more than {n}"
    routes = np.array(placed.shard_replicas, dtype=np.intp)
    if operator.keyed:
        weights = shard_weights(view, operator, placed)
        # An even split may need several more replicas before the busiest has less to do; a single shard never has less.
        if weights.max() >= np.bincount(routes, weights=weights).max() * (1 - _LEAST_GAIN):
            return "one shard alone keeps its busiest replica as busy as it is"
        routes = dealt(routes, weights, n + 1)
    host = room.for_one_more(name)
    if host is None:
        return room.obstacle()
    finding = f"{name}: {wish.finding}: {n} -> {n + 1} replicas, the new one on {room.called(host)}"
    return Proposal(placed=OperatorAllocation((*placed.replica_hosts, host), tuple(routes.tolist())), finding=finding)


def _migration(room: Room, wish: Wish) -> Proposal | str:
    """Another host for the busiest replica on the overloaded one, or why not; nothing if it is relieved already."""
    view, name = room.view, wish.operator
    placed = view.requested.operators[name]
    used = view.observation.operators[name].replica_utilisation
    if not room.is_overloaded(wish.host):
        return ""
    replica = max((r for r, host in enumerate(placed.replica_hosts) if host == wish.host), key=lambda r: used[r])
    if used[replica] <= 0:
        return ""
    host = room.for_moved(name, replica)
    if host is None:
        return room.obstacle()
    hosts = (*placed.replica_hosts[:replica], host, *placed.replica_hosts[replica + 1 :])
    finding = f"{wish.finding}: a replica of {name} at {used[replica]:.2f} to {room.called(host)}"
    return Proposal(placed=OperatorAllocation(hosts, placed.shard_replicas), finding=finding)


def _scale_in(room: Room, rules: LocalRules, wish: Wish) -> Proposal | str:
    """Without one of its two busiest replicas, or why not."""
    view, name = room.view, wish.operator
    placed, operator = view.requested.operators[name], view.application.operator(name)
    used = view.observation.operators[name].replica_utilisation
    two_busiest = np.argsort(-used, kind="stable")[:2]
    victim, last = int(room.chance.choice(two_busiest)), placed.replicas - 1
    hosts = list(placed.replica_hosts)
    hosts[victim] = hosts[last]  # the last replica takes the number of the one that goes, so that few routes change
    shares, routes = np.full(last, 1 / last), np.array(placed.shard_replicas, dtype=np.intp)
    if operator.keyed:
        number = np.arange(placed.replicas)
        number[last], number[victim] = victim, -1
        weights = shard_weights(view, operator, placed)
        routes = dealt(number[routes], weights, last)
        shares = np.bincount(routes, weights=weights, minlength=last)
    if shares.max() * used.sum() > max(rules.scale_out_above, float(used.max())):
        return f"its busiest replica would be at {shares.max() * used.sum():.2f}"
    after = OperatorAllocation(tuple(hosts[:last]), tuple(routes.tolist()))
    if not room.takes(name, after, shares):
        return f"a host would be above {rules.max_utilisation:.2f}"
    finding = f"{name}: {wish.finding}: {placed.replicas} -> {last} replicas"
    return Proposal(placed=after, finding=finding)
