"""What is free on each host while operators propose one after another, and the host that takes the next replica.

Rules: a host has room for a replica if that leaves it at no more than a given utilisation, and within its memory and network.
Hosts are asked in the order of `nearness`; where none has room a new host is added, if the pool has one. Unlike everything else
in a plan this changes as it is used, and lives no longer than the decision.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from springtide.model.allocation import OperatorAllocation, new_host_names
from springtide.model.observation import FloatArray, HostState
from springtide.model.protocols import View
from springtide.plan.hierarchy.nearness import by_nearness
from springtide.plan.placement.loads import Loads, moves_by_shard
from springtide.plan.placement.packing import Bin
from springtide.plan.thresholds.wording import plural

_EQUAL_DELAY_S = 1.0  # no delay between hosts is observed, and only their ratio matters
_SLACK = 1 + 1e-9  # forgives the rounding of floating-point sums, nothing more
_NEGLIGIBLE_CORES = 1e-9


@dataclass(slots=True)
class Room:
    """`free` has a column for each host: cores up to `utilisation`, bytes of memory, and bytes per second of network."""

    loads: Loads
    utilisation: float
    chance: np.random.Generator
    hosts: list[str]
    free: FloatArray

    @classmethod
    def of(cls, loads: Loads, utilisation: float, chance: np.random.Generator) -> Room:
        bins = loads.bins(loads.view.requested, utilisation)
        return cls(loads, utilisation, chance, [b.host for b in bins], np.array([_column(b) for b in bins]).T)

    @property
    def view(self) -> View:
        return self.loads.view

    def is_overloaded(self, host: str) -> bool:
        return bool(self.free[0, self.hosts.index(host)] < -_NEGLIGIBLE_CORES)

    def called(self, host: str) -> str:
        return host if host in self.view.requested.hosts else f"new {host}"

    def obstacle(self) -> str:
        most = self.view.pool.max_hosts
        limit = f"the pool has only {plural(most, 'host')}" if len(self.hosts) >= most else "a new one would not either"
        return f"no host would stay at {self.utilisation:.2f} or below with it, and {limit}"

    def for_moved(self, operator: str, replica: int) -> str | None:
        """The host that takes over a replica, which leaves its own."""
        placed = self.view.requested.operators[operator]
        uses = self._uses(operator, placed)[:, replica]
        source = self.hosts.index(placed.replica_hosts[replica])
        after = self.free.copy()
        after[:, source] += uses
        return self._taken(after, uses, near=(), apart_from=placed.replica_hosts[replica])

    def for_one_more(self, operator: str) -> str | None:
        """The host that takes an operator's new replica, once all of them have an even share of the load."""
        placed = self.view.requested.operators[operator]
        uses = self._uses(operator, placed)
        share = uses.sum(axis=1) / (placed.replicas + 1)
        given_away = self._by_host(placed.replica_hosts, uses - share[:, None])
        return self._taken(self.free + given_away, share, near=set(placed.replica_hosts))

    def takes(self, operator: str, after: OperatorAllocation, shares: FloatArray) -> bool:
        """Whether an operator can become `after`, with these shares of its load, without overloading a host."""
        placed = self.view.requested.operators[operator]
        uses = self._uses(operator, placed)
        then = self.free + self._by_host(placed.replica_hosts, uses)
        then -= self._by_host(after.replica_hosts, np.outer(uses.sum(axis=1), shares))
        fits = bool(np.all(then[0] >= np.minimum(0.0, self.free[0]) - _NEGLIGIBLE_CORES))
        self.free = then if fits else self.free
        return fits

    def _taken(self, free: FloatArray, uses: FloatArray, near: Collection[str], apart_from: str = "") -> str | None:
        """The host that takes it, when so much would be free; that is what is free from now on, if there is one."""
        seen = self.view.observation.hosts
        leaving = {host for host in self.hosts if host in seen and seen[host].state is HostState.RELEASING}
        closed = {*leaving, apart_from}
        has_room = np.all(uses[:, None] <= free * _SLACK, axis=0).tolist()
        delays_s = {host: 0.0 if host in near else _EQUAL_DELAY_S for host in self.hosts if host not in closed}
        open_hosts = {host for host, fits in zip(self.hosts, has_room, strict=True) if fits}
        host = next((h for h in by_nearness(delays_s, self.chance) if h in open_hosts), None)
        if host is None and len(self.hosts) < self.view.pool.max_hosts:
            (new,) = new_host_names(frozenset({*self.hosts, *seen}), 1)
            empty = np.array(_column(self.loads.empty_bin(new, self.utilisation)))
            if np.all(uses <= empty * _SLACK):
                host, free = new, np.column_stack([free, empty])
                self.hosts.append(new)
        if host is not None:
            self.free = free
            self.free[:, self.hosts.index(host)] -= uses
        return host

    def _uses(self, operator: str, placed: OperatorAllocation) -> FloatArray:
        """What each replica uses: a column for each, with rows as those of `free`."""
        units = self.loads.of_operator(operator, placed)
        uses = np.array([units.cpu_cores, units.memory_bytes, units.network_bytes_per_s])
        if moves_by_shard(self.view.application.operator(operator)):
            at = np.array(placed.shard_replicas, dtype=np.intp)
            uses = np.array([np.bincount(at, weights=row, minlength=placed.replicas) for row in uses], dtype=np.float64)
        return uses

    def _by_host(self, replica_hosts: Sequence[str], amounts: FloatArray) -> FloatArray:
        position = {host: i for i, host in enumerate(self.hosts)}
        at = [position[host] for host in replica_hosts]
        return np.array([np.bincount(at, weights=row, minlength=len(self.hosts)) for row in amounts])


def _column(free: Bin) -> tuple[float, float, float]:
    return free.cpu_cores, free.memory_bytes, free.network_bytes_per_s
