"""What operators were offered, did and sent on over a window of intervals, on average.

Flink autoscaler: `ScalingMetricCollector` keeps the samples, `ScalingMetricEvaluator` (`getRate`, `computeBusyTimeAvg`,
`computeTrueProcessingRate`) averages them.

The true processing rate of an operator (V. Kalavri et al., DS2, OSDI 2018) is the rate it could process if it were busy all the
time: rows processed over the time it was busy with them. What it was offered, or how long its queue is, does not enter.

Samples are tuples, one number per operator in the application's order, because they are kept in a policy's memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from springtide.model.observation import FloatArray, OperatorObservation
from springtide.model.protocols import View


class BusyTime(StrEnum):
    """Which of an operator's replicas says how busy it is (Flink's `metrics.busy-time.aggregator`)."""

    MAX = "max"  # the busiest: under skew, the operator can do no more than its hottest replica allows
    AVG = "avg"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One interval: rows per second of each operator, and the share of it that each was busy."""

    start_s: float
    end_s: float
    demand: tuple[float, ...]
    processed: tuple[float, ...]
    emitted: tuple[float, ...]
    busy: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rates:
    """Averages over a window: rows per second, and shares of time."""

    demand: FloatArray
    processed: FloatArray
    emitted: FloatArray
    busy: FloatArray

    @property
    def true_processing(self) -> FloatArray:
        """Rows per second that an operator's replicas can process together; infinite while nothing shows a limit."""
        unlimited = np.full_like(self.processed, np.inf)
        return np.divide(self.processed, self.busy, out=unlimited, where=(self.processed > 0) & (self.busy > 0))


def sample(view: View, busy_time: BusyTime) -> Sample:
    """The interval just observed; an operator of which nothing was measured did nothing."""
    observed = view.observation
    found = [observed.operators.get(o.name) for o in view.application.operators]
    return Sample(
        start_s=observed.start_s,
        end_s=observed.end_s,
        demand=tuple(view.demand_rows_per_s.get(o.name, 0.0) for o in view.application.operators),
        processed=tuple(o.processed_rows / observed.interval_s if o else 0.0 for o in found),
        emitted=tuple(o.emitted_rows / observed.interval_s if o else 0.0 for o in found),
        busy=tuple(_busy(o, busy_time) if o else 0.0 for o in found),
    )


def _busy(seen: OperatorObservation, busy_time: BusyTime) -> float:
    return seen.utilisation if busy_time is BusyTime.AVG else float(seen.replica_utilisation.max())


def averages(samples: Sequence[Sample]) -> Rates:
    """Each sample counts for as long as it lasted."""
    seconds = np.array([s.end_s - s.start_s for s in samples])
    weights = seconds / seconds.sum()
    return Rates(
        demand=weights @ np.array([s.demand for s in samples]),
        processed=weights @ np.array([s.processed for s in samples]),
        emitted=weights @ np.array([s.emitted for s in samples]),
        busy=weights @ np.array([s.busy for s in samples]),
    )
