"""From a host for every unit back to an allocation: shards are regrouped into replicas inside each host.

All replicas of one host share its state, so regrouping inside a host moves none (Elasticutor, Wang et al. 2019, section 3.2).
Rules:

* a host that holds shards of an operator has as many replicas of it as their load needs at the target utilisation, at
  least one, and never more than it has cores or shards;
* all of them together are no more than the operator's `replica_limit`; where that is short, the most loaded get more;
* a shard stays with the replica it has if that is still on the shard's host, unless the replicas are out of balance;
* replicas keep their number if they can, so that few routes change.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.plan.placement.balancing import THETA, balance
from springtide.plan.placement.loads import Loads, moves_by_shard, unit_hosts
from springtide.plan.placement.packing import Unit

_NEW = -1  # the number of a replica that does not have one yet


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """The shards one replica will serve; `replica` is the number it has now."""

    host: str
    shards: tuple[int, ...]
    replica: int


def move_units(
    loads: Loads, allocation: Allocation, moves: Mapping[Unit, str], hosts: tuple[str, ...], target: float
) -> Allocation:
    """The allocation on `hosts` once the units have moved; only operators that this touches are regrouped."""
    if not moves and hosts == allocation.hosts:
        return allocation
    destinations: dict[str, dict[int, str]] = {}
    for unit, host in moves.items():
        destinations.setdefault(unit.operator, {})[unit.index] = host
    staying = set(hosts)
    operators = dict(allocation.operators)
    for name, placed in allocation.operators.items():
        # A replica that serves no shard is not a unit, yet it must leave a host that goes.
        if name not in destinations and staying.issuperset(placed.replica_hosts):
            continue
        moved_to = destinations.get(name, {})
        now = unit_hosts(loads.view.application.operator(name), placed)
        operators[name] = arrange(loads, name, placed, [moved_to.get(i, host) for i, host in enumerate(now)], target)
    return Allocation(hosts, operators)


def arrange(
    loads: Loads, name: str, placed: OperatorAllocation, hosts_of_units: Sequence[str], target: float, *, shrink: bool = True
) -> OperatorAllocation:
    """The operator with its units on these hosts, and its shards regrouped by their load at the target utilisation.

    Without `shrink`, a host keeps at least as many replicas as it has.
    """
    operator = loads.view.application.operator(name)
    if not moves_by_shard(operator):
        return OperatorAllocation(tuple(hosts_of_units), placed.shard_replicas)
    cores = loads.of_operator(name, placed).cpu_cores.tolist()
    shards_on: dict[str, list[int]] = {}
    for shard, host in enumerate(hosts_of_units):
        shards_on.setdefault(host, []).append(shard)
    load_on = {host: sum(cores[s] for s in shards) for host, shards in shards_on.items()}
    present = Counter(() if shrink else placed.replica_hosts)
    wanted = {
        host: min(max(replicas_needed(load_on[host], target), present[host]), len(shards), loads.view.pool.host.cores)
        for host, shards in shards_on.items()
    }
    counts = _within_limit(wanted, load_on, operator.replica_limit)
    there = _present_groups(placed)
    groups = []
    for host, shards in shards_on.items():
        as_it_is = there.get(host, [])
        if len(as_it_is) == counts[host] and _same(as_it_is, shards) and _even(as_it_is, cores):
            groups += as_it_is
        else:
            groups += _group(placed, host, shards, cores, counts[host])
    return _numbered(groups, len(hosts_of_units))


def replicas_needed(load_cores: float, target: float) -> int:
    """How many replicas carry the load at no more than the target utilisation; one at least.

    >>> replicas_needed(1.2, 0.6), replicas_needed(1.3, 0.6), replicas_needed(0.0, 0.6)
    (2, 3, 1)
    """
    return max(1, math.ceil(load_cores / target - 1e-9))


def _within_limit(wanted: Mapping[str, int], load_on: Mapping[str, float], limit: int) -> dict[str, int]:
    """One replica per host, and then one at a time where the replicas are busiest, while there are any to give."""
    if sum(wanted.values()) <= limit:
        return dict(wanted)
    counts = dict.fromkeys(wanted, 1)
    for _ in range(limit - len(counts)):
        short = [host for host, count in counts.items() if count < wanted[host]]
        counts[max(short, key=lambda host: load_on[host] / counts[host])] += 1
    return counts


def _present_groups(placed: OperatorAllocation) -> dict[str, list[_Group]]:
    """What each host's replicas serve now."""
    members: list[list[int]] = [[] for _ in placed.replica_hosts]
    for shard, replica in enumerate(placed.shard_replicas):
        members[replica].append(shard)
    found: dict[str, list[_Group]] = {}
    for replica, host in enumerate(placed.replica_hosts):
        found.setdefault(host, []).append(_Group(host=host, shards=tuple(members[replica]), replica=replica))
    return found


