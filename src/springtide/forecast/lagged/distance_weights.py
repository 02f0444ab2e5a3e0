"""Linear models of the same features, one for each of some distances ahead; in between, their weights change by straight lines.

Each is a ridge regression: A. E. Hoerl, R. W. Kennard, Ridge Regression: Biased Estimation for Nonorthogonal Problems,
Technometrics 12(1), 1970. Features are standardised, and the penalty is for each sample, so that it means the same for any
series. Weights are drawn towards given ones, which may be 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from springtide.forecast.compiling import compiled
from springtide.model.observation import FloatArray

IntArray = NDArray[np.int64]

_LEAST_DEVIATION = 1e-6  # of a feature, in scaled rates: one that varies less tells nothing


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DistanceWeights:
    """`weights[k]` and `offsets[k]` are those of the distance `distances[k]`."""

    distances: IntArray = field(default_factory=lambda: np.ones(1, np.int64))
    weights: FloatArray = field(default_factory=lambda: np.zeros((1, 1)))
    offsets: FloatArray = field(default_factory=lambda: np.zeros(1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightsStack:
    """Those of some series with the same distances and features: (series, distances, features)."""

    distances: IntArray
    weights: FloatArray
    offsets: FloatArray

    def sums(self, features: FloatArray, distances: IntArray) -> FloatArray:
        """The weighted features (rows, places, features), each place at its distance, by the weights of the same row, or by the
        only ones there are."""
        wanted = np.minimum(distances, self.distances[-1])
        after = np.searchsorted(self.distances, wanted)
        before = np.maximum(after - 1, 0)
        share = (wanted - self.distances[before]) / np.maximum(self.distances[after] - self.distances[before], 1)
        found = np.empty(features.shape[:2])
        _weigh(features, (self.weights, self.offsets), (before, after, share), found)
        return found


def stacked(models: Sequence[DistanceWeights]) -> WeightsStack:
    return WeightsStack(
        distances=models[0].distances,
        weights=np.stack([model.weights for model in models]),
        offsets=np.stack([model.offsets for model in models]),
    )


def regressed(
    samples: Callable[[int], tuple[FloatArray, FloatArray]],
    distances: IntArray,
    penalties: Sequence[float],
    towards: Sequence[FloatArray],
) -> list[DistanceWeights]:
    """The ridge regressions for all penalties, drawn towards each of some weights; `samples` gives features and values at a
    distance."""
    found = [_ridges(*samples(distance), penalties, towards) for distance in distances.tolist()]
    return [
        DistanceWeights(
            distances=distances,
            weights=np.stack([weights[choice] for weights, _ in found]),
            offsets=np.array([offsets[choice] for _, offsets in found]),
        )
        for choice in range(len(penalties) * len(towards))
    ]


def chosen(choices: Sequence[DistanceWeights], picks: IntArray) -> DistanceWeights:
    """At each distance those of the choice that was picked there."""
    return DistanceWeights(
        distances=choices[0].distances,
        weights=np.stack([choices[pick].weights[k] for k, pick in enumerate(picks)]),
        offsets=np.array([choices[pick].offsets[k] for k, pick in enumerate(picks)]),
    )


def _ridges(
    features: FloatArray, values: FloatArray, penalties: Sequence[float], towards: Sequence[FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Weights and offsets: (penalties of each of `towards`, features) and (the same,)."""
    count = max(1, len(values))
    mean, deviation = features.sum(axis=0) / count, features.std(axis=0) if len(values) else np.zeros(features.shape[1])
    told = deviation > _LEAST_DEVIATION
    per = np.where(told, 1.0 / np.where(told, deviation, 1.0), 0.0)
    standard = (features - mean) * per
    spectrum, directions = np.linalg.eigh(standard.T @ standard / count)
    weights = []
    for toward in towards:
        along = directions.T @ (standard.T @ (values - features @ toward)) / count
        weights += [toward + per * (directions @ (along / (np.maximum(spectrum, 0.0) + penalty))) for penalty in penalties]
    return np.array(weights), values.sum() / count - np.array(weights) @ mean


@compiled
def _weigh(features, linear, places, out):  # type: ignore[no-untyped-def]
    weights, offsets = linear
    before, after, share = places
    for i in range(features.shape[0]):
        m = i % len(weights)
        for j in range(features.shape[1]):
            row, near, far, part = features[i, j], weights[m, before[i, j]], weights[m, after[i, j]], share[i, j]
            total = (1.0 - part) * offsets[m, before[i, j]] + part * offsets[m, after[i, j]]
            for k in range(len(row)):
                total += row[k] * ((1.0 - part) * near[k] + part * far[k])
            out[i, j] = total
