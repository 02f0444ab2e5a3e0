"""A forecast that learns while it runs: a few simple models, the best of them at each distance, and how wrong it has been.

Models: the last rate; two moving averages; a damped trend (E. S. Gardner, E. McKenzie, "Forecasting Trends in Time Series",
Management Science 31(10), 1985); once a day has been seen, the last rate and an average, each with the change that the same
time of yesterday saw; and whatever a trained model says (see `serving`). They are judged at distances of 1, 2, 4, ...
intervals, as far ahead as is planned, by their absolute errors, of which the older count less, and the best at each distance is
used there. So a trained model that is worse than the last value is not used.

How wrong a forecast may be is what it has been: the ratios of what came to what had been forecast at that distance are kept,
and their quantiles stretch the forecast (split conformal prediction; V. Vovk, A. Gammerman, G. Shafer, "Algorithmic Learning in
a Random World", 2005). Nothing is assumed of their distribution. Older ratios count for less, and the largest event among them
is left out: what has happened once may never happen again, what has happened twice is held as likely as it has been lately.
Until enough has been seen a broad guess stands in.

Rules: what is kept does not grow but for one number per interval of the last three days; the same rates give the same
forecasts. Sources are dealt with all at once: arrays have the axes source, distance, model.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from springtide.model.observation import FloatArray, Observation
from springtide.model.protocols import Forecast

MODEL = "online"
HORIZON_S = 1200.0  # how far ahead is said what comes, at least
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
_UPPER = LEVELS.index(0.95)
_FEWEST_STEPS = 32
_LAST, _TRAINED = 1, 6  # among the models
_MODELS = 7
_DAY_S = 86_400.0
_KEPT_RATIOS = 2048
_HALF_LIFE = 512  # intervals after which a ratio counts half
_GUESSED_RATIOS = 16
_GUESSED_SPREAD = 0.1  # of one interval; it grows with the fourth root of the distance
_REFRESH = 8  # intervals between two looks at the quantiles, unless the rate has moved
_MOST_LOOKS = 12  # sources whose quantiles are looked at in one interval
_MOVED = 1.2
_FORGETTING = 0.99
_FAST, _SLOW = 0.5, 0.15  # the share of the newest rate in the two averages
_TREND, _DAMPING = 0.3, 0.95
_SMOOTH_S = 300.0  # yesterday is looked at through a window of this width
_NEGLIGIBLE = 1e-3  # of the highest rate: ratios of less say nothing
_ALIKE = 0.35  # how far apart two rates are alike, as a logarithm
_UNLIKE = 0.01  # what a ratio seen at quite another rate counts
_EVENT = 1.5  # a ratio that is larger than usual
_EVENT_SPAN = 12  # intervals before and after the largest of an event that belong to it
_LARGEST_CHANGE = 5.0  # that yesterday may foretell


def distances_of(interval_s: float) -> NDArray[np.int64]:
    """How many intervals ahead forecasts are judged: the last is how far ahead they reach.

    >>> distances_of(30.0).tolist(), int(distances_of(3.0)[-1])
    ([1, 2, 4, 8, 16, 32, 64], 512)
    """
    steps = max(_FEWEST_STEPS, HORIZON_S / interval_s)
    return 2 ** np.arange(math.ceil(math.log2(steps) - 1e-9) + 1)


class OnlineForecaster:
    """Learns from each observation, and says what the next intervals may bring."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self.distances = distances_of(interval_s)
        self._sources: tuple[str, ...] = ()
        self._series = _Series(0, interval_s)

    def __call__(self, observation: Observation) -> Forecast | None:
        return self.told(observation, None)

    def told(self, observation: Observation, trained: FloatArray | None) -> Forecast:
        """The forecast, where trained models say something too: `trained[source, i]` is the rate at `distances[i]`, or NaN."""
        sources = tuple(observation.source_rows)
        if sources != self._sources:  # a source that comes or goes begins all of them anew
            self._sources, self._series = sources, _Series(len(sources), self._interval_s)
        rates = np.array([rows / observation.interval_s for rows in observation.source_rows.values()])
        self._series.add(rates, np.full((len(sources), len(self.distances)), np.nan) if trained is None else trained)
        mean, quantiles = self._series.forecast()
        return Forecast(
            interval_s=self._interval_s,
            model=MODEL,
            mean=dict(zip(sources, mean, strict=True)),
            upper=dict(zip(sources, quantiles[:, _UPPER], strict=True)),
            levels=LEVELS,
            quantiles=dict(zip(sources, quantiles, strict=True)),
        )

    @property
    def uses_trained(self) -> NDArray[np.bool_]:
        """Whether what trained models say is used: one row for each source, at each of `distances`."""
        used: NDArray[np.bool_] = self._series.chosen == _TRAINED
        return used

    @property
    def trained_share_of_last_value(self) -> FloatArray:
        """The recent absolute errors of trained models as a share of the last value's, one for each source; NaN if unknown."""
        return self._series.trained_share()


