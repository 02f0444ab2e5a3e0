"""From what was measured to what every unit and every host carries.

A unit is what is placed as a whole (FUGU's operator, Heinze et al. 2014, section II):

* a shard, of a keyed operator that may have several replicas;
* a replica, of any other operator. A keyed operator that may have one replica only is thus one unit with all its shards.

Loads are those of the interval just measured, at the place the units have in the allocation that is asked about; so they
can be added up for an allocation that has been requested and is not there yet, or is only being thought of. Rules: units
are built only for the hosts asked for, because an application may have tens of thousands; sums are made with numpy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.model.application import Operator
from springtide.model.observation import FloatArray
from springtide.model.protocols import View
from springtide.plan.placement import Bin, Unit


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
        return tuple(placed.replica_hosts[r] for r in placed.shard_replicas)
    return placed.replica_hosts


def unit_loads(view: View, name: str, placed: OperatorAllocation) -> UnitLoads:
    """The measured load of each unit; nothing for an operator of which nothing was measured."""
    operator = view.application.operator(name)
    count = len(placed.shard_replicas) if moves_by_shard(operator) else placed.replicas
    seen = view.observation.operators.get(name)
    if seen is None:
        return UnitLoads(cpu_cores=np.zeros(count), memory_bytes=np.zeros(count), network_bytes_per_s=np.zeros(count))
    interval_s = view.observation.interval_s
    return UnitLoads(
        cpu_cores=_per_unit(seen.shards.busy_s, count) / interval_s,
        memory_bytes=_per_unit(seen.shards.state_bytes, count) + operator.memory_bytes / count,
        network_bytes_per_s=_per_unit(seen.shards.rows, count) * (operator.row_bytes / interval_s),
    )


def _per_unit(measured: FloatArray, count: int) -> FloatArray:
    """As measured; evenly if the allocation asked about has another number of replicas than the one measured."""
    return measured if len(measured) == count else np.full(count, measured.sum() / count)


def units_on(view: View, allocation: Allocation, host: str) -> tuple[Unit, ...]:
    """Every unit on the host, by operator in the allocation's order and by index."""
    found: list[Unit] = []
    for name in allocation.operators_on(host):
        placed = allocation.operators[name]
        loads = unit_loads(view, name, placed)
        found += (
            Unit(
                operator=name,
                index=i,
                cpu_cores=float(loads.cpu_cores[i]),
                memory_bytes=float(loads.memory_bytes[i]),
                network_bytes_per_s=float(loads.network_bytes_per_s[i]),
            )
            for i, its_host in enumerate(unit_hosts(view.application.operator(name), placed))
            if its_host == host
        )
    return tuple(found)


def host_loads(view: View, allocation: Allocation) -> dict[str, HostLoad]:
    """What each host of the allocation carries, in the allocation's order."""
    position = {host: i for i, host in enumerate(allocation.hosts)}
    totals = np.zeros((3, len(position)))
    units: list[dict[str, int]] = [{} for _ in position]
    for name, placed in allocation.operators.items():
        loads = unit_loads(view, name, placed)
        at = np.array([position[host] for host in placed.replica_hosts])
        if moves_by_shard(view.application.operator(name)):
            at = at[np.array(placed.shard_replicas)]
        for row, load in enumerate((loads.cpu_cores, loads.memory_bytes, loads.network_bytes_per_s)):
            totals[row] += np.bincount(at, weights=load, minlength=len(position))
        for i, count in enumerate(np.bincount(at).tolist()):
            if count:
                units[i][name] = count
    return {
        host: HostLoad(
            cpu_cores=float(totals[0, i]),
            memory_bytes=float(totals[1, i]),
            network_bytes_per_s=float(totals[2, i]),
            units=units[i],
        )
        for host, i in position.items()
    }


def bins(view: View, allocation: Allocation, utilisation: float) -> tuple[Bin, ...]:
    """What is free on each host if its cores are used up to a limit, and its memory and network entirely."""
    return tuple(_bin(view, host, load, utilisation) for host, load in host_loads(view, allocation).items())


def empty_bin(view: View, host: str, utilisation: float) -> Bin:
    """What a new host has free."""
    return _bin(view, host, HostLoad(cpu_cores=0.0, memory_bytes=0.0, network_bytes_per_s=0.0, units={}), utilisation)


def _bin(view: View, host: str, load: HostLoad, utilisation: float) -> Bin:
    offers = view.pool.host
    return Bin(
        host=host,
        cpu_cores=offers.cores * utilisation - load.cpu_cores,
        memory_bytes=offers.memory_bytes - load.memory_bytes,
        network_bytes_per_s=offers.bandwidth_bytes_per_s - load.network_bytes_per_s,
        units=load.units,
    )


def expected_utilisation(view: View, planned: Allocation) -> float | None:
    """The busiest host's utilisation: as measured while nothing changes, else as the loads add up where they will be."""
    if planned is view.requested:
        return max((h.utilisation for h in view.observation.running_hosts), default=None)
    return max(load.cpu_cores for load in host_loads(view, planned).values()) / view.pool.host.cores
