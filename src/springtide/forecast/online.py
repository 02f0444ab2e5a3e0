"""A forecast that learns while it runs: a few simple models, the best of them at each distance, and how wrong it has been.

Models: the last rate; two moving averages; a damped trend (E. S. Gardner, E. McKenzie, "Forecasting Trends in Time Series",
Management Science 31(10), 1985); and, once a day has been seen, the last rate and an average, each with the change that the
same time of yesterday saw. They are judged at distances of 1, 2, 4, ... intervals by their absolute errors, of which the older
count less, and the best at each distance is used there.

How wrong a forecast may be is what it has been: the ratios of what came to what had been forecast at that distance are kept,
and their quantiles stretch the forecast (split conformal prediction; V. Vovk, A. Gammerman, G. Shafer, "Algorithmic Learning in
a Random World", 2005). Nothing is assumed of their distribution. Until enough has been seen a broad guess stands in.

Rules: what is kept does not grow but for one number per interval of the last three days; the same rates give the same
forecasts.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from springtide.model.observation import FloatArray, Observation
from springtide.model.protocols import Forecast

MODEL = "online"
STEPS = 32
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
_UPPER = LEVELS.index(0.95)
_DISTANCES = np.array([1, 2, 4, 8, 16, 32])
_MODELS = 6
_DAY_S = 86_400.0
_KEPT_RATIOS = 2048
_GUESSED_RATIOS = 16
_GUESSED_SPREAD = 0.1  # of one interval; it grows with the fourth root of the distance
_REFRESH = 8  # intervals between two looks at the quantiles, unless the rate has moved
_MOVED = 1.2
_FORGETTING = 0.99
_FAST, _SLOW = 0.5, 0.15  # the share of the newest rate in the two averages
_TREND, _DAMPING = 0.3, 0.95
_SMOOTH_S = 300.0  # yesterday is looked at through a window of this width
_NEGLIGIBLE = 1e-3  # of the highest rate: ratios of less say nothing
_ALIKE = 0.35  # how far apart two rates are alike, as a logarithm
_UNLIKE = 0.01  # what a ratio seen at quite another rate counts
_LARGEST_CHANGE = 5.0  # that yesterday may foretell


class OnlineForecaster:
    """Learns from each observation, and says what the next intervals may bring."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._series: dict[str, _Series] = {}

    def __call__(self, observation: Observation) -> Forecast | None:
        mean: dict[str, FloatArray] = {}
        quantiles: dict[str, FloatArray] = {}
        for source, rows in observation.source_rows.items():
            series = self._series.get(source)
            if series is None:
                series = self._series[source] = _Series(self._interval_s)
            series.add(rows / observation.interval_s)
            mean[source], quantiles[source] = series.forecast()
        return Forecast(
            interval_s=self._interval_s,
            model=MODEL,
            mean=mean,
            upper={source: values[_UPPER] for source, values in quantiles.items()},
            levels=LEVELS,
            quantiles=quantiles,
        )


