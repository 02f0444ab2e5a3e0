"""How many hosts the executors' cores need, which ones go, and who gives up its core there.

Elasticutor has a fixed cluster, all of whose cores have owners. Here hosts are rented, so this is a departure as a whole:

* one replica has one core, and there are as many hosts as that takes, within what the pool allows;
* if the pool's cores can carry the load, but not with a core for each replica, replicas share cores: every host has room
  for equally many. If they cannot even carry the load, only the one replica that every executor needs is allowed to share;
* hosts that go are those that are not there yet, the newest first, and then those with the least state on them. Executors
  lose their cores there, and Algorithm 1 finds them others;
* where a host has more replicas than room, or an executor more than it may have, cores are given up in the order of
  Algorithm 1: by executors with more than they need first, and where it moves the least state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from springtide.model.allocation import Pool, new_host_names
from springtide.model.observation import FloatArray, HostState
from springtide.model.protocols import View
from springtide.plan.executors.assignment import Wants, deallocation_cost
from springtide.plan.executors.measuring import IntArray
from springtide.plan.sizing.jackson import Network

GONE = -1  # the place of a host that goes
_ROUNDING = 1e-9  # of the cores: demand that is what the cores can do must not be below it in one interval and not in the next


def available_cores(network: Network, pool: Pool) -> int:
    """How many cores there are to give to executors, if all hosts are rented; more than that where they have to share."""
    cores = pool.max_hosts * pool.host.cores
    stable = sum(network.stable_servers)
    carried = sum(map(min, network.offered, network.most_servers)) < cores * (1 - _ROUNDING)
    return max(cores, stable if carried else len(network.arrivals_per_s))


def room_per_host(pool: Pool, hosts: int, wanted: int) -> int:
    """How many replicas a host takes: one per core, unless more are wanted than there are cores.

    >>> room_per_host(Pool(), 3, 12), room_per_host(Pool(), 3, 13)
    (4, 5)
    """
    return max(pool.host.cores, -(-wanted // hosts))


def kept_hosts(view: View, cores: IntArray, state_bytes: FloatArray, count: int) -> tuple[str, ...]:
    """The hosts that stay, in their order, and new ones behind them; `cores[j, i]` is of the i-th host requested."""
    now = view.requested.hosts
    if count >= len(now):
        return (*now, *new_host_names(frozenset({*now, *view.observation.hosts}), count - len(now)))
    seen = view.observation.hosts
    held = (state_bytes / np.maximum(1, cores.sum(axis=1))) @ cores
    replicas = cores.sum(axis=0)

    def worth(i: int) -> tuple[bool, float, int, int]:
        there = now[i] in seen and seen[now[i]].state is HostState.RUNNING
        return there, float(held[i]), int(replicas[i]), -i

    staying = sorted(range(len(now)), key=worth, reverse=True)[:count]
    return tuple(now[i] for i in sorted(staying))


@dataclass(frozen=True, slots=True, eq=False)
class Hosts:
    """The hosts there will be; `moved[i]` is the place among them of the i-th host there was, or GONE."""

    after: tuple[str, ...]
    moved: IntArray

    @classmethod
    def between(cls, before: tuple[str, ...], after: tuple[str, ...]) -> Hosts:
        if before == after:
            return cls(after, np.arange(len(before)))
        position = {host: i for i, host in enumerate(after)}
        return cls(after, np.array([position.get(host, GONE) for host in before], dtype=np.intp))

    def on_those_after(self, cores: IntArray) -> IntArray:
        """An assignment to the hosts before as one to the hosts after; cores of hosts that go are lost."""
        found = np.zeros((len(cores), len(self.after)), dtype=np.intp)
        stays = self.moved != GONE
        found[:, self.moved[stays]] = cores[:, stays]
        return found


def within_room(wants: Wants, cores: IntArray, most: IntArray) -> IntArray:
    """The assignment without what hosts have no room for, and executors no right to."""
    found = cores.copy()
    totals = found.sum(axis=1)
    for j in np.flatnonzero(totals > most).tolist():
        while totals[j] > most[j]:
            costs = np.where(found[j] > 0, deallocation_cost(wants.state_bytes[j], found[j]), np.inf)
            found[j, int(costs.argmin())] -= 1
            totals[j] -= 1
    used = found.sum(axis=0)
    for i in np.flatnonzero(used > wants.capacity).tolist():
        for _ in range(int(used[i] - wants.capacity[i])):
            j = _gives_up(wants, found[:, i], totals)
            found[j, i] -= 1
            totals[j] -= 1
    return found


def _gives_up(wants: Wants, here: IntArray, totals: IntArray) -> int:
    """The executor that gives up a core of one host; `here[j]` are the cores it has on it, C- its price."""
    with_more = (here > 0) & (totals > wants.wanted)
    among = np.flatnonzero(with_more if with_more.any() else here > 0)
    total = totals[among]
    costs = wants.state_bytes[among] * np.where(total > 1, (total - here[among]) / (total * np.maximum(1, total - 1)), 1.0)
    return int(among[costs.argmin()])
