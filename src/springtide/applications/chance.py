"""Chance as a pure function: the number that is drawn for a thing depends on the seed, the purpose and the thing's number."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from springtide.model.observation import FloatArray

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Chance:
    """Draws for whole arrays of numbers at once. What is drawn for one purpose says nothing about another.

    >>> chance = Chance(7)
    >>> bool(np.all(chance.whole("colour", np.arange(9), 3)[4:] == chance.whole("colour", np.arange(4, 9), 3)))
    True
    """

    seed: int

    def bits(self, purpose: str, numbers: NDArray[Any]) -> NDArray[np.uint64]:
        x = (numbers.astype(np.uint64) ^ _salt(self.seed, purpose)) + np.uint64(0x9E3779B97F4A7C15)  # SplitMix64's finaliser
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))

    def share(self, purpose: str, numbers: NDArray[Any]) -> FloatArray:
        """Evenly between 0 and 1, which is never drawn."""
        return (self.bits(purpose, numbers) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def whole(self, purpose: str, numbers: NDArray[Any], below: int) -> IntArray:
        """Evenly one of 0 to `below` - 1."""
        return (self.bits(purpose, numbers) % np.uint64(below)).astype(np.int64)

    def zipf(self, purpose: str, numbers: NDArray[Any], count: int, exponent: float) -> IntArray:
        """One of 0 to `count` - 1: 0 is the most frequent."""
        return np.searchsorted(_zipf_cdf(count, exponent), self.share(purpose, numbers), side="right").astype(np.int64)

    def among(self, purpose: str, numbers: NDArray[Any], shares: tuple[float, ...]) -> IntArray:
        """The index of a share; what is missing to 1 is the last one's."""
        edges = np.cumsum(shares)[:-1]
        return np.searchsorted(edges, self.share(purpose, numbers), side="right").astype(np.int64)


@lru_cache(maxsize=256)
def _salt(seed: int, purpose: str) -> np.uint64:
    spawn_key = (zlib.crc32(purpose.encode()),)
    return np.uint64(np.random.SeedSequence(seed, spawn_key=spawn_key).generate_state(1, np.uint64)[0])


@lru_cache(maxsize=8)
def _zipf_cdf(count: int, exponent: float) -> FloatArray:
    cumulative = np.cumsum(np.arange(1, count + 1, dtype=np.float64) ** -exponent)
    cdf: FloatArray = cumulative / cumulative[-1]
    return cdf
