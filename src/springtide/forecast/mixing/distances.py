"""At which distances ahead errors are kept, and how what is known there becomes known at every step in between."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from springtide.model.observation import FloatArray

_KEPT = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 72, 96, 144, 192, 288, 432, 720, 1440, 2880)


def distances_to(steps: int) -> NDArray[np.int64]:
    """
    >>> distances_to(10)
    array([ 1,  2,  3,  4,  6,  8, 10])
    """
    return np.array([d for d in _KEPT if d < steps] + [steps], np.int64)


def at_every_step(values: FloatArray, distances: NDArray[np.int64], steps: int) -> FloatArray:
    """What is known at some distances, on the first axis, at each of the next steps: in between, by a straight line.

    >>> at_every_step(np.array([1.0, 3.0]), np.array([1, 3]), 4)
    array([1., 2., 3., 3.])
    """
    wanted = np.minimum(np.arange(1, steps + 1), distances[-1])
    after = np.searchsorted(distances, wanted)
    before = np.maximum(after - 1, 0)
    width = np.maximum(distances[after] - distances[before], 1)
    share = (wanted - distances[before]) / width
    share = share.reshape(-1, *([1] * (values.ndim - 1)))
    found: FloatArray = values[before] + share * (values[after] - values[before])
    return found
