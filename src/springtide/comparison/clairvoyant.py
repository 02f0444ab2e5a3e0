"""The cheapest supply of hosts for a load that is known beforehand: what a policy on real Spark can be compared with.

First the demand curve is measured: how high a rate each number of hosts carries within the objective. Then the cheapest way is
found through the numbers of hosts over time, with at least as many as the curve asks for at every moment. A host is paid for
while it starts and while it goes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from springtide.errors import require
from springtide.model.observation import FloatArray
from springtide.plan.horizon.path import Moves, cheapest_path

_TOO_FEW = 1e9  # core-seconds: no way goes through a number of hosts that is too small if another one exists


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One rate on a fixed number of hosts, and whether the objective was kept."""

    hosts: int
    rows_per_s: float
    kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandCurve:
    """`carried_per_s[i]` is the highest rate that `hosts[i]` hosts carry within the objective; both ascend."""

    hosts: tuple[int, ...]
    carried_per_s: tuple[float, ...]

    def __post_init__(self) -> None:
        require(bool(self.hosts), "a demand curve needs one number of hosts at least")
        require(list(self.hosts) == sorted(set(self.hosts)), "the hosts of a demand curve must ascend")
        require(list(self.carried_per_s) == sorted(self.carried_per_s), "more hosts cannot carry less")

    @classmethod
    def of(cls, measured: Iterable[Measured]) -> DemandCurve:
        """For each number of hosts, the highest rate below the lowest one that it missed the objective at; more hosts carry
        what fewer do."""
        by_hosts: dict[int, list[Measured]] = {}
        for one in measured:
            by_hosts.setdefault(one.hosts, []).append(one)
        carried, most = [], 0.0
        for _, runs in sorted(by_hosts.items()):
            missed = min((run.rows_per_s for run in runs if not run.kept), default=math.inf)
            most = max([most, *(run.rows_per_s for run in runs if run.kept and run.rows_per_s < missed)])
            carried.append(most)
        return cls(hosts=tuple(sorted(by_hosts)), carried_per_s=tuple(carried))

    def hosts_for(self, rows_per_s: FloatArray) -> NDArray[np.int64]:
        """The fewest hosts for each rate; the most that were measured for a rate that none of them carries.

        >>> DemandCurve(hosts=(1, 2, 4), carried_per_s=(60.0, 120.0, 230.0)).hosts_for(np.array([0.0, 60.0, 61.0, 500.0]))
        array([1, 1, 2, 4])
        """
        at = np.searchsorted(np.array(self.carried_per_s), rows_per_s, side="left")
        return np.array(self.hosts, dtype=np.int64)[np.minimum(at, len(self.hosts) - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """Hosts at every step, and what they cost with those that start and go."""

    hosts: NDArray[np.int64]
    core_s: float


def cheapest_supply(
    demand: NDArray[np.int64], *, step_s: float, cores: int, start_s: float, release_s: float, begins_with: int
) -> Supply:
    """The cheapest numbers of hosts with which the demand of every step is met."""
    require(len(demand) > 0 and step_s > 0, "the demand of one step at least is needed")
    sizes = np.arange(1, max(int(demand.max()), begins_with) + 1)
    stages = np.where(sizes < demand[:, np.newaxis], _TOO_FEW, 0.0) + sizes * (cores * step_s)
    path = cheapest_path(stages, sizes, begins_with, Moves(up=cores * start_s, down=cores * release_s, change=0.0))
    changes = np.diff(np.concatenate([[begins_with], path]))
    moving_s = start_s * np.maximum(0, changes).sum() + release_s * np.maximum(0, -changes).sum()
    return Supply(hosts=path, core_s=float(cores * (path.sum() * step_s + moving_s)))
