"""How much of what can be done within the objective was done: utilisation, where rows are processed in batches.

With the longest batch T that the objective allows (`model.batch.longest_batches_s`), a slot has T less the driver's time A for
the tasks of a batch. What those take whatever their rows (batch, task, shard) is gone; the rest is for rows. So rows that come
at the rate L and take D each use

    utilisation = L D / (1 - A / T - (fixed slot time of a batch) / T)

of it: 1 where the objective is just kept, whatever share of the time the slots are busy. Where rows are processed one by one,
nothing is fixed, and it is the busy share.

On a host that several operators share, the driver's time of one is used by the others; only the least of them is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from springtide.model.allocation import Allocation
from springtide.model.batch import BatchCosts
from springtide.model.observation import FloatArray

_LEAST_ROOM = 0.02  # of a slot's time: an objective that leaves less cannot be kept, and any row is too much


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OperatorBatches:
    """The batches of one operator over an interval. Element r of the arrays is replica r: the rows that it had to process
    (`count_rows_due`), and its shards."""

    costs: BatchCosts
    longest_s: float
    replica_rows: FloatArray
    replica_shards: FloatArray

    @property
    def driver_share(self) -> float:
        return self.costs.driver_s.value / self.longest_s

    def fixed_shares(self) -> FloatArray:
        """The share of a slot's time that each replica takes without any rows."""
        costs = self.costs
        own_s = costs.task_s.value + costs.shard_s.value * self.replica_shards
        shares: FloatArray = (own_s + costs.batch_s.value / len(self.replica_shards)) / self.longest_s
        return shares

    def row_shares(self, interval_s: float) -> FloatArray:
        """The share of a slot's time that the rows of each replica took."""
        shares: FloatArray = self.replica_rows * (self.costs.row_s.value / interval_s)
        return shares

    def replica_utilisation(self, interval_s: float) -> FloatArray:
        room = np.maximum(_LEAST_ROOM, 1.0 - self.driver_share - self.fixed_shares())
        return np.minimum(1.0, self.row_shares(interval_s) / room)


def count_rows_due(*, offered: float, processed: float, backlog: float, interval_s: float, latency_s: float) -> float:
    """The rows that had to be processed in an interval: those that came, and those that wait so that they are gone in time.

    A batch may be longer than an interval, in which none ends then; so what was processed says less than what had to be. What
    waits in a stream that keeps its objective is less than comes within the objective's latency, and does not count.

    >>> count_rows_due(offered=100.0, processed=0.0, backlog=400.0, interval_s=2.0, latency_s=10.0)
    100.0
    >>> count_rows_due(offered=0.0, processed=0.0, backlog=4000.0, interval_s=2.0, latency_s=10.0)
    800.0
    """
    return max(offered, processed, backlog * interval_s / latency_s)


def measure_host_utilisation(
    observed: Allocation, batches: Mapping[str, OperatorBatches], cores: int, interval_s: float
) -> dict[str, float]:
    """Every host's utilisation, by name; 0 where nothing runs."""
    position = {host: i for i, host in enumerate(observed.hosts)}
    rows, fixed, driver = np.zeros(len(position)), np.zeros(len(position)), np.full(len(position), np.inf)
    for name, its in batches.items():
        placed = observed.operators[name]
        if placed.replicas != len(its.replica_rows):
            continue
        at = [position[host] for host in placed.replica_hosts]
        np.add.at(rows, at, its.row_shares(interval_s))
        np.add.at(fixed, at, its.fixed_shares())
        np.minimum.at(driver, at, its.driver_share)
    room = np.maximum(_LEAST_ROOM, 1.0 - np.where(np.isinf(driver), 0.0, driver) - fixed / cores)
    used = np.minimum(1.0, rows / cores / room)
    return dict(zip(position, used.tolist(), strict=True))


def sum_by_replica(shard_rows: FloatArray, shard_replicas: Iterable[int], replicas: int) -> FloatArray:
    """The rows of each replica's shards."""
    return np.bincount(np.fromiter(shard_replicas, dtype=np.intp), weights=shard_rows, minlength=replicas).astype(np.float64)
