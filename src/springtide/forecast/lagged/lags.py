"""What a past tells about a distance ahead: the features that the learning models share.

Rules. No clock time is used: everything is read from the past itself. All features but the last rate and the distance are
differences of rates, so that what was learnt at one level is of use at another. A past that does not reach back a whole day or
week has no features of that cycle; for a distance beyond a cycle, the latest whole cycle speaks. Where a cycle ago was just
before the past begins, the first rate of the past stands for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from springtide.errors import require
from springtide.forecast.compiling import compiled
from springtide.model.observation import FloatArray
from springtide.model.windows import DAYS_PER_WEEK, Windows, steps_per_day

IntArray = NDArray[np.int64]

NOW = 0  # the feature that is the last rate itself

_NEWEST = (*range(1, 25), 30, 36, 48)
_STRETCHES = (3, 6, 12, 24, 48, 96)
_NEAR = 2  # so many intervals before and after a time still belong to it
_AROUND = 2 * _NEAR + 1
_SURPRISES = 12  # newest rates that are compared with what is usual at their time of day
_OF_A_DAY = 5 + _SURPRISES + 5 + _AROUND
_OF_A_WEEK = 2 + _AROUND


@dataclass(frozen=True, slots=True, kw_only=True)
class Lags:
    """Which features are made of a past of `past` rates. `day` and `week` are 0 where the past does not reach so far."""

    past: int = 0
    day: int = 0
    week: int = 0
    newest: tuple[int, ...] = ()
    stretches: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        alone = 2 + len(self.newest) + 3 * len(self.stretches)
        return alone + _OF_A_DAY * (self.day > 0) + _OF_A_WEEK * (self.week > 0)

    @property
    def usual(self) -> int:
        """The feature that is the mean of the rates at the target's time on the days before; none without a day."""
        return self.of_distance + 1

    @property
    def of_distance(self) -> int:
        """The first feature that depends on the distance, which is the distance itself; all before it do not."""
        return 1 + len(self.newest) + 3 * len(self.stretches) + (5 + _SURPRISES) * (self.day > 0) + (self.week > 0)

    def at(self, series: FloatArray, origins: IntArray, distances: IntArray) -> FloatArray:
        """The features at some origins of a series and at each one's `distances`: (origins, distances, features)."""
        found = np.empty((*distances.shape, self.count))
        newest, stretches = np.array(self.newest, np.int64), np.array(self.stretches, np.int64)
        _fill(series, origins, distances, (newest, stretches), (self.past, self.day, self.week), found)
        return found

    def of(self, pasts: FloatArray, distances: IntArray) -> FloatArray:
        """The features of each row of past rates at the distances in the same row."""
        require(pasts.shape[1] >= self.past, f"{self.past:,} past rates are needed, and there are {pasts.shape[1]:,}")
        newest = np.ascontiguousarray(pasts[:, pasts.shape[1] - self.past :], np.float64)
        origins = np.arange(1, len(pasts) + 1) * self.past - 1
        return self.at(newest.ravel(), origins, distances)


def lags_in(windows: Windows) -> Lags:
    past, day = windows.past.shape[1], steps_per_day(windows.interval_s)
    week = DAYS_PER_WEEK * day
    return Lags(
        past=past,
        day=day if _SURPRISES < day <= past else 0,
        week=week if day > _SURPRISES and week <= past else 0,
        newest=tuple(lag for lag in _NEWEST if lag < past),
        stretches=tuple(stretch for stretch in _STRETCHES if stretch <= past),
    )


@compiled
def _mean_near(series, at, first, last):  # type: ignore[no-untyped-def]
    begin, end = max(first, at - _NEAR), min(last, at + _NEAR) + 1
    total = 0.0
    for i in range(begin, end):
        total += series[i]
    return total / (end - begin)


@compiled
def _fill_stretches(series, last, stretches, out, k):  # type: ignore[no-untyped-def]
    """Mean, least and greatest of the newest rates."""
    now = series[last]
    total, low, high = 0.0, now, now
    at = 0
    for stretch in stretches:
        while at < stretch:
            rate = series[last - at]
            total += rate
            low = min(low, rate)
            high = max(high, rate)
            at += 1
        out[k] = total / stretch - now
        out[k + 1] = low - now
        out[k + 2] = high - now
        k += 3
    return k


@compiled
def _usual_at(series, at, day, first):  # type: ignore[no-untyped-def]
    """The mean, least and greatest rate at this time on the days before, back to `first`."""
    total, low, high = 0.0, np.inf, -np.inf
    count = 0
    while at >= first:
        rate = series[at]
        total += rate
        low = min(low, rate)
        high = max(high, rate)
        count += 1
        at -= day
    return total / count, low, high


@compiled
def _fill_cycle(series, target, first, last, out, k):  # type: ignore[no-untyped-def]
    """The rates around the target's time a cycle ago; returns where to go on."""
    for i in range(target - _NEAR, target + _NEAR + 1):
        out[k] = series[min(max(i, first), last)] - series[last]
        k += 1
    return k


@compiled
def _fill_own(series, last, parts, sizes, out):  # type: ignore[no-untyped-def]
    """The features of a past alone; returns how many, and what is near a day ago, near a week ago, and usual at this time."""
    newest, stretches = parts
    past, day, week = sizes
    first, now = last - past + 1, series[last]
    day_ago = week_ago = usual_now = 0.0
    out[0] = now
    k = 1
    for lag in newest:
        out[k] = series[last - lag] - now
        k += 1
    k = _fill_stretches(series, last, stretches, out, k)
    if day > 0:
        k = _fill_stretches(series, last, (day,), out, k)
        day_ago = _mean_near(series, max(first, last - day), first, last)
        total = 0.0
        for i in range(first, last + 1):
            total += series[i]
        out[k] = total / past - now
        out[k + 1] = day_ago - now
        k += 2
        usual_now, _, _ = _usual_at(series, max(first, last - day), day, first)
        for j in range(_SURPRISES):
            usual, _, _ = _usual_at(series, max(first, last - j - day), day, first)
            out[k] = series[last - j] - usual
            k += 1
    if week > 0:
        week_ago = _mean_near(series, max(first, last - week), first, last)
        out[k] = week_ago - now
        k += 1
    return k, (day_ago, week_ago, usual_now)


@compiled
def _fill(series, origins, distances, parts, sizes, out):  # type: ignore[no-untyped-def]
    past, day, week = sizes
    for i in range(len(origins)):
        last = origins[i]
        first, now = last - past + 1, series[last]
        own, (day_ago, week_ago, usual_now) = _fill_own(series, last, parts, sizes, out[i, 0])
        for j in range(distances.shape[1]):
            h = distances[i, j]
            row = out[i, j]
            for k in range(own):
                row[k] = out[i, 0, k]
            row[own] = h
            k = own + 1
            if day > 0:
                target = last + 1 - day + (h - 1) % day
                usual, low, high = _usual_at(series, target, day, first)
                row[k] = usual - now
                row[k + 1] = usual - usual_now
                row[k + 2] = low - now
                row[k + 3] = high - now
                row[k + 4] = _mean_near(series, target, first, last) - day_ago
                k = _fill_cycle(series, target, first, last, row, k + 5)
            if week > 0:
                target = last + 1 - week + (h - 1) % week
                row[k] = _mean_near(series, target, first, last) - week_ago
                k = _fill_cycle(series, target, first, last, row, k + 1)
