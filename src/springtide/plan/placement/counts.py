"""From how many replicas each operator should have, and how many hosts, to an allocation with few moves and even hosts.

Policies that decide numbers all come through here, so that what differs between two of them is what they decide.

* Shards are regrouped first: a replica gives away what it has beyond its even share, what has no replica any more goes, by
  decreasing load, to whoever has the least. No shard moves while the replicas are even enough (Elasticutor's theta).
* Then replicas get hosts: those that are there stay, new and homeless ones go, by decreasing load, to the host with the
  least to do, and while the hosts are not even, a replica of the busiest goes to the idlest if that helps.
* Hosts that go are those that are not there yet, the newest first, and then those with the least to do.

Loads are rows offered times what a row takes, not busy time: a saturated replica is never busier than one core.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from springtide.model.allocation import Allocation, OperatorAllocation, Pool, new_host_names
from springtide.model.application import Operator
from springtide.model.batch import BatchCosts, longest_batches_s
from springtide.model.observation import FloatArray, HostState
from springtide.model.protocols import View
from springtide.plan.placement.balancing import THETA, balance

_LEAST_GAIN = 1e-6  # of the busiest host's load
_EVEN_ENOUGH = 0.1  # of the gap between two hosts: what a shard's move must at least close
_HOMELESS = -1  # the replica of a shard that has none
_ROUNDING = 1e-9
_MOST_DEALT = 128  # shards
_NEGLIGIBLE_CORES = 1e-6  # what an idle replica counts as, so that idle ones are spread too


@dataclass(slots=True)
class _Replica:
    """One replica of the allocation to be: its host, none as long as it has not got one."""

    operator: int
    cores: float
    host: int | None


def hosts_for(pool: Pool, cores: float) -> int:
    """How many hosts have so many cores, within what the pool allows.

    >>> hosts_for(Pool(max_hosts=10), 8.0), hosts_for(Pool(max_hosts=10), 8.1), hosts_for(Pool(max_hosts=2), 40.0)
    (2, 3, 2)
    """
    return min(max(math.ceil(cores / pool.host.cores - 1e-9), pool.min_hosts), pool.max_hosts)


def demand_cores(view: View, demand_rows_per_s: Mapping[str, float] | None = None) -> dict[str, float]:
    """How many cores each operator's demand keeps busy: the present one, or one that is only thought of."""
    demand = view.demand_rows_per_s if demand_rows_per_s is None else demand_rows_per_s
    return {o.name: demand.get(o.name, 0.0) * service_time_s(view, o) for o in view.application.operators}


def service_time_s(view: View, operator: Operator) -> float:
    """As measured, or as the application says while nothing has been."""
    seen = view.observation.operators.get(operator.name)
    return seen.service_time_s if seen is not None and seen.service_time_s > 0 else operator.service_time_s


def allocate(view: View, replicas: Mapping[str, int], hosts: int | None = None, *, theta: float = THETA) -> Allocation:
    """The requested allocation with these numbers of replicas, and so many hosts.

    Operators that are not named keep their replicas, and without `hosts` there are as many hosts as there are. Numbers are
    kept within what the operators and the pool allow. What is there already is returned as it is.
    """
    now = view.requested
    pool = view.pool
    count = len(now.hosts) if hosts is None else min(max(hosts, pool.min_hosts), pool.max_hosts)
    names = _hosts(view, count)
    position = {host: i for i, host in enumerate(names)}
    cores = demand_cores(view)
    routes: list[tuple[int, ...]] = []
    fleet: list[_Replica] = []
    changed = names != now.hosts
    for i, operator in enumerate(view.application.operators):
        placed = now.operators[operator.name]
        wanted = min(max(1, replicas.get(operator.name, placed.replicas)), operator.replica_limit)
        kept = _kept(placed, wanted, position)
        shard_replicas, loads = _routed(view, operator, kept, wanted, theta)
        loads *= cores[operator.name]
        routes.append(shard_replicas)
        homes = [position.get(placed.replica_hosts[r]) for r in kept]
        homes += [None] * (wanted - len(kept))
        fleet += [_Replica(i, max(load, _NEGLIGIBLE_CORES), home) for load, home in zip(loads.tolist(), homes, strict=True)]
    _settle(fleet, len(names), pool.host.cores, theta=1.0 if changed else theta)
    if view.observation.in_batches:
        routes = _even_batches(view, fleet, routes, len(names))
    return _built(view, names, fleet, routes)


