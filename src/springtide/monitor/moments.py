"""Sums over samples from which a linear cost is estimated: they add up, however many samples there are.

A sample says that something with the features x took y seconds. The first feature is always 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from springtide.model.observation import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """`xx` sums the products of features, `xy` those of features and seconds, `yy` the squares of seconds."""

    xx: FloatArray
    xy: FloatArray
    yy: float

    @classmethod
    def empty(cls, features: int) -> Moments:
        return cls(np.zeros((features, features)), np.zeros(features), 0.0)

    @classmethod
    def of(cls, features: FloatArray, seconds: FloatArray) -> Moments:
        """Of samples: one row of `features` each, in which the leading 1 is left out."""
        x = np.column_stack([np.ones(len(seconds)), features])
        return cls(x.T @ x, x.T @ seconds, float((seconds**2).sum()))

    @property
    def count(self) -> float:
        return float(self.xx[0, 0])

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.xx + other.xx, self.xy + other.xy, self.yy + other.yy)

    def scaled(self, factor: float) -> Moments:
        """As if each sample had been taken `factor` times."""
        return Moments(self.xx * factor, self.xy * factor, self.yy * factor)
