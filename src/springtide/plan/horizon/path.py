"""The cheapest way through sizes over many intervals: exact dynamic programming.

A stage is an interval, a state a size (a number of hosts). Being of a size costs what the stage says; getting from one size to
another costs so much for each unit more, so much for each unit less, and a fixed amount if it changes at all:

    cost = sum_k stage[k, size_k] + up (size_k - size_{k-1})+ + down (size_{k-1} - size_k)+ + change [size_k != size_{k-1}]

Because moves cost what their length says, the best way into every size of a stage is found from running minima, once upwards
and once downwards: the time grows with stages times sizes, not with the square of the sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from springtide.errors import require
from springtide.model.observation import FloatArray

_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """What a change of size costs: for each unit more, for each unit less, and for being a change."""

    up: float
    down: float
    change: float

    def __post_init__(self) -> None:
        for what in ("up", "down", "change"):
            require(getattr(self, what) >= 0, f"moves: {what} must be 0 or more, not {getattr(self, what)}")

    def between(self, size: int, sizes: NDArray[np.int64]) -> FloatArray:
        """What it costs to get from one size to each of many."""
        further = sizes - size
        costs: FloatArray = np.where(further > 0, self.up * further, -self.down * further) + self.change * (further != 0)
        return costs


def cheapest_path(stages: FloatArray, sizes: NDArray[np.int64], start: int, moves: Moves) -> NDArray[np.int64]:
    """The size in each stage that costs least in all, from the size `start`.

    `stages[k, i]` is what `sizes[i]` costs in stage k; sizes are in ascending order. Of two ways that cost the same, the one
    that changes later is taken.

    >>> stages = np.array([[0.0, 5.0], [9.0, 0.0], [0.0, 1.0]])
    >>> cheapest_path(stages, np.array([1, 2]), 1, Moves(up=2.0, down=2.0, change=0.0)).tolist()
    [1, 2, 2]
    """
    path = np.empty(len(stages), dtype=np.int64)
    size = start
    for k, best in enumerate(_best(stages, sizes, moves)):
        size = path[k] = _next(best, sizes, size, moves)
    return path


def first_step(stages: FloatArray, sizes: NDArray[np.int64], start: int, moves: Moves) -> int:
    """The first size of the cheapest path: all that is needed of a plan that is made again in the next interval."""
    return _next(_best(stages, sizes, moves)[0], sizes, start, moves)


def path_cost(stages: FloatArray, sizes: NDArray[np.int64], start: int, path: NDArray[np.int64], moves: Moves) -> float:
    """What a way through the sizes costs."""
    total, size = 0.0, start
    for k, to in enumerate(path.tolist()):
        at = int(np.searchsorted(sizes, to))
        total += float(stages[k, at]) + float(moves.between(size, sizes)[at])
        size = to
    return total


def _best(stages: FloatArray, sizes: NDArray[np.int64], moves: Moves) -> FloatArray:
    """`[k, i]`: what stages k and later cost at least, if the size in stage k is `sizes[i]`."""
    rise, fall = moves.up * sizes.astype(np.float64), moves.down * sizes.astype(np.float64)
    best = stages.copy()
    for k in range(len(stages) - 2, -1, -1):
        best[k] += _onwards(best[k + 1], rise, fall, moves.change)
    return best


def _onwards(after: FloatArray, rise: FloatArray, fall: FloatArray, change: float) -> FloatArray:
    """The least that the later stages cost from each size, whether it stays so or not."""
    downwards = np.minimum.accumulate(after - fall) + fall
    upwards = np.minimum.accumulate((after + rise)[::-1])[::-1] - rise
    onwards: FloatArray = np.minimum(after, np.minimum(upwards, downwards) + change)
    return onwards


def _next(best: FloatArray, sizes: NDArray[np.int64], size: int, moves: Moves) -> int:
    reached = best + moves.between(size, sizes)
    cheapest = int(reached.argmin())
    at = int(np.searchsorted(sizes, size))
    stays = at < len(sizes) and sizes[at] == size and reached[at] <= reached[cheapest] * (1 + _ROUNDING)
    return size if stays else int(sizes[cheapest])