class _Series:
    """One source's rates."""

    def __init__(self, interval_s: float) -> None:
        self._per_day = max(1, round(_DAY_S / interval_s))
        self._smooth = max(1, round(_SMOOTH_S / interval_s))
        self._sums = [0.0]  # of all rates up to each interval, of the last three days
        self._forgotten = 0
        self._count = 0
        self._last = self._fast = self._slow = 0.0
        self._trend = 0.0
        self._highest = 0.0
        rows = int(_DISTANCES[-1]) + 1
        self._made = np.zeros((rows, len(_DISTANCES), _MODELS))  # what each model said, by when it said it
        self._used = np.zeros((rows, len(_DISTANCES)))
        self._losses = np.zeros((len(_DISTANCES), _MODELS))
        self._ratios = [_guess(int(distance)) for distance in _DISTANCES]
        self._levels = [np.full(_GUESSED_RATIOS, np.nan) for _ in _DISTANCES]  # at which each ratio was seen, as a logarithm
        self._factors = np.ones((len(LEVELS), len(_DISTANCES)))
        self._looked_at = 0.0  # the rate at which the quantiles were looked at

    def add(self, rate: float) -> None:
        self._score(rate)
        self._learn(rate)
        self._say()
        if self._count % _REFRESH == 1 or not 1 / _MOVED < (rate + 1e-9) / (self._looked_at + 1e-9) < _MOVED:
            self._factors, self._looked_at = self._quantiles(), rate

    def forecast(self) -> tuple[FloatArray, FloatArray]:
        """The next rates, and their quantiles: one row for each level."""
        steps = np.arange(1, STEPS + 1)
        mean = np.interp(steps, _DISTANCES, self._used[self._count % len(self._used)])
        floor = _NEGLIGIBLE * self._highest
        factors = np.array([np.interp(steps, _DISTANCES, row) for row in self._factors])
        return mean, np.maximum(0.0, (mean + floor) * factors - floor)

    def _score(self, rate: float) -> None:
        """Compare what has come with what was said of it at each distance."""
        floor = _NEGLIGIBLE * max(self._highest, rate)
        rows = len(self._used)
        for i, distance in enumerate(_DISTANCES.tolist()):
            if self._count < distance:
                break
            then = (self._count - distance + 1) % rows
            self._losses[i] = _FORGETTING * self._losses[i] + np.abs(self._made[then, i] - rate)
            said = self._used[then, i]
            if floor > 0:
                self._keep(i, (rate + floor) / (said + floor), math.log(said + floor))

    def _keep(self, i: int, ratio: float, level: float) -> None:
        if len(self._ratios[i]) < _KEPT_RATIOS:
            self._ratios[i] = np.append(self._ratios[i], ratio)
            self._levels[i] = np.append(self._levels[i], level)
        else:
            self._ratios[i][self._count % _KEPT_RATIOS] = ratio
            self._levels[i][self._count % _KEPT_RATIOS] = level

    def _quantiles(self) -> FloatArray:
        """How far off forecasts have been: at each level of probability, at each distance.

        A forecast of a rate like the present one says more than others do: low rates are relatively less certain.
        """
        floor = _NEGLIGIBLE * self._highest
        found = np.ones((len(LEVELS), len(_DISTANCES)))
        for i in range(len(_DISTANCES)):
            now = math.log(self._used[self._count % len(self._used), i] + floor) if floor > 0 else 0.0
            apart = np.nan_to_num((self._levels[i] - now) / _ALIKE, nan=1.0)
            weights = np.exp(-0.5 * np.minimum(apart, 5.0) ** 2) + _UNLIKE
            order = np.argsort(self._ratios[i])
            below = np.cumsum(weights[order])
            at = np.searchsorted(below, np.array(LEVELS) * below[-1])
            found[:, i] = self._ratios[i][order][np.minimum(at, len(order) - 1)]
        return found

    def _learn(self, rate: float) -> None:
        if self._count == 0:
            self._fast = self._slow = rate
        level = max(0.0, _FAST * rate + (1 - _FAST) * (self._fast + _DAMPING * self._trend))
        self._trend = _TREND * (level - self._fast) + (1 - _TREND) * _DAMPING * self._trend
        self._last, self._fast = rate, level
        self._slow += _SLOW * (rate - self._slow)
        self._highest = max(self._highest, rate)
        self._count += 1
        self._sums.append(self._sums[-1] + rate)
        if len(self._sums) > 3 * self._per_day:
            self._forgotten += self._per_day
            del self._sums[: self._per_day]

    def _say(self) -> None:
        row = self._count % len(self._used)
        damped = _DAMPING * (1 - _DAMPING**_DISTANCES) / (1 - _DAMPING)
        yesterday = self._change_of_yesterday()
        said = self._made[row]
        said[:, 0] = self._last * yesterday
        said[:, 1] = self._last
        said[:, 2] = self._slow * yesterday
        said[:, 3] = np.maximum(0.0, self._fast + damped * self._trend)
        said[:, 4] = self._fast
        said[:, 5] = self._slow
        best = self._losses.argmin(axis=1)  # of equals the first: yesterday may know what nothing has shown yet
        self._used[row] = said[np.arange(len(_DISTANCES)), best]

    def _change_of_yesterday(self) -> FloatArray:
        """What the same time of yesterday was followed by, as a factor at each distance; 1 while there is no yesterday."""
        start = self._count - self._per_day - self._forgotten
        if start - self._smooth < 0:
            return np.ones(len(_DISTANCES))
        then = self._around(start)
        if then <= 0:
            return np.ones(len(_DISTANCES))
        later = np.array([self._around(start + distance) for distance in _DISTANCES.tolist()])
        return np.clip(later / then, 1 / _LARGEST_CHANGE, _LARGEST_CHANGE)

    def _around(self, end: int) -> float:
        """The mean rate of the window that is centred on an interval, as far as it has been seen."""
        half = self._smooth // 2
        low, high = max(0, end - half - 1), min(len(self._sums) - 1, end + half)
        return (self._sums[high] - self._sums[low]) / (high - low)


def _guess(distance: int) -> FloatArray:
    spread = _GUESSED_SPREAD * distance**0.25
    normal = NormalDist(0.0, spread)
    return np.exp([normal.inv_cdf((i + 0.5) / _GUESSED_RATIOS) for i in range(_GUESSED_RATIOS)])
