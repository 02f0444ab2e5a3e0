"""The future itself, for runs over a recorded trace: what the best policy could know at most."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from springtide.model.observation import FloatArray, Observation
from springtide.model.protocols import FORESIGHT, Forecast


class Foresight:
    """Every later interval's rate, and the highest rate that lasts for `burst_s` within it."""

    def __init__(self, rows: Mapping[str, FloatArray], *, step_s: float, interval_s: float, burst_s: float) -> None:
        """`rows[source]` are the rows of each step of `step_s` seconds."""
        self._interval_s = interval_s
        steps = max(1, round(interval_s / step_s))
        burst = max(1, min(steps, round(burst_s / step_s)))
        self._mean = {source: _blocks(counts, steps).mean(axis=1) / step_s for source, counts in rows.items()}
        self._peak = {source: _peaks(_blocks(counts, steps), burst) / step_s for source, counts in rows.items()}

    def __call__(self, observation: Observation) -> Forecast | None:
        first = observation.index + 1
        if all(first >= len(rates) for rates in self._mean.values()):
            return None
        return Forecast(
            interval_s=self._interval_s,
            model=FORESIGHT,
            mean={source: rates[first:] for source, rates in self._mean.items()},
            upper={source: rates[first:] for source, rates in self._peak.items()},
        )


def _blocks(counts: FloatArray, steps: int) -> FloatArray:
    """One row for each interval; the last one is filled up with what it ends with."""
    missing = -len(counts) % steps
    return np.concatenate([counts, np.full(missing, counts[-1])]).reshape(-1, steps)


def _peaks(blocks: FloatArray, burst: int) -> FloatArray:
    sums = np.concatenate([np.zeros((len(blocks), 1)), np.cumsum(blocks, axis=1)], axis=1)
    peaks: FloatArray = (sums[:, burst:] - sums[:, :-burst]).max(axis=1) / burst
    return peaks