def _hosts(view: View, count: int) -> tuple[str, ...]:
    """The hosts that stay, in their order, and new ones behind them."""
    now = view.requested.hosts
    taken = frozenset({*now, *view.observation.hosts})
    if count >= len(now):
        return (*now, *new_host_names(taken, count - len(now)))
    seen = view.observation.hosts
    order = {host: i for i, host in enumerate(now)}

    def worth(host: str) -> tuple[bool, float, int]:
        there = host in seen and seen[host].state is HostState.RUNNING
        return there, seen[host].utilisation if there else 0.0, -order[host]

    staying = set(sorted(now, key=worth, reverse=True)[:count])
    return tuple(host for host in now if host in staying)


def _kept(placed: OperatorAllocation, wanted: int, position: Mapping[str, int]) -> list[int]:
    """The replicas that remain: those on hosts that stay before the others, and then the first ones."""
    if placed.replicas <= wanted:
        return list(range(placed.replicas))
    staying_first = sorted(range(placed.replicas), key=lambda r: placed.replica_hosts[r] not in position)
    return sorted(staying_first[:wanted])


def _routed(
    view: View, operator: Operator, kept: Sequence[int], wanted: int, theta: float
) -> tuple[tuple[int, ...], FloatArray]:
    """Each shard's replica, by their new numbers, and each replica's share of the operator's load."""
    placed = view.requested.operators[operator.name]
    if not operator.keyed:
        return (), np.full(wanted, 1.0 / wanted)
    weights = shard_weights(view, operator, placed)
    if list(kept) == list(range(placed.replicas)) and wanted == placed.replicas:
        routes = np.array(placed.shard_replicas, dtype=np.intp)
    else:
        number = np.full(placed.replicas, _HOMELESS, dtype=np.intp)
        number[list(kept)] = np.arange(len(kept))
        routes = number[np.array(placed.shard_replicas, dtype=np.intp)]
        routes = dealt(routes, weights, wanted)
    even = balance(weights, routes.tolist(), wanted, theta)
    return even, np.bincount(np.array(even), weights=weights, minlength=wanted).astype(np.float64)


def shard_weights(view: View, operator: Operator, placed: OperatorAllocation) -> FloatArray:
    """The share of the operator's time that each shard takes: by its rows, and in batches also for being opened and committed.

    In batches it is the time in the longest one that the objective allows: hosts have to be even when there is most to do.

    While none were seen, what is known of the shards is where they are: every replica that has some is taken to have as much
    to do as the others. Even shares would move a hot shard's neighbours back to it whenever rows fail to come for an interval.
    """
    shards = len(placed.shard_replicas)
    seen = view.observation.operators.get(operator.name)
    if seen is None or len(seen.shards.rows) != shards or not (total := float(seen.shards.rows.sum())) > 0:
        return _weights_by_place(placed)
    weights: FloatArray = seen.shards.rows / total
    return weights if seen.costs is None else _weights_in_batch(view, operator, seen.costs, weights)


