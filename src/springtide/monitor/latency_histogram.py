"""Latency percentiles from weighted rows, in bounded memory.

Rows are counted in bins that are 0.2 % wide, so a percentile is off by at most 0.1 % of its value, whatever the
number of rows. Latencies below 0.1 ms count as 0.1 ms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from springtide.model.observation import FloatArray, Latency

SMALLEST_S = 1e-4
LARGEST_S = 1e8
BIN_RATIO = 1.002
BINS_PER_UNIT = 1.0 / math.log(BIN_RATIO)  # bins per factor of e
BINS = int(math.log(LARGEST_S / SMALLEST_S) * BINS_PER_UNIT) + 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LatencyCounts:
    """Rows by latency: `rows[b]` in bin b, with the exact sum, maximum and number of late rows beside them."""

    rows: FloatArray
    sum_s: float
    max_s: float
    late_rows: float

    def plus(self, other: LatencyCounts) -> LatencyCounts:
        return LatencyCounts(
            rows=self.rows + other.rows,
            sum_s=self.sum_s + other.sum_s,
            max_s=max(self.max_s, other.max_s),
            late_rows=self.late_rows + other.late_rows,
        )


def no_latency() -> LatencyCounts:
    return LatencyCounts(rows=np.zeros(BINS), sum_s=0.0, max_s=0.0, late_rows=0.0)


def summarise(counts: LatencyCounts, slo_percentile: float) -> Latency:
    """The latency of an interval, or of a whole run, as an observation shows it."""
    bins = np.flatnonzero(counts.rows)  # a few of thousands: most intervals see a narrow range of latencies
    if not len(bins):
        return Latency()
    cumulative = np.cumsum(counts.rows[bins])
    total = float(cumulative[-1])
    shares = np.array([0.1, 0.5, 0.9, 0.99, slo_percentile])
    found = bins[np.minimum(np.searchsorted(cumulative, shares * total), len(bins) - 1)]
    p10, p50, p90, p99, at_slo = (min(_bin_value(b), counts.max_s) for b in found.tolist())
    return Latency(
        rows=total,
        mean_s=counts.sum_s / total,
        p10_s=p10,
        p50_s=p50,
        p90_s=p90,
        p99_s=p99,
        max_s=counts.max_s,
        violation_share=min(1.0, counts.late_rows / total),
        slo_s=at_slo,
    )


def bin_of(latency_s: float) -> int:
    """The bin that a latency is counted in; compiled as it stands where rows are counted by the million."""
    if latency_s <= SMALLEST_S:
        return 0
    return min(BINS - 1, 1 + int(math.log(latency_s / SMALLEST_S) * BINS_PER_UNIT))


def _bin_value(index: int) -> float:
    """The middle of a bin."""
    return SMALLEST_S * math.exp((index - 0.5) / BINS_PER_UNIT) if index > 0 else SMALLEST_S
