"""How a keyed operator's rows are spread over its shards, of late.

A batch has a few rows for each shard, by chance more or fewer: shards that were dealt out by one batch would be uneven in the
next. So the rows of some batches are added up, the older ones counting less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from springtide.model.observation import FloatArray

_HALF_LIFE_S = 15.0  # after which a row counts half: hot keys move within a minute
_EVEN_ROWS = 1.0  # for each shard, before any has come


@dataclass(frozen=True, slots=True, eq=False)
class ShardWeights:
    """Rows by shard, and when they were added up last.

    >>> weights = ShardWeights.even(2).then(np.array([30.0, 10.0]), at_s=1.0).then(np.array([0.0, 0.0]), at_s=16.0)
    >>> weights.rows.tolist(), weights.shares.round(2).tolist()
    ([15.5, 5.5], [0.74, 0.26])
    """

    rows: FloatArray
    at_s: float = 0.0

    @classmethod
    def even(cls, shards: int) -> ShardWeights:
        return cls(np.full(shards, _EVEN_ROWS))

    def then(self, rows: FloatArray, at_s: float) -> ShardWeights:
        """With the rows of one more batch."""
        kept = 1.0 if self.at_s == 0 else 2.0 ** (-max(0.0, at_s - self.at_s) / _HALF_LIFE_S)
        return ShardWeights(kept * self.rows + rows, at_s)

    @property
    def shares(self) -> FloatArray:
        shares: FloatArray = self.rows / self.rows.sum()
        return shares
