"""Gradient-boosted trees on lags, begun from a linear model: one model for all distances ahead.

Paper: J. H. Friedman, "Greedy Function Approximation: A Gradient Boosting Machine", Annals of Statistics 29(5), 2001,
section 4.1 (least squares). What is learnt is how far the rate will be from the last one.

| symbol | argument | unit |
|---|---|---|
| M | `boosting.trees`; `len(forest)` after learning | trees |
| J | 2^`boosting.depth` | leaves of a tree |
| nu | `boosting.learning_rate` | 1 |
| x | `lags`: see there | scaled rates, intervals |

Departures from the paper. F_0 is no constant, but a ridge regression for each of some distances (`distance_weights`), because
trees cannot follow a rate beyond what they have seen. Trees are grown on histograms, as LightGBM's (G. Ke et al., NIPS 2017).
The regressions and M are those with the least error on the validation windows (`judging`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import ClassVar

import numpy as np

from springtide.forecast.lagged import distance_weights, trees
from springtide.forecast.lagged.boosting import Boosting, one_thread
from springtide.forecast.lagged.distance_weights import DistanceWeights, WeightsStack, chosen, regressed
from springtide.forecast.lagged.judging import Judge, judge_of
from springtide.forecast.lagged.lags import NOW, IntArray, Lags, lags_in
from springtide.forecast.lagged.samples import Samples, samples_of
from springtide.forecast.lagged.trees import Forest, ForestStack
from springtide.forecast.mixing.distances import distances_to
from springtide.model.observation import FloatArray
from springtide.model.windows import Windows

_MOST_ORIGINS = 10_000
_DISTANCES_EACH = 6
_AT_ONCE = 20_000  # places whose features are made at once


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BoostedLags:
    """`penalties` and `shares_of_usual` are there to choose from: how strongly, for each sample, F_0 is drawn towards what lies
    that share of the way from the last rate to the usual one of the time of day. `lags`, `linear` and `forest` are learnt."""

    name: ClassVar[str] = "boosted-lags"
    summary: ClassVar[str] = "gradient-boosted trees on lags, days and weeks before, begun from a linear model"
    reference: ClassVar[str] = (
        "J. H. Friedman, Greedy Function Approximation: A Gradient Boosting Machine, Annals of Statistics 29(5), 2001."
    )

    boosting: Boosting = field(default_factory=Boosting)
    penalties: tuple[float, ...] = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
    shares_of_usual: tuple[float, ...] = (0.0, 0.5, 1.0)
    lags: Lags = field(default_factory=Lags)
    linear: DistanceWeights = field(default_factory=DistanceWeights)
    forest: Forest = field(default_factory=Forest)

    def fit(self, train: Windows, validation: Windows, seed: int) -> BoostedLags:
        rng = np.random.default_rng(seed)
        samples, lags = samples_of(train), lags_in(train)
        origins = samples.some(_MOST_ORIGINS, rng)
        judge = judge_of(validation if len(validation) else train, lags, samples.steps)
        with one_thread():
            linear = self._begun(samples, lags, origins, judge)
            distances = samples.distances(len(origins), _DISTANCES_EACH, rng)
            features = lags.at(samples.series, origins, distances)
            left = samples.changes(origins, distances) - _sums(linear, features, distances)
            known = np.isfinite(left)
            forest = self.boosting.grown(features[known], left[known], seed)
        steps = (trees.stacked([forest.only(tree)]).sums(judge.features) for tree in range(len(forest)))
        grown = accumulate(steps, initial=_sums(linear, judge.features, judge.distances))
        return replace(self, lags=lags, linear=linear, forest=forest.first(judge.best(grown)))

    def _begun(self, samples: Samples, lags: Lags, origins: IntArray, judge: Judge) -> DistanceWeights:
        """F_0: at each distance the linear model that does best."""

        def at(distance: int) -> tuple[FloatArray, FloatArray]:
            distances = np.full((len(origins), 1), distance)
            changes = samples.changes(origins, distances)
            known = np.isfinite(changes[:, 0])
            features = lags.at(samples.series, origins[known], distances[known])[:, 0]
            features[:, NOW] = 0.0  # without the level itself, all that was learnt holds at every level
            return features, changes[known, 0]

        usual = np.zeros(lags.count)
        if lags.day:
            usual[lags.usual] = 1.0
        towards = [share * usual for share in self.shares_of_usual]
        choices = regressed(at, distances_to(samples.steps), self.penalties, towards)
        return chosen(choices, judge.best_each(_sums(choice, judge.features, judge.distances) for choice in choices))

    def predict(self, past: FloatArray, steps: int) -> FloatArray:
        stack = _stacked([self])
        rows = max(1, _AT_ONCE // steps)
        return np.concatenate([stack.continued(past[i : i + rows], steps) for i in range(0, len(past), rows)])

    @classmethod
    def together(cls, models: Sequence[BoostedLags]) -> Callable[[FloatArray, int], FloatArray]:
        alike: dict[tuple[Lags, bytes], list[int]] = {}
        for row, model in enumerate(models):
            alike.setdefault((model.lags, model.linear.distances.tobytes()), []).append(row)
        groups = [(rows, _stacked([models[row] for row in rows])) for rows in alike.values()]

        def predict(pasts: FloatArray, steps: int) -> FloatArray:
            found = np.empty((len(pasts), steps))
            for rows, stack in groups:
                found[rows] = stack.continued(pasts[rows], steps)
            return found

        return predict


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Stack:
    """Models with the same features and distances, one for each row of past rates, or one for all."""

    lags: Lags
    linear: WeightsStack
    forest: ForestStack

    def continued(self, pasts: FloatArray, steps: int) -> FloatArray:
        distances = np.tile(np.arange(1, steps + 1), (len(pasts), 1))
        features = self.lags.of(pasts, distances)
        return features[:, :, NOW] + self.linear.sums(features, distances) + self.forest.sums(features)


def _sums(linear: DistanceWeights, features: FloatArray, distances: IntArray) -> FloatArray:
    return distance_weights.stacked([linear]).sums(features, distances)


def _stacked(models: Sequence[BoostedLags]) -> _Stack:
    return _Stack(
        lags=models[0].lags,
        linear=distance_weights.stacked([model.linear for model in models]),
        forest=trees.stacked([model.forest for model in models]),
    )
