"""The columns of a chart: figures by interval, thinned out to what a screen can show."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from springtide.dashboard.cheapest import Cheapest
from springtide.dashboard.index import FIGURES, Index, foreseen
from springtide.model.observation import FloatArray

MOST_POINTS = 5000
_LASTS = ("time_s", "core_h")
_PEAKS = ("latency_slo_s", "changed")
_NOT_SHOWN = ("start_s", "cores", "core_s_per_row")
_MEANS = tuple(name for name in FIGURES if name not in (*_LASTS, *_PEAKS, *_NOT_SHOWN))


def series(
    index: Index, best: Cheapest | None, *, from_s: float = -math.inf, to_s: float = math.inf, points: int = 800
) -> dict[str, Any]:
    """The rows that end between two times as columns of at most `points` buckets: means, but for what adds up or is a peak."""
    time_s = index.rows["time_s"]
    first, last = int(np.searchsorted(time_s, from_s)), int(np.searchsorted(time_s, to_s, side="right"))
    last = max(first, last)
    starts = bucket_starts(last - first, points)

    def rows(name: str) -> FloatArray:
        return index.rows[name][first:last]

    columns: dict[str, FloatArray] = {name: lasts(rows(name), starts) for name in _LASTS}
    columns |= {name: means(rows(name), starts) for name in _MEANS}
    columns |= {name: peaks(rows(name), starts) for name in _PEAKS}
    columns["offered_max_per_s"] = peaks(rows("offered_per_s"), starts)
    columns["static_core_h"] = lasts(static_core_h(index)[first:last], starts)
    columns["oracle_core_h"] = lasts(oracle_core_h(index, best)[first:last], starts)
    found: dict[str, Any] = {name: column.tolist() for name, column in columns.items()}
    found["changed"] = [int(changed) for changed in found["changed"]]
    return {**found, "ahead": ahead(index)}


def newest_row(index: Index, best: Cheapest | None, row: int) -> dict[str, Any]:
    """One row of the series, as scalars."""
    figures: dict[str, Any] = {name: float(index.rows[name][row]) for name in (*_LASTS, *_MEANS, *_PEAKS)}
    figures["offered_max_per_s"] = figures["offered_per_s"]
    figures["static_core_h"] = float(static_core_h(index)[row])
    figures["oracle_core_h"] = float(oracle_core_h(index, best)[row])
    figures["changed"] = int(index.rows["changed"][row])
    return figures


def ahead(index: Index) -> dict[str, list[float]]:
    """What the last decision foresaw, from the end of the last interval on."""
    found: dict[str, list[float]] = {"time_s": [], "mean_per_s": [], "low_per_s": [], "high_per_s": []}
    if not index.ahead or not len(index) or index.end is not None:
        return found
    now_s, interval_s = float(index.rows["time_s"][-1]), index.ahead[0].interval_s
    for step in range(min(len(forecast.mean) for forecast in index.ahead)):
        mean, low, high = foreseen(index.ahead, step)
        found["time_s"].append(now_s + (step + 1) * interval_s)
        found["mean_per_s"].append(mean)
        found["low_per_s"].append(low)
        found["high_per_s"].append(high)
    return found


def static_core_h(index: Index) -> FloatArray:
    """Core-hours if the most cores of the run so far had been there all the time."""
    if not len(index):
        return np.empty(0)
    elapsed_s = index.rows["time_s"] - index.rows["start_s"][0]
    hours: FloatArray = index.rows["cores"].max() * elapsed_s / 3600
    return hours


def oracle_core_h(index: Index, best: Cheapest | None) -> FloatArray:
    return np.full(len(index), np.nan) if best is None else best.up_to(index.rows["time_s"])


def bucket_starts(count: int, points: int) -> NDArray[np.int64]:
    """Where buckets of about the same number of rows begin.

    >>> bucket_starts(5, 10).tolist(), bucket_starts(5, 2).tolist()
    ([0, 1, 2, 3, 4], [0, 2])
    """
    buckets = max(1, min(points, MOST_POINTS))
    if count <= buckets:
        return np.arange(count, dtype=np.int64)
    return np.arange(buckets, dtype=np.int64) * count // buckets


def means(column: FloatArray, starts: NDArray[np.int64]) -> FloatArray:
    """The mean of what is known in each bucket; unknown where nothing is."""
    if len(starts) == len(column):
        return column
    known = np.isfinite(column)
    total = np.add.reduceat(np.where(known, column, 0.0), starts)
    with np.errstate(invalid="ignore"):
        mean: FloatArray = total / np.add.reduceat(known.astype(np.float64), starts)
    return mean


def peaks(column: FloatArray, starts: NDArray[np.int64]) -> FloatArray:
    """The largest of what is known in each bucket."""
    if len(starts) == len(column):
        return column
    most: FloatArray = np.fmax.reduceat(column, starts)
    return most


def lasts(column: FloatArray, starts: NDArray[np.int64]) -> FloatArray:
    """The last of each bucket: of a time, or of what adds up."""
    if not len(column):
        return column
    ends: FloatArray = column[np.append(starts[1:], len(column)) - 1]
    return ends
