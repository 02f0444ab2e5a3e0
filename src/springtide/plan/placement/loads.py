"""From what was measured to what every unit and every host carries.

A unit is what is placed as a whole (FUGU's operator, Heinze et al. 2014, section II):

* a shard, of a keyed operator that may have several replicas;
* a replica, of any other operator. A keyed operator that may have one replica only is thus one unit with all its shards.

The units on a host carry together the host's utilisation. A shard carries what its rows took, and an even share of what its
replica did besides; in batches, its part of its replica's utilisation by the time that each shard took (every one is opened
and committed, rows or none). Where replicas had to wait for a core, they carry the part of their time for which they had one.

Loads are those of the interval just measured, and can be added up at other places than those measured: the places that were
requested, or that are only being thought of. Rules: nothing is computed before it is asked for, and units are built only for
the hosts asked about, because an application may have tens of thousands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.model.application import Operator
from springtide.model.observation import FloatArray, OperatorObservation
from springtide.model.protocols import View
from springtide.plan.placement.packing import Bin, Unit


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnitLoads:
    """What each unit of one operator uses; the position is the number of the shard or replica."""

    cpu_cores: FloatArray
    memory_bytes: FloatArray
    network_bytes_per_s: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLoad:
    """What a host's units use together, and how many of each operator there are."""

    cpu_cores: float
    memory_bytes: float
    network_bytes_per_s: float
    units: Mapping[str, int]


def moves_by_shard(operator: Operator) -> bool:
    return operator.keyed and operator.replica_limit > 1


def unit_hosts(operator: Operator, placed: OperatorAllocation) -> tuple[str, ...]:
    """The host of each unit."""
    if moves_by_shard(operator):
        return tuple(map(placed.replica_hosts.__getitem__, placed.shard_replicas))
    return placed.replica_hosts


