"""How much work the next intervals bring: a forecast's quantiles of the sources' rates, through the DAG, in cores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from springtide.model.observation import FloatArray
from springtide.model.protocols import View
from springtide.plan.placement.counts import demand_cores, service_time_s, shard_weights

_GUESSED = ((0.1, 0.9), (0.5, 1.0), (0.95, 1.2))  # levels and factors of the present rate, without any forecast


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Work:
    """Cores' worth of work in the next intervals: `cores[i, k]` with the probability `weights[i]`, in ascending order."""

    cores: FloatArray
    weights: FloatArray
    now: float

    @property
    def middle(self) -> FloatArray:
        """The work that is as likely to be exceeded as not."""
        return self.at(0.5)

    @property
    def likely(self) -> FloatArray:
        """The work that will hardly be exceeded: by one interval in twenty."""
        return self.at(0.95)

    def at(self, level: float) -> FloatArray:
        """The work that is exceeded with the probability 1 - `level`."""
        row: FloatArray = self.cores[min(int(np.searchsorted(np.cumsum(self.weights), level)), len(self.cores) - 1)]
        return row

    def with_bursts_apart(self, together: float) -> Work:
        """With so much of what may come beyond the middle, or stay behind it: sources do not all have their bursts at once."""
        if together >= 1:
            return self
        return Work(cores=self.middle + together * (self.cores - self.middle), weights=self.weights, now=self.now)

    def times(self, factor: float) -> Work:
        return Work(cores=factor * self.cores, weights=self.weights, now=factor * self.now)

    def at_least(self, cores: float) -> Work:
        return Work(cores=np.maximum(self.cores, cores), weights=self.weights, now=self.now)

    def no_wilder_than_at(self, step: int) -> Work:
        """With no more beyond what is likely, later on, than there is at a step: extremes can be decided on again later."""
        steps = self.cores.shape[1]
        if step >= steps:
            longer = np.concatenate([self.cores, np.repeat(self.cores[:, -1:], step + 1 - steps, axis=1)], axis=1)
            return Work(cores=longer, weights=self.weights, now=self.now)
        likely = self.likely
        if likely[step] <= 0:
            return self
        spread = self.cores[:, step] / likely[step]
        cores = self.cores.copy()
        cores[:, step + 1 :] = np.minimum(cores[:, step + 1 :], spread[:, np.newaxis] * likely[step + 1 :])
        return Work(cores=cores, weights=self.weights, now=self.now)


def coming_work(view: View, steps: int) -> Work:
    """The work of as many of the next intervals as there is a forecast for; of one, around the present, without any.

    An operator's work is never more than it can use, however many replicas it gets: hosts do not help it any further.
    """
    levels, rates = _quantiles(view)
    limits = usable_cores(view)
    cores = np.zeros((len(levels), 1))
    for operator in view.application.operators:
        per_s = sum(values[:, :steps] * view.gains.get(source, {}).get(operator.name, 0.0) for source, values in rates.items())
        cores = cores + np.minimum(limits[operator.name], per_s * service_time_s(view, operator))
    now = sum(min(c, limits[name]) for name, c in demand_cores(view).items())
    return Work(cores=cores, weights=_weights(levels), now=now)


def rising_cores(view: View) -> float | None:
    """The work at the end of the interval, with sources that rose within it as high as they may be by now; None if the backend
    does not tell."""
    seen = view.observation
    if seen.rising_rows_per_s is None:
        return None
    rates = {source: seen.rising_rows_per_s.get(source, rows / seen.interval_s) for source, rows in seen.source_rows.items()}
    demand = {
        operator.name: sum(rate * view.gains.get(source, {}).get(operator.name, 0.0) for source, rate in rates.items())
        for operator in view.application.operators
    }
    limits = usable_cores(view)
    return sum(min(cores, limits[name]) for name, cores in demand_cores(view, demand).items())


def usable_cores(view: View) -> dict[str, float]:
    """The most cores that each operator can keep busy: one a replica, and no more than its hottest shard lets it."""
    limits: dict[str, float] = {}
    for operator in view.application.operators:
        limits[operator.name] = float(operator.replica_limit)
        if operator.keyed:
            hottest = float(shard_weights(view, operator, view.requested.operators[operator.name]).max())
            limits[operator.name] = min(limits[operator.name], 1 / hottest)
    return limits


def overdue_core_s(view: View, share: float) -> float:
    """Core-seconds of work that waits and will not be done within a share of the latency that the objective allows."""
    soon_s = share * view.application.slo.latency_s
    total = 0.0
    for operator in view.application.operators:
        seen = view.observation.operators.get(operator.name)
        if seen is not None and seen.backlog_rows > 0:
            soon = view.demand_rows_per_s.get(operator.name, 0.0) * soon_s
            total += max(0.0, seen.backlog_rows - soon) * service_time_s(view, operator)
    return total


def _quantiles(view: View) -> tuple[tuple[float, ...], dict[str, FloatArray]]:
    """The levels of the forecast, and each source's rates at them: one row for each level."""
    forecast = view.forecast
    if forecast is None:
        seconds = view.observation.interval_s
        factors = np.array([[factor] for _, factor in _GUESSED])
        rates = {source: factors * (rows / seconds) for source, rows in view.observation.source_rows.items()}
        return tuple(level for level, _ in _GUESSED), rates
    if forecast.quantiles:
        return forecast.levels, forecast.quantiles
    return (0.5, 0.95), {source: np.stack([forecast.mean[source], forecast.upper[source]]) for source in forecast.mean}


def _weights(levels: tuple[float, ...]) -> FloatArray:
    """The probability that each quantile stands for: from halfway below to halfway above it."""
    halfway = (np.array(levels[1:]) + np.array(levels[:-1])) / 2
    return np.diff(np.concatenate([[0.0], halfway, [1.0]]))