def _same(groups: Sequence[_Group], shards: Sequence[int]) -> bool:
    """Whether the groups serve these shards, and each of them some."""
    return sum(len(g.shards) for g in groups) == len(shards) and all(g.shards for g in groups) and _union(groups) == set(shards)


def _union(groups: Sequence[_Group]) -> set[int]:
    return {shard for group in groups for shard in group.shards}


def _even(groups: Sequence[_Group], loads: Sequence[float]) -> bool:
    totals = [sum([loads[s] for s in group.shards]) for group in groups]
    return max(totals) * len(totals) <= THETA * sum(totals)


def _group(placed: OperatorAllocation, host: str, shards: Sequence[int], loads: Sequence[float], count: int) -> list[_Group]:
    """The shards of one host in at most `count` groups; shards whose replica stays remain with it where balance allows."""
    its_loads = [loads[s] for s in shards]
    present = [r for r, its_host in enumerate(placed.replica_hosts) if its_host == host]
    served = dict.fromkeys(present, 0.0)
    for shard in shards:
        if placed.shard_replicas[shard] in served:
            served[placed.shard_replicas[shard]] += loads[shard]
    kept = sorted(sorted(present, key=lambda r: (-served[r], r))[:count])
    position = {replica: i for i, replica in enumerate(kept)}
    routes = _dealt([position.get(placed.shard_replicas[s], _NEW) for s in shards], its_loads, count)
    balanced = balance(its_loads, routes, count)
    members: list[list[int]] = [[] for _ in range(count)]
    for shard, i in zip(shards, balanced, strict=True):
        members[i].append(shard)
    replicas = [*kept, *[_NEW] * (count - len(kept))]
    return [_Group(host=host, shards=tuple(m), replica=r) for r, m in zip(replicas, members, strict=True) if m]


def _dealt(routes: Sequence[int], loads: Sequence[float], count: int) -> list[int]:
    """Shards without a replica go, by decreasing load, to the replica with the least to do by then."""
    dealt = list(routes)
    totals = [0.0] * count
    for replica, load in zip(routes, loads, strict=True):
        if replica != _NEW:
            totals[replica] += load
    homeless = [i for i, replica in enumerate(routes) if replica == _NEW]
    for i in sorted(homeless, key=lambda i: (-loads[i], i)):
        dealt[i] = totals.index(min(totals))
        totals[dealt[i]] += loads[i]
    return dealt


def _numbered(groups: Sequence[_Group], shards: int) -> OperatorAllocation:
    """Replicas keep their number where it is still in use; all others take the numbers that are left, in order."""
    kept = {g.replica for g in groups if 0 <= g.replica < len(groups)}
    free = iter([n for n in range(len(groups)) if n not in kept])
    replica_hosts = [""] * len(groups)
    shard_replicas = [0] * shards
    for group in groups:
        number = group.replica if group.replica in kept else next(free)
        replica_hosts[number] = group.host
        for shard in group.shards:
            shard_replicas[shard] = number
    return OperatorAllocation(tuple(replica_hosts), tuple(shard_replicas))
