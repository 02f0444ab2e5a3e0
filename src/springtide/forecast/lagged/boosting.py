"""Gradient boosting of small trees, by scikit-learn's histograms: the only module that knows how its trees look inside.

Rules: one thread, so that the same samples and seed give the same trees. Nothing is missing among the features, and none is a
category.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from springtide.errors import require
from springtide.forecast.lagged.trees import MOST_DEPTH, Forest
from springtide.model.observation import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Boosting:
    """At most `trees` trees are grown, each `depth` deep, and the next one learns `learning_rate` of what is left."""

    trees: int = 80
    depth: int = 4
    learning_rate: float = 0.08
    least_samples: int = 40

    def __post_init__(self) -> None:
        require(1 <= self.depth <= MOST_DEPTH, f"trees are 1 to {MOST_DEPTH} deep, not {self.depth}")

    def regressor(self, seed: int) -> Any:
        from sklearn.ensemble import HistGradientBoostingRegressor  # type: ignore[import-untyped]  # noqa: PLC0415 - only learning needs it

        return HistGradientBoostingRegressor(
            max_iter=self.trees,
            max_depth=self.depth,
            max_leaf_nodes=2**self.depth,
            learning_rate=self.learning_rate,
            min_samples_leaf=self.least_samples,
            early_stopping=False,
            random_state=seed,
        )

    def grown(self, features: FloatArray, values: FloatArray, seed: int) -> Forest:
        """The trees whose sum comes near `values`: (samples, features) and (samples,)."""
        with one_thread():
            regressor = self.regressor(seed).fit(features, values)
        return forest_of(regressor, self.depth)


def one_thread() -> AbstractContextManager[object]:
    """Within it, libraries compute with one thread: sums come out the same, and learners do not hinder one another."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # noqa: PLC0415 - comes with scikit-learn

    limited: AbstractContextManager[object] = threadpool_limits(limits=1)
    return limited


def forest_of(regressor: Any, depth: int) -> Forest:
    """The trees of a fitted regressor. What it predicts before the first tree is put into that tree's leaves."""
    grown = [predictor.nodes for stage in regressor._predictors for predictor in stage]
    features = np.zeros((len(grown), 2**depth - 1), np.int32)
    thresholds = np.full((len(grown), 2**depth - 1), np.inf)
    leaves = np.zeros((len(grown), 2**depth))
    for tree, nodes in enumerate(grown):
        _lay_out(nodes, (0, 0), (features[tree], thresholds[tree], leaves[tree]))
    leaves[0] += float(regressor._baseline_prediction.item())
    return Forest(features=features, thresholds=thresholds, leaves=leaves)


def _lay_out(nodes: Any, at: tuple[int, int], into: tuple[Any, FloatArray, FloatArray]) -> None:
    """Put the grown node `at[0]`, and all below it, to the place `at[1]` of a complete tree."""
    node, place = nodes[at[0]], at[1]
    features, thresholds, leaves = into
    if node["is_leaf"]:
        first = last = place
        while first < len(features):
            first, last = 2 * first + 1, 2 * last + 2
        leaves[first - len(features) : last - len(features) + 1] = node["value"]
        return
    features[place], thresholds[place] = node["feature_idx"], node["num_threshold"]
    _lay_out(nodes, (int(node["left"]), 2 * place + 1), into)
    _lay_out(nodes, (int(node["right"]), 2 * place + 2), into)
