"""Everything measured over one control interval: the only thing a policy may know of the present.

Per-shard and per-replica figures are read-only arrays, because an application may have tens of thousands of shards.
Rates are per second, times in seconds, sizes in bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from springtide.errors import require
from springtide.model.allocation import Allocation
from springtide.model.batch import BatchCosts

FloatArray = NDArray[np.float64]


class HostState(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    RELEASING = "releasing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """End-to-end latency of the rows that left the application in the interval; all zero when none did."""

    rows: float = 0.0
    mean_s: float = 0.0
    p10_s: float = 0.0
    p50_s: float = 0.0
    p90_s: float = 0.0
    p99_s: float = 0.0
    max_s: float = 0.0
    violation_share: float = 0.0  # share of those rows that were later than the SLO allows
    slo_s: float = 0.0  # the SLO's own percentile of latency, what is compared with `slo.latency_s`


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShardLoads:
    """Per shard (for a keyed operator) or per replica (for any other): what it received, used and holds."""

    rows: FloatArray
    busy_s: FloatArray
    backlog_rows: FloatArray
    state_bytes: FloatArray

    def __post_init__(self) -> None:
        for array in (self.rows, self.busy_s, self.backlog_rows, self.state_bytes):
            if array.flags.writeable:
                array.setflags(write=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OperatorObservation:
    """One operator over one interval.

    `service_time_s` is the core time of one row more. `utilisation` is what its replicas did, as a share of what they can do
    within the objective; `busy_share` is the share of time in which they were busy, which is high at any load where batches
    follow one another at once. `latency_s` is the mean age of rows as they left it, `backlog_s` how long its replicas need for
    the waiting rows if no more come. `costs` are those of its batches, None where rows are processed one by one. `trigger_s` is
    the trigger interval in force: batches start no more often, and each as soon as the last has ended if it is 0. It stays
    within `trigger_bounds_s`, the lower of which is the user's own.
    """

    name: str
    offered_rows: float
    processed_rows: float
    emitted_rows: float
    dropped_rows: float
    backlog_rows: float
    backlog_s: float
    service_time_s: float
    utilisation: float
    busy_share: float
    latency_s: float
    replica_utilisation: FloatArray
    shards: ShardLoads
    costs: BatchCosts | None = None
    trigger_s: float = 0.0
    trigger_bounds_s: tuple[float, float] = (0.0, math.inf)

    def __post_init__(self) -> None:
        if self.replica_utilisation.flags.writeable:
            self.replica_utilisation.setflags(write=False)
        lowest = min(self.offered_rows, self.processed_rows, self.emitted_rows, self.dropped_rows, self.backlog_rows)
        require(lowest >= 0, f"operator {self.name!r}: a count of rows is negative ({lowest})")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostObservation:
    """One host over one interval.

    `utilisation` is what it did, as a share of what it can do within the objective; `busy_share` is the share of time in which
    its cores were busy.
    """

    name: str
    state: HostState
    cores: int
    utilisation: float
    busy_share: float
    memory_bytes: float
    network_bytes_per_s: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Observation:
    """Everything measured over the control interval from `start_s` to `end_s`.

    `observed` is the allocation as it is; `requested` is what it will be once everything asked for has happened.
    `reconfigurations` counts, by kind, what the backend carried out in the interval; `downtime_s` is how long at
    least one operator stood still because of it. While a backend is `warming` up, nothing that it measures says anything yet of
    rows, rates or costs. `rising_rows_per_s` has the sources whose rate rose within the interval, with what they bring at its
    end, as high as it may be; None if the backend knows no more than the rows of the interval.
    """

    index: int
    start_s: float
    end_s: float
    source_rows: Mapping[str, float]
    operators: Mapping[str, OperatorObservation]
    hosts: Mapping[str, HostObservation]
    latency: Latency
    observed: Allocation
    requested: Allocation
    core_s: float
    downtime_s: float
    reconfigurations: Mapping[str, int]
    events: tuple[str, ...] = ()
    warming: bool = False
    rising_rows_per_s: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        require(
            self.end_s > self.start_s, f"an observation must last: it starts at {self.start_s} s and ends at {self.end_s} s"
        )

    @property
    def interval_s(self) -> float:
        return self.end_s - self.start_s

    @cached_property
    def in_batches(self) -> bool:
        """Whether rows are processed in batches, and not one by one."""
        return any(operator.costs is not None for operator in self.operators.values())

    @cached_property
    def trigger_s(self) -> dict[str, float]:
        """The trigger interval in force, of operators that have one."""
        return {name: seen.trigger_s for name, seen in self.operators.items() if seen.trigger_s > 0}

    @cached_property
    def offered_rows(self) -> float:
        return sum(self.source_rows.values())

    @cached_property
    def backlog_rows(self) -> float:
        return sum(o.backlog_rows for o in self.operators.values())

    @cached_property
    def running_hosts(self) -> tuple[HostObservation, ...]:
        return tuple(h for h in self.hosts.values() if h.state is HostState.RUNNING)
