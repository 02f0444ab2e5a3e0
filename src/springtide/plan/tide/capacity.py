"""How much work a number of hosts can do: row by row, as a queue, or in batches (`sizing.batches`).

Both answer the same questions, so that sizing does not ask how rows are processed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from springtide.model.observation import FloatArray
from springtide.model.protocols import View
from springtide.plan.sizing.batches import BatchModel

STEADY = 0.5  # of the objective's latency: a longer backlog says nothing about the ceiling, and has to be worked off
_DOUBTED_ERRORS = 2.0  # standard errors
_FULL = 0.8  # of what can be done at most: what is aimed at where the objective cannot be kept anyway


class Capacity(Protocol):
    """`steady` is the part of the objective's latency for which rows may wait before they are a backlog that has to be worked
    off. `doubt_s` is how far ahead doubt about what is likely grows: what comes later can be decided on later. `recent_s` is
    for how long what came counts as what may come again at once."""

    @property
    def steady(self) -> float: ...

    @property
    def doubt_s(self) -> float: ...

    @property
    def recent_s(self) -> float: ...

    def within_objective(self, hosts: NDArray[np.int64]) -> FloatArray:
        """Cores of work that so many hosts can do while the objective is kept."""
        ...

    def at_most(self, hosts: NDArray[np.int64]) -> FloatArray:
        """Cores of work that so many hosts can do."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCapacity:
    """Rows are processed one by one by cores that may be busy up to a `ceiling`, on hosts that are uneven."""

    cores: int
    ceiling: float
    unevenness: float

    steady: float = STEADY
    doubt_s: float = 300.0
    recent_s: float = 0.0

    def within_objective(self, hosts: NDArray[np.int64]) -> FloatArray:
        return self.at_most(hosts) * self.ceiling

    def at_most(self, hosts: NDArray[np.int64]) -> FloatArray:
        return hosts.astype(np.float64) * (self.cores / self.unevenness)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchCapacity:
    """Rows are processed in batches. `late_share` of them may be later than `latency_s`; the model is off by `bias`."""

    model: BatchModel
    cores: int
    late_share: float
    latency_s: float
    bias: float = 1.0
    doubt_s: float = 0.0

    steady: float = 1.0  # a batch waits, and a batch is worked on
    known: dict[int, float] = field(default_factory=dict)  # `within_objective` of the numbers of hosts that were asked for

    @property
    def recent_s(self) -> float:
        """As long as hosts take to come back: a host that is released and missed again is missed for that long. A source is
        asked only when a batch is planned, so an interval may be measured too low."""
        return self.doubt_s

    def within_objective(self, hosts: NDArray[np.int64]) -> FloatArray:
        asked = hosts.tolist()
        new = [count for count in asked if count not in self.known]
        if new:
            self.known.update(zip(new, self._within_objective(np.array(new)).tolist(), strict=True))
        return np.array([self.known[count] for count in asked])

    def _within_objective(self, hosts: NDArray[np.int64]) -> FloatArray:
        slots = hosts.astype(np.float64) * self.cores
        if self.model.work_cores <= 0:
            return slots
        kept = self.model.capacity_cores(1 - self.late_share, self.latency_s / self.bias, slots)
        return kept if kept.max() > 0 else _FULL * self.model.throughput_cores(slots)

    def at_most(self, hosts: NDArray[np.int64]) -> FloatArray:
        return self.model.throughput_cores(hosts.astype(np.float64) * self.cores)

    def with_cheaper_rows(self) -> BatchCapacity:
        """If rows are as cheap as they may be, by what has been learned."""
        return replace(self, model=self.model.with_cheaper_rows(_DOUBTED_ERRORS), known={})

    def latency_at(self, hosts: int, percentile: float) -> float:
        """The percentile of latency at the present demand, as the model says with its bias."""
        slots = np.array([float(hosts * self.cores)])
        return float(self.model.latency_s(percentile, slots)[0]) * self.bias


def estimate_response_s(view: View, start_s: float) -> float:
    """From a change of the load until hosts that were added for it have their first batch: it is seen, they start, and the
    batch that runs then ends."""
    return 2 * view.observation.interval_s + start_s + view.application.slo.latency_s / 2