class _Series:
    """The rates of some sources."""

    def __init__(self, sources: int, interval_s: float) -> None:
        self._distances = distances_of(interval_s)
        near, steps = len(self._distances), int(self._distances[-1])
        # What is known at the distances becomes known at every step, by a straight line in between, as a product with this.
        self._between = np.array([np.interp(np.arange(1, steps + 1), self._distances, one) for one in np.eye(near)])
        self._per_day = max(1, round(_DAY_S / interval_s))
        self._smooth = max(1, round(_SMOOTH_S / interval_s))
        self._sums = np.zeros((sources, 1024))  # of all rates up to each interval, of the last three days
        self._length = 1  # of what is filled of them
        self._forgotten = 0
        self._count = 0
        self._last, self._fast, self._slow, self._trend, self._highest = np.zeros((5, sources))
        rows = steps + 1
        self._made = np.zeros((rows, sources, near, _MODELS))  # what each model said, by when it said it
        self._used = np.zeros((rows, sources, near))
        self._losses = np.zeros((sources, near, _MODELS))
        self._losses[:, :, _TRAINED] = np.inf  # until one has said something that has come out
        self._compared = np.zeros((2, sources, near))  # losses of trained models, and of the last value beside them
        self.chosen = np.zeros((sources, near), np.int64)
        self._ratios = np.full((sources, near, _KEPT_RATIOS), np.inf)
        self._levels = np.full((sources, near, _KEPT_RATIOS), np.nan)  # at which each ratio was seen, as a logarithm
        self._seen_at = np.zeros((sources, near, _KEPT_RATIOS))  # and when
        for i, distance in enumerate(self._distances.tolist()):
            self._ratios[:, i, :_GUESSED_RATIOS] = _guess(distance)
        self._kept = np.full((sources, near), _GUESSED_RATIOS)
        self._factors = np.ones((sources, len(LEVELS), near))
        self._looked_at = np.zeros(sources)  # the rates at which the quantiles were looked at
        self._looked = np.full(sources, -_REFRESH)  # and when

    def add(self, rates: FloatArray, trained: FloatArray) -> None:
        self._score(rates)
        self._learn(rates)
        self._say(trained)
        moved = ~(
            ((rates + 1e-9) / (self._looked_at + 1e-9) > 1 / _MOVED) & ((rates + 1e-9) / (self._looked_at + 1e-9) < _MOVED)
        )
        staggered = (self._count + np.arange(len(rates))) % _REFRESH == 1
        due = np.flatnonzero(moved | staggered | (self._count == 1))
        if len(due) > _MOST_LOOKS:
            due = due[np.argsort(self._looked[due], kind="stable")[:_MOST_LOOKS]]
        self._looked[due] = self._count
        self._looked_at[due] = rates[due]
        for source in due.tolist():
            self._factors[source] = self._quantiles(source)

    def forecast(self) -> tuple[FloatArray, FloatArray]:
        """The next rates of each source, and their quantiles, with the axes source, level, step."""
        mean = self._used[self._count % len(self._used)] @ self._between
        floor = _NEGLIGIBLE * self._highest[:, None, None]
        quantiles: FloatArray = np.maximum(0.0, (mean[:, None, :] + floor) * (self._factors @ self._between) - floor)
        return mean, quantiles

    def trained_share(self) -> FloatArray:
        trained, last = self._compared.sum(axis=2)
        with np.errstate(invalid="ignore", divide="ignore"):
            share: FloatArray = trained / last
        return share

    def _score(self, rates: FloatArray) -> None:
        """Compare what has come with what was said of it at each distance."""
        near = np.flatnonzero(self._count >= self._distances)
        if not near.size:
            return
        floor = _NEGLIGIBLE * np.maximum(self._highest, rates)
        then = (self._count - self._distances[near] + 1) % len(self._used)
        errors = np.abs(self._made[then, :, near].swapaxes(0, 1) - rates[:, None, None])
        known = np.isfinite(errors[:, :, _TRAINED])
        self._compare(near, errors, known)
        before = self._losses[:, near]
        # A trained model that begins to speak is taken to have been as good as the last value was.
        before[:, :, _TRAINED] = np.where(known & np.isinf(before[:, :, _TRAINED]), before[:, :, _LAST], before[:, :, _TRAINED])
        self._losses[:, near] = np.where(np.isfinite(errors), _FORGETTING * before + np.nan_to_num(errors), before)
        said = self._used[then, :, near].T
        some = np.flatnonzero(floor > 0)
        if some.size:
            more = floor[some, None]
            self._keep(some, near, (rates[some, None] + more) / (said[some] + more), np.log(said[some] + more))

    def _compare(self, near: NDArray[np.int64], errors: FloatArray, known: NDArray[np.bool_]) -> None:
        both = np.stack([errors[:, :, _TRAINED], errors[:, :, _LAST]])
        before = self._compared[:, :, near]
        self._compared[:, :, near] = np.where(known, _FORGETTING * before + np.nan_to_num(both), before)

    def _keep(self, some: NDArray[np.int64], near: NDArray[np.int64], ratios: FloatArray, levels: FloatArray) -> None:
        kept = self._kept[np.ix_(some, near)]
        slots = np.where(kept < _KEPT_RATIOS, kept, self._count % _KEPT_RATIOS)
        self._ratios[some[:, None], near, slots] = ratios
        self._levels[some[:, None], near, slots] = levels
        self._seen_at[some[:, None], near, slots] = self._count
        self._kept[np.ix_(some, near)] = np.minimum(kept + 1, _KEPT_RATIOS)

    def _quantiles(self, source: int) -> FloatArray:
        """How far off forecasts have been: at each level of probability, at each distance.

        A forecast of a rate like the present one says more than others do: low rates are relatively less certain.
        """
        floor = _NEGLIGIBLE * self._highest[source]
        found = np.ones((len(LEVELS), len(self._distances)))
        used = self._used[self._count % len(self._used), source]
        for i in range(len(self._distances)):
            kept = int(self._kept[source, i])
            ratios = self._ratios[source, i, :kept]
            now = np.log(used[i] + floor) if floor > 0 else 0.0
            apart = np.nan_to_num((self._levels[source, i, :kept] - now) / _ALIKE, nan=1.0)
            age = (self._count - self._seen_at[source, i, :kept]) / _HALF_LIFE
            weights = (np.exp(-0.5 * np.minimum(apart, 5.0) ** 2) + _UNLIKE) * np.exp2(-age)
            weights[self._largest_event(source, i, ratios)] = 0.0
            order = np.argsort(ratios)
            below = np.cumsum(weights[order])
            at = np.searchsorted(below, np.array(LEVELS) * below[-1])
            found[:, i] = ratios[order][np.minimum(at, kept - 1)]
        return found

    def _largest_event(self, source: int, near: int, ratios: FloatArray) -> NDArray[np.bool_]:
        """Which ratios belong to the event with the largest of them: from one distance before it to one after it, and some
        intervals at least, because a burst may rise in steps."""
        seen_at = self._seen_at[source, near, : len(ratios)]
        came = np.where(seen_at > 0, ratios, 0.0)  # guesses are no events
        largest = int(came.argmax())
        if came[largest] <= _EVENT:
            return np.zeros(len(ratios), np.bool_)
        span = max(_EVENT_SPAN, int(self._distances[near]))
        found: NDArray[np.bool_] = (came > _EVENT) & (np.abs(seen_at - seen_at[largest]) <= span)
        return found

    def _learn(self, rates: FloatArray) -> None:
        if self._count == 0:
            self._fast, self._slow = rates.copy(), rates.copy()
        level = np.maximum(0.0, _FAST * rates + (1 - _FAST) * (self._fast + _DAMPING * self._trend))
        self._trend = _TREND * (level - self._fast) + (1 - _TREND) * _DAMPING * self._trend
        self._last, self._fast = rates, level
        self._slow = self._slow + _SLOW * (rates - self._slow)
        self._highest = np.maximum(self._highest, rates)
        self._count += 1
        self._sum(rates)

    def _sum(self, rates: FloatArray) -> None:
        if self._length == self._sums.shape[1]:
            self._sums = np.concatenate([self._sums, np.zeros_like(self._sums)], axis=1)
        self._sums[:, self._length] = self._sums[:, self._length - 1] + rates
        self._length += 1
        if self._length > 3 * self._per_day:
            self._forgotten += self._per_day
            self._length -= self._per_day
            self._sums[:, : self._length] = self._sums[:, self._per_day : self._per_day + self._length].copy()

    def _say(self, trained: FloatArray) -> None:
        row = self._count % len(self._used)
        damped = _DAMPING * (1 - _DAMPING**self._distances) / (1 - _DAMPING)
        yesterday = self._change_of_yesterday()
        said = self._made[row]
        said[:, :, 0] = self._last[:, None] * yesterday
        said[:, :, _LAST] = self._last[:, None]
        said[:, :, 2] = self._slow[:, None] * yesterday
        said[:, :, 3] = np.maximum(0.0, self._fast[:, None] + damped * self._trend[:, None])
        said[:, :, 4] = self._fast[:, None]
        said[:, :, 5] = self._slow[:, None]
        said[:, :, _TRAINED] = trained
        losses = np.where(np.isfinite(said), self._losses, np.inf)
        self.chosen = losses.argmin(axis=2)  # of equals the first: yesterday may know what nothing has shown yet
        self._used[row] = np.take_along_axis(said, self.chosen[:, :, None], axis=2)[:, :, 0]

    def _change_of_yesterday(self) -> FloatArray:
        """What the same time of yesterday was followed by, as a factor at each distance; 1 while there is no yesterday."""
        start = self._count - self._per_day - self._forgotten
        factors = np.ones((len(self._last), len(self._distances)))
        if start - self._smooth < 0:
            return factors
        then = self._around(start)
        some = then > 0
        later = np.stack([self._around(start + distance) for distance in self._distances.tolist()], axis=1)
        factors[some] = np.clip(later[some] / then[some, None], 1 / _LARGEST_CHANGE, _LARGEST_CHANGE)
        return factors

    def _around(self, end: int) -> FloatArray:
        """The mean rates of the window that is centred on an interval, as far as it has been seen."""
        half = self._smooth // 2
        low, high = max(0, end - half - 1), min(self._length - 1, end + half)
        mean: FloatArray = (self._sums[:, high] - self._sums[:, low]) / (high - low)
        return mean


def _guess(distance: int) -> FloatArray:
    spread = _GUESSED_SPREAD * distance**0.25
    normal = NormalDist(0.0, spread)
    return np.exp([normal.inv_cdf((i + 0.5) / _GUESSED_RATIOS) for i in range(_GUESSED_RATIOS)])
