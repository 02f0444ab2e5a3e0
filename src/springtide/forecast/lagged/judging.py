"""Which of several choices did best on windows that were not learnt from.

An error is squared, and counted at each distance in parts of that of the last rate, so that near and far distances count alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from springtide.errors import require
from springtide.forecast.lagged.lags import IntArray, Lags
from springtide.forecast.mixing.distances import distances_to
from springtide.model.observation import FloatArray
from springtide.model.windows import Windows

_MOST_WINDOWS = 1_500


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judge:
    """Features at some distances of some windows, and how far the rate was from the last one there: NaN where nobody knows."""

    distances: IntArray
    features: FloatArray
    changes: FloatArray

    def errors(self, changes: FloatArray) -> FloatArray:
        """The error of predicted changes at each distance; 0 where there is nothing to compare them with."""
        known = np.isfinite(self.changes)
        left = np.sum(np.where(known, changes - self.changes, 0.0) ** 2, axis=0)
        naive = np.sum(np.where(known, self.changes, 0.0) ** 2, axis=0)
        found: FloatArray = left / np.where(naive > 0.0, naive, 1.0)
        return found

    def best(self, choices: Iterable[FloatArray]) -> int:
        """Which of the predicted changes come nearest, over all distances."""
        return int(np.argmin([self.errors(changes).mean() for changes in choices]))

    def best_each(self, choices: Iterable[FloatArray]) -> IntArray:
        """The same for each distance by itself and its two neighbours, which keep it from being a matter of luck."""
        errors = np.pad([self.errors(changes) for changes in choices], ((0, 0), (1, 1)), mode="edge")
        return np.asarray(np.argmin(errors[:, :-2] + errors[:, 1:-1] + errors[:, 2:], axis=0), np.int64)


def judge_of(windows: Windows, lags: Lags, steps: int) -> Judge:
    require(windows.steps == steps, f"windows to learn from show {steps} future rates, and those to judge by {windows.steps}")
    some = windows.every(-(-len(windows) // _MOST_WINDOWS))
    kept = distances_to(steps)
    distances = np.tile(kept, (len(some), 1))
    return Judge(
        distances=distances,
        features=lags.of(some.past, distances),
        changes=some.future[:, kept - 1] - some.past[:, -1:],
    )