def _weights_in_batch(view: View, operator: Operator, costs: BatchCosts, weights: FloatArray) -> FloatArray:
    slots = max(1, len(view.requested.hosts)) * view.pool.host.cores
    tasks = view.requested.operators[operator.name].replicas
    longest_s = longest_batches_s(view.application)[operator.name]
    rows = costs.rows_within(longest_s, tasks=tasks, shards=operator.shards, slots=slots)
    if not math.isfinite(rows):  # they cost nothing
        return np.full(len(weights), 1 / len(weights))
    times_s = costs.shard_s.value + costs.row_s.value * rows * weights
    found: FloatArray = times_s / times_s.sum()
    return found


def _weights_by_place(placed: OperatorAllocation) -> FloatArray:
    routes = np.array(placed.shard_replicas, dtype=np.intp)
    held = np.bincount(routes, minlength=placed.replicas)
    weights: FloatArray = 1.0 / (held[routes] * np.count_nonzero(held))
    return weights


def dealt(routes: NDArray[np.intp], weights: FloatArray, replicas: int) -> NDArray[np.intp]:
    """Shards without a replica (-1), and what replicas have beyond an even share, dealt to those that have least.

    >>> dealt(np.array([0, 0, 0, 0]), np.full(4, 0.25), 2).tolist()
    [0, 0, 1, 1]
    """
    dealt = routes.copy()
    dealt[_surplus(routes, weights, float(weights.sum()) / replicas * (1 + _ROUNDING))] = _HOMELESS
    served = dealt != _HOMELESS
    totals = np.bincount(dealt[served], weights=weights[served], minlength=replicas)
    homeless = np.flatnonzero(~served)
    least = [(total, replica) for replica, total in enumerate(totals.tolist())]
    heapq.heapify(least)
    for shard in homeless[np.argsort(-weights[homeless], kind="stable")].tolist():
        total, replica = least[0]
        dealt[shard] = replica
        heapq.heapreplace(least, (total + float(weights[shard]), replica))
    return dealt


def _surplus(routes: NDArray[np.intp], weights: FloatArray, fair: float) -> NDArray[np.intp]:
    """What replicas have beyond a fair share: each keeps its largest shards up to that, and one at least."""
    order = np.lexsort((-weights, routes))
    replica, load = routes[order], weights[order]
    first = np.searchsorted(replica, replica)  # where each replica's shards begin
    summed = np.cumsum(load)
    kept = summed - (summed - load)[first]
    beyond = (kept > fair) & (np.arange(len(order)) > first) & (replica != _HOMELESS)
    surplus: NDArray[np.intp] = order[beyond]
    return surplus


def _settle(fleet: Sequence[_Replica], hosts: int, cores: int, *, theta: float) -> None:
    """Give every replica a host, and move replicas while the busiest host has more than `theta` times the mean."""
    totals = [0.0] * hosts
    for replica in fleet:
        if replica.host is not None:
            totals[replica.host] += replica.cores
    least = [(total, host) for host, total in enumerate(totals)]
    heapq.heapify(least)
    for replica in sorted((r for r in fleet if r.host is None), key=lambda r: -r.cores):
        total, host = least[0]
        replica.host = host
        totals[host] = total + replica.cores
        heapq.heapreplace(least, (totals[host], host))
    if hosts > 1:
        _even_out(fleet, totals, cores, theta)


def _even_out(fleet: Sequence[_Replica], totals: list[float], cores: int, theta: float) -> None:
    on: list[list[_Replica]] = [[] for _ in totals]
    for replica in fleet:
        assert replica.host is not None
        on[replica.host].append(replica)
    mean = sum(totals) / len(totals)
    for _ in range(len(fleet)):
        busiest = max(range(len(totals)), key=totals.__getitem__)
        idlest = min(range(len(totals)), key=totals.__getitem__)
        if totals[busiest] <= theta * mean or (totals[busiest] <= cores / 2 and theta > 1):
            return
        gap = totals[busiest] - totals[idlest]
        movable = [r for r in on[busiest] if r.cores < gap * (1 - _LEAST_GAIN)]
        if not movable:
            return
        chosen = min(movable, key=lambda r: abs(gap / 2 - r.cores))
        on[busiest].remove(chosen)
        on[idlest].append(chosen)
        totals[busiest] -= chosen.cores
        totals[idlest] += chosen.cores
        chosen.host = idlest


