"""From cores per executor and host to replicas, and from there to the replica of every shard.

L. Wang et al., "Elasticutor", SIGMOD 2019, sections 3.1 and 3.2: a task per core, and shards balanced over the tasks of their
executor only (see `placement.balancing`). Rules:

* a replica stays as long as its executor has a core for it on its host; where there are fewer, those with least to do go;
* a shard moves only if its replica goes, if there is a new replica to fill, or if the executor's replicas are further apart
  than theta allows. Shards whose replica goes are dealt, the largest first, to whoever has the least to do by then;
* replicas keep their number where they can, so that few routes change.

Departures from the paper:

* A new task is filled until it has the mean over theta to do. By the paper's rule alone, five even tasks and an idle one are
  balanced (delta is 1.2), and a sixth core would be of no use.
* Where tasks are so busy that one with theta times the mean would have more than its core can do, they are balanced more
  finely: up to one over their mean utilisation, and to 1.05 at the finest. The model gives executors hardly more cores than
  they keep busy, and takes it for granted that tasks share one queue; but they do not, and rows of a task that cannot keep
  up are late for as long as that lasts.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from springtide.model.allocation import OperatorAllocation
from springtide.model.observation import FloatArray
from springtide.plan.executors.hosting import GONE, Hosts
from springtide.plan.executors.measuring import IntArray, Team
from springtide.plan.placement.balancing import balance

_FINEST = 1.05  # to balance more finely than that takes more moves than it is worth
_NEW = -1  # a replica that is not there yet, or a shard that has none


@dataclass(frozen=True, slots=True, eq=False)
class _Fleet:
    """The replicas of the operator to be, by their numbers: executor, host, and the number each has now."""

    executors: IntArray
    hosts: IntArray
    numbers: IntArray


def arrange(team: Team, cores: IntArray, hosts: Hosts, theta: float) -> OperatorAllocation:
    """An operator with these cores, a row for each of its executors and a column for each host."""
    fleet = _fleet(team, cores, hosts)
    replica_hosts = tuple([hosts.after[i] for i in fleet.hosts.tolist()])
    shard_replicas = _routed(team, fleet, theta) if team.operator.keyed else ()
    before = team.placed
    if replica_hosts == before.replica_hosts and shard_replicas == before.shard_replicas:
        return before
    return OperatorAllocation(replica_hosts, shard_replicas)


def uneven(team: Team, theta: float) -> bool:
    """Whether some executor's shards are with replicas of another, or too much with one of its own."""
    if not team.operator.keyed or team.placed.replicas == 1:
        return False
    owners = team.executor_of_replica
    if team.count > 1 and (owners[team.routes] != team.executor_of_shard).any():
        return True
    return team.seen and bool(_apart(team, owners, team.replica_loads, theta))


def _apart(team: Team, owners: IntArray, loads: FloatArray, theta: float) -> list[int]:
    """The executors whose busiest replica has more to do than is tolerated."""
    if team.count == 1:
        figures = [(float(loads.max()), float(loads.sum()) / len(loads))]
    else:
        highest = np.zeros(team.count)
        np.maximum.at(highest, owners, loads)
        replicas = np.maximum(1, np.bincount(owners, minlength=team.count))
        means = np.bincount(owners, weights=loads, minlength=team.count) / replicas
        figures = list(zip(highest.tolist(), means.tolist(), strict=True))
    return [e for e, (high, mean) in enumerate(figures) if high > mean * _tolerated(mean * team.busy_cores, theta)]


def _tolerated(utilisation: float, theta: float) -> float:
    """Theta, or less where a replica would have more than a core to do while the others have room for it.

    >>> [round(_tolerated(utilisation, 1.2), 2) for utilisation in (0.0, 0.8, 0.9, 0.99, 1.0)]
    [1.2, 1.2, 1.11, 1.05, 1.2]
    """
    if theta * utilisation <= 1.0 or utilisation >= 1.0:
        return theta
    return max(min(theta, _FINEST), 1.0 / utilisation)


