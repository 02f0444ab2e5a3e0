"""A linear cost that is learned from samples as they come: seconds = x . costs, with costs that drift.

A Kalman filter whose state walks at random: each batch adds a little doubt to every cost, each sample takes doubt away where it
tells something. A cost that samples stop telling apart from another keeps its value while its error grows: nothing is
forgotten only because time passes (the wind-up of least squares with exponential forgetting).

Costs change most in the beginning, while code is compiled, and are doubted more then.

Robustness: samples that are far from what was expected change little, once. If the next ones are as far off in the same
direction, the cost itself has changed, and is learned anew. Costs are never negative.

    R. E. Kalman, 1960; nonnegative projection in the metric of the covariance (N. Gupta, R. Hauser, 2007).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls

from springtide.model.batch import Estimate
from springtide.model.observation import FloatArray
from springtide.monitor.moments import Moments

_DRIFT = 0.01  # of a cost, and of the error it began with: how far it may have walked after one batch
_WARMING = 0.1  # the same beside it in the beginning, while code is compiled; it decays with the batches seen
_WARM_BATCHES = 20.0
_FIRST_NOISE = 0.15  # of a sample, as a share of its seconds
_LEAST_NOISE = 0.03
_LEAST_NOISE_S = 0.002
_NOISE_LEARNING = 0.05  # the share of a new batch in what is known of the noise
_FAR = 4.0  # standard deviations from what was expected
_LEAST_X = 1e-6  # of a feature, in units of its cost: a smaller one explains nothing
_PER_BATCH = 4.0  # samples of one batch that count at most: what slows one task down slows its neighbours down too


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearCost:
    """What is known so far. Values and covariance are in units of the errors that the costs began with."""

    units: FloatArray
    values: FloatArray
    covariance: FloatArray
    noise: float = _FIRST_NOISE
    batches: float = 0.0
    far_off: float = 0.0  # the direction in which the last samples were far off, 0 if they were not

    @classmethod
    def begin(cls, values: tuple[float, ...], errors: tuple[float, ...]) -> LinearCost:
        """With what may be expected before anything was measured. The last cost is the one that changes most easily."""
        units = np.array(errors)
        return cls(units=units, values=np.array(values) / units, covariance=np.eye(len(values)))

    def estimate(self, cost: int) -> Estimate:
        """One of the costs, with its error."""
        unit = float(self.units[cost])
        return Estimate(
            value=float(self.values[cost]) * unit, error=math.sqrt(max(0.0, float(self.covariance[cost, cost]))) * unit
        )

    def then(self, moments: Moments, batches: float) -> LinearCost:
        """With the samples of some more batches."""
        if moments.count <= 0 or batches <= 0:
            return self
        doubted = self._doubted(batches)
        samples = moments.scaled(min(1.0, _PER_BATCH * batches / moments.count))
        xx, xy = samples.xx * np.outer(self.units, self.units), samples.xy * self.units
        mean_x, mean_s = samples.xx[0] / samples.count * self.units, float(samples.xy[0]) / samples.count
        noise_s = self.noise * mean_s + _LEAST_NOISE_S
        missing_s = mean_s - float(mean_x @ self.values)
        far = abs(missing_s) / math.sqrt(float(mean_x @ doubted @ mean_x) + noise_s**2)
        direction = math.copysign(1.0, missing_s) if far > _FAR else 0.0
        if direction and direction == self.far_off:
            doubted = doubted + _changed(mean_x, missing_s)
        elif direction:
            noise_s *= (far / _FAR) ** 2
        information = np.linalg.inv(doubted) + xx / noise_s**2
        covariance = np.linalg.inv(information)
        values = self.values + covariance @ (xy - xx @ self.values) / noise_s**2
        return replace(
            self,
            batches=self.batches + batches,
            values=_not_negative(values, information),
            covariance=(covariance + covariance.T) / 2,
            noise=self.noise if direction else self._noise(samples, values, batches),
            far_off=direction,
        )

    def _doubted(self, batches: float) -> FloatArray:
        """The covariance after so many batches, in none of which anything was learned; never above the first one."""
        drift = _DRIFT + _WARMING * math.exp(-self.batches / _WARM_BATCHES)
        walked = drift**2 * batches * (1.0 + self.values**2)
        doubted = self.covariance + np.diag(walked)
        shrink = np.minimum(1.0, np.sqrt((1.0 + self.values**2) / np.diag(doubted)))
        found: FloatArray = doubted * np.outer(shrink, shrink)
        return found

    def _noise(self, samples: Moments, values: FloatArray, batches: float) -> float:
        """How far samples are from the costs, as a share of their seconds."""
        costs: FloatArray = values * self.units
        squares = samples.yy - 2 * float(costs @ samples.xy) + float(costs @ samples.xx @ costs)
        share = math.sqrt(max(0.0, squares) / samples.yy) if samples.yy > 0 else self.noise
        learning = 1.0 - (1.0 - _NOISE_LEARNING) ** batches
        return float(max(_LEAST_NOISE, self.noise + learning * (min(share, 1.0) - self.noise)))


def _changed(mean_x: FloatArray, missing_s: float) -> FloatArray:
    """Doubt that allows the last cost to explain all that is missing, and each of the others a tenth of it."""
    shares = np.full(len(mean_x), 0.1)
    shares[-1] = 1.0
    far = np.divide(shares * missing_s, mean_x, out=np.zeros(len(mean_x)), where=mean_x > _LEAST_X)
    return np.diag(far**2)


def _not_negative(values: FloatArray, information: FloatArray) -> FloatArray:
    """The costs of which none is negative that are nearest to `values`, by what is known of each."""
    if (values >= 0).all():
        return values
    root = np.linalg.cholesky(information).T
    found: FloatArray = nnls(root, root @ values)[0]
    return found
