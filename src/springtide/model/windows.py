"""Supervised windows of one series: some past rates, and the future rates that followed them.

Rates are scaled: 0 is the lowest and 1 the highest rate of the part that was learnt from, so others may lie beyond. What was
recorded is never cut off. Past values that were missing have been filled; future ones are NaN, so that nobody learns from, or
is judged by, a rate that was made up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from springtide.errors import require
from springtide.model.observation import FloatArray

DAY_S = 86_400.0
DAYS_PER_WEEK = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From rows per second to what models learn, and back: fitted on the training part only.

    `mean_per_s` and `deviation_per_s` are those of the training part too: errors are also told on the z-score scale.
    """

    low_per_s: float
    high_per_s: float
    mean_per_s: float
    deviation_per_s: float

    def __post_init__(self) -> None:
        require(
            self.high_per_s > self.low_per_s,
            f"rates that are all {self.low_per_s:g} rows/s have no scale, and nothing can be learnt from them",
        )

    @property
    def span_per_s(self) -> float:
        return self.high_per_s - self.low_per_s

    @property
    def deviations_per_unit(self) -> float:
        """How many standard deviations one scaled unit is."""
        return self.span_per_s / self.deviation_per_s

    def scaled(self, rates_per_s: FloatArray) -> FloatArray:
        return (rates_per_s - self.low_per_s) / self.span_per_s

    def rates_per_s(self, scaled: FloatArray) -> FloatArray:
        """No rate is below 0, whatever a model says."""
        rates: FloatArray = np.maximum(0.0, self.low_per_s + scaled * self.span_per_s)
        return rates


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Windows:
    """`past[i]` ends, and `future[i]` begins right after, the interval `origins[i]`, counted from the start of the series.

    Origins grow. Between two of them there may be more than one interval.

    >>> windows = windows_of(np.arange(6.0), interval_s=60.0, past=3, future=2)
    >>> windows.past.tolist(), windows.future.tolist()
    ([[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]], [[3.0, 4.0], [4.0, 5.0]])
    """

    interval_s: float
    origins: NDArray[np.int64]
    past: FloatArray
    future: FloatArray

    def __post_init__(self) -> None:
        require(
            self.past.ndim == self.future.ndim == 2 and len(self.past) == len(self.future) == len(self.origins),
            f"windows: {self.past.shape} past and {self.future.shape} future rates for {len(self.origins)} origins",
        )
        require(bool((np.diff(self.origins) > 0).all()), "windows: origins must grow")

    def __len__(self) -> int:
        return len(self.origins)

    @property
    def steps(self) -> int:
        """How far ahead these windows show the future."""
        return int(self.future.shape[1])

    def every(self, stride: int) -> Windows:
        """Every so many-th of the windows."""
        return Windows(
            interval_s=self.interval_s,
            origins=self.origins[::stride],
            past=self.past[::stride],
            future=self.future[::stride],
        )

    @property
    def first(self) -> int:
        """The interval that the oldest past begins with."""
        return int(self.origins[0]) - int(self.past.shape[1]) + 1

    def recorded(self) -> FloatArray:
        """The rates that the windows were cut from, beginning with the interval `first`; NaN where none is known.

        Rates that only a past shows may have been made up.
        """
        return self._laid(after_wins=True)

    def series(self) -> FloatArray:
        """The same with what was made up; where windows leave something out, the value before is repeated."""
        found = self._laid(after_wins=False)
        known = np.maximum.accumulate(np.where(np.isnan(found), 0, np.arange(len(found))))
        return found[known]

    def _laid(self, *, after_wins: bool) -> FloatArray:
        before, at = self.past.shape[1], self.origins - self.first + 1
        found = np.full(int(at[-1]) + self.steps, np.nan)
        for is_after in (not after_wins, after_wins):
            for place, past, future in zip(at.tolist(), self.past, self.future, strict=True):
                if is_after:
                    found[place : place + self.steps] = future
                else:
                    found[place - before : place] = past
        return found


def windows_of(rates: FloatArray, *, interval_s: float, past: int, future: int, stride: int = 1) -> Windows:
    """All windows of a series without gaps, or every so many-th."""
    require(
        len(rates) >= past + future,
        f"{len(rates)} rates are too few for a window of {past} past and {future} future ones",
    )
    both = np.lib.stride_tricks.sliding_window_view(rates, past + future)[::stride]
    return Windows(
        interval_s=interval_s,
        origins=past - 1 + stride * np.arange(len(both), dtype=np.int64),
        past=both[:, :past],
        future=both[:, past:],
    )


def steps_per_day(interval_s: float) -> int:
    return max(1, round(DAY_S / interval_s))