def _fleet(team: Team, cores: IntArray, hosts: Hosts) -> _Fleet:
    """Replicas that stay, and new ones by executor and host. They keep their numbers where these are still in use."""
    columns = cores.shape[1]
    wanted = cores.ravel()
    new_host = hosts.moved[team.host_of_replica]
    cells = np.where(new_host == GONE, len(wanted), team.executor_of_replica * columns + new_host)
    missing = wanted - np.bincount(cells, minlength=len(wanted) + 1)[:-1]
    kept = np.arange(len(cells))
    all_stay = int(missing.min()) >= 0 and int(new_host.min()) != GONE
    if not all_stay:
        # The busiest replicas of each executor on each host first: as many stay as it has cores there.
        order = np.lexsort((-team.replica_loads, cells))
        rank = kept - np.searchsorted(cells[order], cells[order])
        kept = np.sort(order[rank < np.append(wanted, 0)[cells[order]]])
        missing = np.maximum(0, missing)
    new = np.repeat(np.arange(len(wanted)), missing)
    both = np.concatenate([cells[kept], new])
    numbers = np.concatenate([kept, np.full(len(new), _NEW, dtype=np.intp)])
    if not all_stay:
        order = _numbered(numbers)
        both, numbers = both[order], numbers[order]
    return _Fleet(both // columns, both % columns, numbers)


def _numbered(numbers: IntArray) -> IntArray:
    """Who comes at each new number: whoever has it already, and where nobody has, the others in turn.

    >>> _numbered(np.array([0, 2, 5, _NEW])).tolist()
    [0, 2, 1, 3]
    """
    stays = (numbers != _NEW) & (numbers < len(numbers))
    order = np.full(len(numbers), _NEW, dtype=np.intp)
    order[numbers[stays]] = np.flatnonzero(stays)
    order[order == _NEW] = np.flatnonzero(~stays)
    return order


def _routed(team: Team, fleet: _Fleet, theta: float) -> tuple[int, ...]:
    there = fleet.numbers != _NEW
    renumbered = np.full(team.placed.replicas, _NEW, dtype=np.intp)
    renumbered[fleet.numbers[there]] = np.flatnonzero(there)
    routes = renumbered[team.routes]
    if team.count == 1:
        return tuple(_balanced(team, 0, routes, fleet.numbers, theta).tolist())
    routes[(routes != _NEW) & (fleet.executors[routes] != team.executor_of_shard)] = _NEW
    for executor in _disturbed(team, fleet, routes, theta):
        members, part = np.flatnonzero(fleet.executors == executor), team.slice(executor)
        own = np.where(routes[part] == _NEW, _NEW, np.searchsorted(members, routes[part]))
        routes[part] = members[_balanced(team, executor, own, fleet.numbers[members], theta)]
    return tuple(routes.tolist())


def _disturbed(team: Team, fleet: _Fleet, routes: IntArray, theta: float) -> list[int]:
    """The executors that have shards without a replica, or a new replica, or replicas that are too far apart."""
    at_home = routes != _NEW
    loads = np.bincount(routes[at_home], weights=team.weights[at_home], minlength=len(fleet.hosts)).astype(np.float64)
    found = set(_apart(team, fleet.executors, loads, theta) if team.seen else ())
    found.update(team.executor_of_shard[~at_home].tolist(), fleet.executors[fleet.numbers == _NEW].tolist())
    return sorted(found)


def _balanced(team: Team, executor: int, routes: IntArray, numbers: IntArray, theta: float) -> IntArray:
    """One executor's shards over its replicas, which had these numbers; routes are by their order here."""
    replicas = len(numbers)
    if replicas == 1:
        return np.zeros(len(routes), dtype=np.intp)
    weights = team.weights[team.slice(executor)]
    total = float(weights.sum())
    if not total > 0:
        weights = np.ones(len(weights))  # it has nothing to do yet, but its shards must be somewhere
    tolerated = _tolerated(total / replicas * team.busy_cores, theta)
    dealt = _filled(_dealt(routes, weights, replicas), weights, replicas, np.flatnonzero(numbers == _NEW).tolist(), tolerated)
    totals = np.bincount(dealt, weights=weights, minlength=replicas)
    if float(totals.max()) <= tolerated * float(weights.sum()) / replicas:
        return dealt
    return np.array(balance(weights, dealt.tolist(), replicas, tolerated), dtype=np.intp)


def _filled(routes: IntArray, weights: FloatArray, replicas: int, fresh: Sequence[int], theta: float) -> IntArray:
    """New replicas get shards of the busiest ones, each time the shard that helps most, up to the mean over theta."""
    if not fresh:
        return routes
    found = routes.copy()
    loads = weights.tolist()
    totals = np.bincount(found, weights=weights, minlength=replicas).tolist()
    held: list[list[int]] = [[] for _ in range(replicas)]
    for shard, replica in enumerate(found.tolist()):
        held[replica].append(shard)
    busiest = [(-totals[replica], replica) for replica in set(range(replicas)).difference(fresh)]
    heapq.heapify(busiest)
    enough = sum(loads) / replicas / theta
    for replica in fresh:
        while busiest and totals[replica] < enough:
            high, giver = -busiest[0][0], busiest[0][1]
            after = [max(high - loads[shard], totals[replica] + loads[shard]) for shard in held[giver]]
            lowest = min(after, default=high)
            if lowest >= high:
                break
            shard = held[giver].pop(after.index(lowest))
            found[shard] = replica
            totals[replica] += loads[shard]
            heapq.heapreplace(busiest, (loads[shard] - high, giver))
    return found


def _dealt(routes: IntArray, weights: FloatArray, replicas: int) -> IntArray:
    """Shards without a replica, the largest first, to whoever has the least to do by then."""
    homeless = np.flatnonzero(routes == _NEW)
    if not len(homeless):
        return routes
    found = routes.copy()
    at_home = routes != _NEW
    totals = np.bincount(routes[at_home], weights=weights[at_home], minlength=replicas)
    shards = np.bincount(routes[at_home], minlength=replicas)
    least = list(zip(totals.tolist(), shards.tolist(), range(replicas), strict=True))
    heapq.heapify(least)
    for shard in homeless[np.argsort(-weights[homeless], kind="stable")].tolist():
        total, count, replica = least[0]
        found[shard] = replica
        heapq.heapreplace(least, (total + float(weights[shard]), count + 1, replica))
    return found
