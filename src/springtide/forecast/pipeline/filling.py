"""Rates that were not recorded: found, made up from their surroundings, and counted.

Rules: what was recorded is never changed. A short gap becomes a straight line between its neighbours. In a longer one each
rate is that of the same time of the nearest day before that has it, else of the nearest day after, else of the straight line.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from springtide.errors import require
from springtide.model.observation import FloatArray
from springtide.model.windows import steps_per_day

SHORT_GAP_S = 3_600.0
SHORT_GAP_INTERVALS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """How many gaps a series had, how many intervals they took together, and how many the longest took."""

    gaps: int
    intervals: int
    longest_intervals: int


def filled_rates(rates_per_s: FloatArray, interval_s: float) -> FloatArray:
    """The same rates with a number for every NaN; the first and the last must be recorded.

    >>> filled_rates(np.array([1.0, np.nan, 3.0]), 60.0).tolist()
    [1.0, 2.0, 3.0]
    """
    missing = np.isnan(rates_per_s)
    require(missing.size > 0 and not (missing[0] or missing[-1]), "a series must begin and end with a recorded rate")
    places = np.arange(missing.size)
    filled: FloatArray = np.where(missing, np.interp(places, places[~missing], rates_per_s[~missing]), rates_per_s)
    longest = max(SHORT_GAP_INTERVALS, int(SHORT_GAP_S // interval_s))
    for first, end in _runs(missing):
        if end - first > longest:
            _fill_from_other_days(filled, missing, slice(first, end), steps_per_day(interval_s))
    return filled


def gaps_in(missing: NDArray[np.bool_]) -> Gaps:
    lengths = [end - first for first, end in _runs(missing)]
    return Gaps(gaps=len(lengths), intervals=sum(lengths), longest_intervals=max(lengths, default=0))


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Where each run of true flags begins, and where it has ended."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    return [(int(first), int(end)) for first, end in zip(edges[::2], edges[1::2], strict=True)]


def _fill_from_other_days(filled: FloatArray, missing: NDArray[np.bool_], gap: slice, day: int) -> None:
    open_places = np.arange(gap.start, gap.stop)
    for direction in (-day, day):
        looked_at = open_places + direction
        while open_places.size:
            inside = (looked_at >= 0) & (looked_at < missing.size)
            if not inside.any():
                break
            known = inside.copy()
            known[inside] = ~missing[looked_at[inside]]
            filled[open_places[known]] = filled[looked_at[known]]
            open_places, looked_at = open_places[~known], looked_at[~known] + direction
