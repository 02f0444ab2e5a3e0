"""When the rows of a batch entered the application: a few weighted points, kept small however many batches are joined.

A micro-batch's rows all leave at one moment, so its latencies are that moment less these times. They travel with batches, not
with rows: no user function has to carry a column along, and an aggregate inherits the times of the rows that went into it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from springtide.model.observation import FloatArray

MOST_POINTS = 200


@dataclass(frozen=True, slots=True, eq=False)
class IngestTimes:
    """`rows[i]` rows entered at `times_s[i]`, seconds since the epoch."""

    times_s: FloatArray
    rows: FloatArray

    @property
    def total_rows(self) -> float:
        return float(self.rows.sum())

    def ages_s(self, now_s: float) -> FloatArray:
        """How old each point is; clocks of two machines may differ, an age is never negative."""
        return np.maximum(0.0, now_s - self.times_s)


def nobody() -> IngestTimes:
    return IngestTimes(np.zeros(0), np.zeros(0))


def at_once(time_s: float, rows: float) -> IngestTimes:
    return IngestTimes(np.array([time_s]), np.array([float(rows)])) if rows > 0 else nobody()


def joined(parts: Iterable[IngestTimes]) -> IngestTimes:
    """All parts together, in at most `MOST_POINTS` points of nearly equal weight; the sum of ages is kept exactly."""
    found = list(parts)
    if not found:
        return nobody()
    times_s = np.concatenate([p.times_s for p in found])
    rows = np.concatenate([p.rows for p in found])
    if len(times_s) <= MOST_POINTS:
        return IngestTimes(times_s, rows)
    order = np.argsort(times_s, kind="stable")
    times_s, rows = times_s[order], rows[order]
    middle = np.cumsum(rows) - rows / 2
    group = np.minimum((middle / rows.sum() * MOST_POINTS).astype(np.intp), MOST_POINTS - 1)
    weight: FloatArray = np.bincount(group, weights=rows, minlength=MOST_POINTS).astype(np.float64)
    summed = np.bincount(group, weights=rows * times_s, minlength=MOST_POINTS)
    held = weight > 0
    return IngestTimes(summed[held] / weight[held], weight[held])
