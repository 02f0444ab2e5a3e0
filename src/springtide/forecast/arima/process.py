"""ARMA processes of differenced rates: what they are, and how they go on.

A rate is differenced so many times into w, and w(t) - mean = sum phi_i (w(t - i) - mean) + e(t) + sum theta_j e(t - j).

Rules: a process whose shocks never die away is not used, so that no forecast runs away. Shocks before those that are looked at
are taken to be 0, and so many are looked at that this no longer matters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from springtide.forecast.compiling import compiled
from springtide.model.observation import FloatArray

_FORGOTTEN = 1e-5  # of a shock no more than this is left
_LEAST_MEMORY = 32
_MOST_MEMORY = 2048


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Arma:
    """A process whose `differences`-th differences vary about `mean`."""

    differences: int = 0
    mean: float = 0.0
    phi: FloatArray = field(default_factory=lambda: np.zeros(0))
    theta: FloatArray = field(default_factory=lambda: np.zeros(0))

    @property
    def nearest_root(self) -> float:
        """The least absolute value of a root of either polynomial: above 1, the process is stationary and invertible."""
        return 1.0 / max(_slowest(-self.phi), _slowest(self.theta), 1e-9)

    def remembered(self, past: int) -> float:
        """How much of a shock is left after so many intervals."""
        return float(_slowest(self.theta) ** past)

    @property
    def memory(self) -> int:
        """How many differences it takes until the shock of the first is forgotten."""
        slowest = _slowest(self.theta)
        if slowest >= 1.0:
            return _MOST_MEMORY
        needed = math.log(_FORGOTTEN) / math.log(slowest) if slowest > 0.0 else 0.0
        return len(self.phi) + int(np.clip(math.ceil(needed), _LEAST_MEMORY, _MOST_MEMORY))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArmaStack:
    """The processes of some series, one a row, with coefficients of 0 where an order is below the highest."""

    differences: NDArray[np.int64]
    memories: NDArray[np.int64]
    orders: NDArray[np.int64]
    means: FloatArray
    phi: FloatArray
    theta: FloatArray

    def continued(self, pasts: FloatArray, steps: int) -> FloatArray:
        """How each row of past rates goes on by the process in the same row, or by the only one there is."""
        newest = int(np.max(self.memories + self.differences))
        seen = np.ascontiguousarray(pasts[:, -newest:], np.float64)
        found: FloatArray = _continued(
            seen, (self.differences, self.memories, self.orders), self.means, self.phi, self.theta, steps
        )
        return found


def stacked(processes: Sequence[Arma]) -> ArmaStack:
    return ArmaStack(
        differences=np.array([process.differences for process in processes], np.int64),
        memories=np.array([process.memory for process in processes], np.int64),
        orders=np.array([len(process.phi) for process in processes], np.int64),
        means=np.array([process.mean for process in processes]),
        phi=_padded([process.phi for process in processes]),
        theta=_padded([process.theta for process in processes]),
    )


def shocks(values: FloatArray, process: Arma) -> FloatArray:
    """What the process did not foresee of its differences, which are given; 0 for as many as its autoregressive order."""
    found: FloatArray = _shocks(values - process.mean, process.phi, process.theta)
    return found


def coefficients(partials: FloatArray) -> FloatArray:
    """The coefficients phi of partial autocorrelations: stationary if all of these lie between -1 and 1.

    J. F. Monahan, A Note on Enforcing Stationarity in Autoregressive-Moving Average Models, Biometrika 71, 1984.

    >>> coefficients(np.array([0.5, 0.2]))
    array([0.4, 0.2])
    """
    found = np.zeros(0)
    for partial in partials:
        found = np.r_[found - partial * found[::-1], partial]
    return found


def partials(phi: FloatArray) -> FloatArray:
    """The partial autocorrelations of a stationary process: the way back from `coefficients`."""
    found = np.empty(len(phi))
    left = phi
    for i in range(len(phi) - 1, -1, -1):
        found[i] = last = left[-1]
        left = (left[:-1] + last * left[:-1][::-1]) / (1.0 - last * last)
    return found


def _slowest(tail: FloatArray) -> float:
    """The greatest absolute value of an inverse root of 1 + tail_1 B + tail_2 B^2 + ..."""
    return float(np.max(np.abs(np.roots(np.r_[1.0, tail])), initial=0.0))


def _padded(rows: Sequence[FloatArray]) -> FloatArray:
    found = np.zeros((len(rows), max(len(row) for row in rows)))
    for into, row in zip(found, rows, strict=True):
        into[: len(row)] = row
    return found


@compiled
def _shocks(values, phi, theta):  # type: ignore[no-untyped-def]
    found = np.zeros(len(values))
    for t in range(len(phi), len(values)):
        foreseen = 0.0
        for k in range(len(phi)):
            foreseen += phi[k] * values[t - 1 - k]
        for k in range(min(len(theta), t)):
            foreseen += theta[k] * found[t - 1 - k]
        found[t] = values[t] - foreseen
    return found


@compiled
def _difference(past, times, at):  # type: ignore[no-untyped-def]
    if times == 0:
        return past[at]
    if times == 1:
        return past[at] - past[at - 1]
    return past[at] - 2.0 * past[at - 1] + past[at - 2]


@compiled
def _sum_up(past, times, steps):  # type: ignore[no-untyped-def]
    """Turn coming differences into coming rates, in place."""
    rate = past[-1]
    slope = past[-1] - past[-2] if times == 2 else 0.0
    for h in range(len(steps)):
        if times == 0:
            break
        slope = steps[h] if times == 1 else slope + steps[h]
        rate += slope
        steps[h] = rate


@compiled
def _continued(pasts, sizes, means, phis, thetas, steps):  # type: ignore[no-untyped-def]
    differences, memories, orders = sizes
    rows, length = pasts.shape
    found = np.empty((rows, steps))
    for i in range(rows):
        m = i % len(means)
        past, mean, phi, theta = pasts[i], means[m], phis[m], thetas[m]
        times = min(differences[m], length - 1)
        seen = min(memories[m], length - times)
        values = np.empty(seen + steps)
        shock = np.zeros(seen + steps)
        for t in range(seen):
            values[t] = _difference(past, times, length - seen + t) - mean
        for t in range(min(orders[m], seen), seen + steps):
            foreseen = 0.0
            for k in range(min(len(phi), t)):
                foreseen += phi[k] * values[t - 1 - k]
            for k in range(min(len(theta), t)):
                foreseen += theta[k] * shock[t - 1 - k]
            if t < seen:
                shock[t] = values[t] - foreseen
            else:
                values[t] = foreseen
        for h in range(steps):
            found[i, h] = values[seen + h] + mean
        _sum_up(past, times, found[i])
    return found
