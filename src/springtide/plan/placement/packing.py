"""Which host takes what has to move: first-fit-decreasing bin packing.

T. Heinze, V. Pappalardo, Z. Jerzak, C. Fetzer, "Auto-scaling Techniques for Elastic Data Stream Processing", ICDE Workshops
2014, pp. 296-302, section II, after E. G. Coffman, M. R. Garey, D. S. Johnson, "Approximation Algorithms for Bin Packing: A
Survey", 1996. Units are sorted by CPU load, in decreasing order; each goes to the first host with enough CPU, network and
memory; hosts where neighbouring operators are placed come first. What is not handed in stays where it is.

| in the paper | here |
|---|---|
| item, operator | `Unit`: a shard, or a replica of an operator that does not move by shards (see `loads`) |
| bin, host | `Bin`: what is free on a host |
| allocate a new host | a spare bin, opened when a unit fits nowhere else |

Departures from the paper:

* An operator with shards may have no more replicas than its `replica_limit`. Each host that holds some of its shards needs
  one, so they are spread over no more hosts than that.
* A unit that fits nowhere, not even on a spare host, is reported and not forced on anyone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from springtide.model.application import Application

_SLACK = 1 + 1e-9  # forgives the rounding of floating-point sums, nothing more


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What is placed as a whole, and what it uses: shard or replica `index` of an operator."""

    operator: str
    index: int
    cpu_cores: float
    memory_bytes: float = 0.0
    network_bytes_per_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """What a host has free, less than nothing if it is too full, and how many units of each operator are on it.

    A host that does not receive takes nothing, but what it holds still counts.
    """

    host: str
    cpu_cores: float
    memory_bytes: float
    network_bytes_per_s: float
    units: Mapping[str, int]
    receives: bool = True

    def fits(self, unit: Unit) -> bool:
        return (
            unit.cpu_cores <= self.cpu_cores * _SLACK
            and unit.memory_bytes <= self.memory_bytes * _SLACK
            and unit.network_bytes_per_s <= self.network_bytes_per_s * _SLACK
        )

    def holds_any(self, operators: Iterable[str]) -> bool:
        return any(operator in self.units for operator in operators)

    def plus(self, unit: Unit) -> Bin:
        return self._with(unit, 1)

    def minus(self, unit: Unit) -> Bin:
        return self._with(unit, -1)

    def _with(self, unit: Unit, sign: int) -> Bin:
        units = dict(self.units)
        units[unit.operator] = units.get(unit.operator, 0) + sign
        if not units[unit.operator]:
            del units[unit.operator]
        return replace(
            self,
            cpu_cores=self.cpu_cores - sign * unit.cpu_cores,
            memory_bytes=self.memory_bytes - sign * unit.memory_bytes,
            network_bytes_per_s=self.network_bytes_per_s - sign * unit.network_bytes_per_s,
            units=units,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where each unit goes, which spare hosts that needs, what fits nowhere, and the bins once all that has happened."""

    hosts: Mapping[Unit, str]
    opened: tuple[str, ...]
    unplaced: tuple[Unit, ...]
    bins: tuple[Bin, ...]


def place(units: Iterable[Unit], bins: Sequence[Bin], spare: Sequence[Bin], application: Application) -> Placement:
    """First fit, by decreasing CPU load, on the bins as they come; spare bins are opened in order when nothing else fits.

    The bins are those of all hosts, without the units that are to be placed.
    """
    work = list(bins)
    closed = list(spare)
    hosts: dict[Unit, str] = {}
    unplaced: list[Unit] = []
    hosts_of = Counter(name for b in work for name in b.units)
    for unit in sorted(units, key=lambda u: (-u.cpu_cores, u.operator, u.index)):
        may_spread = hosts_of[unit.operator] < _most_hosts(application, unit.operator)
        found = _first_fit(unit, work, application.neighbours(unit.operator), may_spread)
        if found is None and closed and may_spread and closed[0].fits(unit):
            work.append(closed.pop(0))
            found = len(work) - 1
        if found is None:
            unplaced.append(unit)
            continue
        hosts_of[unit.operator] += unit.operator not in work[found].units
        work[found] = work[found].plus(unit)
        hosts[unit] = work[found].host
    opened = tuple(b.host for b in spare[: len(spare) - len(closed)])
    return Placement(hosts=hosts, opened=opened, unplaced=tuple(unplaced), bins=tuple(work))


def _first_fit(unit: Unit, bins: Sequence[Bin], neighbours: frozenset[str], may_spread: bool) -> int | None:
    """The position of the first bin that can take the unit: first among those that hold neighbours, then among all."""
    elsewhere = None
    for position, candidate in enumerate(bins):
        if not (candidate.receives and candidate.fits(unit) and (may_spread or unit.operator in candidate.units)):
            continue
        if candidate.holds_any(neighbours):
            return position
        if elsewhere is None:
            elsewhere = position
    return elsewhere


def _most_hosts(application: Application, name: str) -> float:
    """Without shards, every unit is a replica that exists already, wherever it goes."""
    operator = application.operator(name)
    return operator.replica_limit if operator.keyed else float("inf")