def _even_batches(
    view: View, fleet: Sequence[_Replica], routes: Sequence[tuple[int, ...]], hosts: int
) -> list[tuple[int, ...]]:
    """Shards moved from the busiest host to the idlest while that makes the busiest less busy: a batch waits for it.

    Replicas of several shards each are too coarse for that: 8 shards in 6 replicas on 3 hosts may be 4, 2 and 2.
    """
    cores = demand_cores(view)
    changed = [list(route) for route in routes]
    at: list[list[_Replica]] = [[] for _ in routes]
    for replica in fleet:
        at[replica.operator].append(replica)
    loads = [
        shard_weights(view, o, view.requested.operators[o.name]) * cores[o.name] if o.keyed else np.zeros(0)
        for o in view.application.operators
    ]
    totals = [0.0] * hosts
    for replica in fleet:
        assert replica.host is not None
        totals[replica.host] += replica.cores
    for _ in range(sum(map(len, routes))):
        busiest = max(range(hosts), key=totals.__getitem__)
        idlest = min(range(hosts), key=totals.__getitem__)
        gap = totals[busiest] - totals[idlest]
        movable = [
            (abs(gap / 2 - float(loads[i][shard])), i, shard)
            for i, route in enumerate(changed)
            if any(r.host == idlest for r in at[i])
            for shard, replica in enumerate(route)
            if at[i][replica].host == busiest and 0 < float(loads[i][shard]) < gap * (1 - _EVEN_ENOUGH)
        ]
        if not movable:
            break
        _, i, shard = min(movable)
        load, before = float(loads[i][shard]), at[i][changed[i][shard]]
        to = min((r for r in range(len(at[i])) if at[i][r].host == idlest), key=lambda r: (at[i][r].cores, r))
        changed[i][shard] = to
        before.cores -= load
        at[i][to].cores += load
        totals[busiest] -= load
        totals[idlest] += load
    return [tuple(route) for route in changed]


def _built(view: View, hosts: tuple[str, ...], fleet: Sequence[_Replica], routes: Sequence[tuple[int, ...]]) -> Allocation:
    now = view.requested
    replica_hosts: list[list[str]] = [[] for _ in routes]
    for replica in fleet:
        assert replica.host is not None
        replica_hosts[replica.operator].append(hosts[replica.host])
    operators: dict[str, OperatorAllocation] = {}
    same = hosts == now.hosts
    for operator, its_hosts, shard_replicas in zip(view.application.operators, replica_hosts, routes, strict=True):
        before = now.operators[operator.name]
        if before.replica_hosts == tuple(its_hosts) and before.shard_replicas == shard_replicas:
            operators[operator.name] = before
        else:
            operators[operator.name] = OperatorAllocation(tuple(its_hosts), shard_replicas)
            same = False
    return now if same else Allocation(hosts, operators)


def predict_skew(weights: FloatArray, slots: int) -> float:
    """The busiest slot's weight over the mean if weights are dealt out, the largest first, each to the emptiest slot.

    >>> predict_skew(np.full(8, 1 / 8), 4), predict_skew(np.full(8, 1 / 8), 3), predict_skew(np.array([0.5, 0.25, 0.25]), 8)
    (1.0, 1.125, 4.0)
    """
    total = float(weights.sum())
    if total <= 0 or slots <= 1:
        return 1.0
    mean = total / slots
    if len(weights) > _MOST_DEALT:  # so many are dealt out evenly, but for one that is too large
        return max(1.0, float(weights.max()) / mean)
    filled = [0.0] * slots
    for weight in np.sort(weights)[::-1].tolist():
        heapq.heapreplace(filled, filled[0] + weight)
    return max(1.0, max(filled) / mean)
