"""Sums of small decision trees, kept as arrays, and how they are evaluated.

A tree of depth D is complete: node n has the children 2n + 1 (feature at most threshold) and 2n + 2, and below its 2^D - 1
nodes are 2^D leaves. Where a grown tree ends earlier, nodes that always go left stand for what is missing. No tree is deeper
than `MOST_DEPTH`: the answers of its nodes are the bits of one number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from springtide.forecast.compiling import compiled
from springtide.model.observation import FloatArray

IntArray = NDArray[np.int64]

MOST_DEPTH = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forest:
    """Trees of one depth, whose values are added: (trees, nodes), (trees, nodes), (trees, leaves)."""

    features: NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 1), np.int32))
    thresholds: FloatArray = field(default_factory=lambda: np.zeros((0, 1)))
    leaves: FloatArray = field(default_factory=lambda: np.zeros((0, 2)))

    def __len__(self) -> int:
        return len(self.leaves)

    @property
    def depth(self) -> int:
        return int(self.leaves.shape[1]).bit_length() - 1

    def first(self, trees: int) -> Forest:
        return Forest(features=self.features[:trees], thresholds=self.thresholds[:trees], leaves=self.leaves[:trees])

    def only(self, tree: int) -> Forest:
        one = slice(tree, tree + 1)
        return Forest(features=self.features[one], thresholds=self.thresholds[one], leaves=self.leaves[one])

    def deepened(self, depth: int) -> Forest:
        """The same trees, as complete ones of a greater depth."""
        below = depth - self.depth
        if below == 0:
            return self
        features = np.zeros((len(self), 2**depth - 1), np.int32)
        thresholds = np.full((len(self), 2**depth - 1), np.inf)
        features[:, : self.features.shape[1]] = self.features
        thresholds[:, : self.thresholds.shape[1]] = self.thresholds
        return Forest(features=features, thresholds=thresholds, leaves=np.repeat(self.leaves, 2**below, axis=1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ForestStack:
    """Forests of some series one after the other: those of series i are the trees `starts[i]` to `starts[i + 1]`."""

    starts: IntArray
    trees: Forest

    def sums(self, features: FloatArray) -> FloatArray:
        """The sum of the trees at each place (rows, places, features): those of the same row, or of the only forest."""
        found = np.zeros(features.shape[:2])
        _add(features, self.starts, (self.trees.features, self.trees.thresholds, self.trees.leaves), found)
        return found


def stacked(forests: Sequence[Forest]) -> ForestStack:
    depth = max(forest.depth for forest in forests)
    deep = [forest.deepened(depth) for forest in forests]
    return ForestStack(
        starts=np.cumsum([0, *(len(forest) for forest in deep)]),
        trees=Forest(
            features=np.concatenate([forest.features for forest in deep]),
            thresholds=np.concatenate([forest.thresholds for forest in deep]),
            leaves=np.concatenate([forest.leaves for forest in deep]),
        ),
    )


@compiled
def _add(features, starts, trees, out):  # type: ignore[no-untyped-def]
    # Every node of a tree is asked at all places before any leaf is looked for. That is many more comparisons than a walk
    # down, but none waits for another, and a processor does several in one step.
    names, thresholds, leaves = trees
    rows, places, count = features.shape
    by_feature = np.empty((count, places))
    answers = np.empty(places, np.int64)  # a bit for each node: 1 is right
    for i in range(rows):
        m = i % (len(starts) - 1)
        for j in range(places):
            for k in range(count):
                by_feature[k, j] = features[i, j, k]
        for t in range(starts[m], starts[m + 1]):
            answers[:] = 0
            for node in range(names.shape[1]):
                feature, threshold = by_feature[names[t, node]], thresholds[t, node]
                for j in range(places):
                    answers[j] |= np.int64(feature[j] > threshold) << node
            for j in range(places):
                leaf, above = 0, 0
                while above < names.shape[1]:
                    leaf = 2 * leaf + ((answers[j] >> (above + leaf)) & 1)
                    above = 2 * above + 1
                out[i, j] += leaves[t, leaf]