@dataclass(frozen=True, eq=False)
class Loads:
    """The loads measured in a view."""

    view: View
    _found: dict[tuple[str, int], UnitLoads] = field(default_factory=dict, repr=False)

    def of_operator(self, name: str, placed: OperatorAllocation) -> UnitLoads:
        """What each unit uses; nothing for an operator of which nothing was measured."""
        # Only the number of units matters, not where they are; a plan asks for the same many times.
        count = len(placed.shard_replicas) or placed.replicas
        if (name, count) not in self._found:
            self._found[name, count] = self._of_operator(name, placed)
        return self._found[name, count]

    def _of_operator(self, name: str, placed: OperatorAllocation) -> UnitLoads:
        operator = self.view.application.operator(name)
        count = len(placed.shard_replicas) if moves_by_shard(operator) else placed.replicas
        seen = self.view.observation.operators.get(name)
        if seen is None:
            return UnitLoads(cpu_cores=np.zeros(count), memory_bytes=np.zeros(count), network_bytes_per_s=np.zeros(count))
        return UnitLoads(
            cpu_cores=_per_unit(self._cpu_cores(operator, seen), count),
            memory_bytes=_per_unit(seen.shards.state_bytes, count) + operator.memory_bytes / count,
            network_bytes_per_s=_per_unit(seen.shards.rows, count) * (operator.row_bytes / self.view.observation.interval_s),
        )

    def _cpu_cores(self, operator: Operator, seen: OperatorObservation) -> FloatArray:
        """What each unit used at the place where it was measured."""
        placed = self.view.observation.observed.operators[operator.name]
        had_core = np.array([self._had_core.get(host, 1.0) for host in placed.replica_hosts])
        cores: FloatArray = seen.replica_utilisation * had_core
        if not moves_by_shard(operator):
            return cores
        at = np.array(placed.shard_replicas)
        shards = np.maximum(1, np.bincount(at, minlength=placed.replicas))
        if seen.costs is None:
            for_rows = seen.shards.busy_s / self.view.observation.interval_s
            besides = seen.replica_utilisation - np.bincount(at, weights=for_rows, minlength=placed.replicas)
            cores = (for_rows + np.maximum(0.0, besides / shards)[at]) * had_core[at]
            return cores
        busy_s = np.bincount(at, weights=seen.shards.busy_s, minlength=placed.replicas)
        of_replica = np.divide(seen.shards.busy_s, busy_s[at], out=1.0 / shards[at], where=busy_s[at] > 0)
        cores = cores[at] * of_replica
        return cores

    @cached_property
    def _had_core(self) -> dict[str, float]:
        """For each host, its utilisation over that of its replicas: below 1 where they had to wait for a core, above where the
        host is fuller than each of them would make it alone."""
        observation = self.view.observation
        busy = dict.fromkeys(observation.hosts, 0.0)
        for name, seen in observation.operators.items():
            hosts = observation.observed.operators[name].replica_hosts
            for host, utilisation in zip(hosts, seen.replica_utilisation.tolist(), strict=True):
                busy[host] = busy.get(host, 0.0) + utilisation
        most = np.inf if observation.in_batches else 1.0
        return {
            host: min(most, seen.utilisation * seen.cores / busy[host])
            for host, seen in observation.hosts.items()
            if busy[host] > 0
        }

    def units_on(self, allocation: Allocation, host: str) -> tuple[Unit, ...]:
        """Every unit on the host, by operator in the allocation's order and by index."""
        found: list[Unit] = []
        for name in allocation.operators_on(host):
            placed = allocation.operators[name]
            loads = self.of_operator(name, placed)
            found += (
                Unit(
                    operator=name,
                    index=i,
                    cpu_cores=float(loads.cpu_cores[i]),
                    memory_bytes=float(loads.memory_bytes[i]),
                    network_bytes_per_s=float(loads.network_bytes_per_s[i]),
                )
                for i, its_host in enumerate(unit_hosts(self.view.application.operator(name), placed))
                if its_host == host
            )
        return tuple(found)

    def by_host(self, allocation: Allocation) -> dict[str, HostLoad]:
        """What each host of the allocation carries, in the allocation's order."""
        position = {host: i for i, host in enumerate(allocation.hosts)}
        units: list[dict[str, int]] = [{} for _ in position]
        at: list[int] = []
        found = []
        for name, placed in allocation.operators.items():
            found.append(self.of_operator(name, placed))
            its_hosts = list(map(position.__getitem__, unit_hosts(self.view.application.operator(name), placed)))
            at += its_hosts
            for i, count in Counter(its_hosts).items():
                units[i][name] = count
        columns = ([u.cpu_cores for u in found], [u.memory_bytes for u in found], [u.network_bytes_per_s for u in found])
        totals = np.array([np.bincount(at, weights=np.concatenate(c), minlength=len(position)) for c in columns])
        return {
            host: HostLoad(cpu_cores=cpu, memory_bytes=memory, network_bytes_per_s=network, units=units[i])
            for (host, i), (cpu, memory, network) in zip(position.items(), totals.T.tolist(), strict=True)
        }

    def bins(self, allocation: Allocation, utilisation: float) -> tuple[Bin, ...]:
        """What is free on each host if its cores are used up to a limit, and its memory and network entirely."""
        return tuple(self._bin(host, load, utilisation) for host, load in self.by_host(allocation).items())

    def empty_bin(self, host: str, utilisation: float) -> Bin:
        """What a new host has free."""
        nothing = HostLoad(cpu_cores=0.0, memory_bytes=0.0, network_bytes_per_s=0.0, units={})
        return self._bin(host, nothing, utilisation)

    def _bin(self, host: str, load: HostLoad, utilisation: float) -> Bin:
        offers = self.view.pool.host
        return Bin(
            host=host,
            cpu_cores=offers.cores * utilisation - load.cpu_cores,
            memory_bytes=offers.memory_bytes - load.memory_bytes,
            network_bytes_per_s=offers.bandwidth_bytes_per_s - load.network_bytes_per_s,
            units=load.units,
        )

    def highest_utilisation(self, planned: Allocation) -> float | None:
        """Of the busiest host: as measured while nothing changes, else as the loads add up where they will be."""
        if planned is self.view.requested:
            return max((h.utilisation for h in self.view.observation.running_hosts), default=None)
        return max(load.cpu_cores for load in self.by_host(planned).values()) / self.view.pool.host.cores


def _per_unit(measured: FloatArray, count: int) -> FloatArray:
    """As measured; evenly if the allocation asked about has another number of replicas than the one measured."""
    return measured if len(measured) == count else np.full(count, measured.sum() / count)
