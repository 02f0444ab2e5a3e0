"""The coefficients of an ARIMA model of a given order: a first guess, the least conditional squares, the most likely ones.

The first guess is that of E. J. Hannan and J. Rissanen, Recursive Estimation of Mixed Autoregressive-Moving Average Order,
Biometrika 69, 1982: shocks are estimated by a long autoregression, and the rates regressed on their own lags and on those.
From there the sum of squared shocks is made least, over partial autocorrelations, so that every model on the way is stationary
and invertible. The likelihood is statsmodels', by a Kalman filter, and starts from there.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from springtide.forecast.arima.process import Arma, coefficients, partials, shocks
from springtide.model.observation import FloatArray

_LONG = 20  # lags of the long autoregression
_INSIDE = 0.98  # a guess is drawn in until its slowest root is no slower
_MOST_ITERATIONS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The order (p, d, q) of a model, and whether its differences have a mean."""

    p: int
    differences: int
    q: int
    has_mean: bool

    @property
    def parameters(self) -> int:
        """How many numbers are estimated, the variance of the shocks among them."""
        return self.p + self.q + self.has_mean + 1


def least_squares(values: FloatArray, order: Order) -> Arma:
    """The process of differences `values` whose conditional sum of squares is least."""
    from scipy.optimize import least_squares as least  # noqa: PLC0415 - only learning needs it

    mean = float(values.mean()) if order.has_mean else 0.0
    phi, theta = _first_guess(values - mean, order)
    start = np.arctanh(np.r_[partials(phi), partials(-theta)])
    if order.has_mean:
        start = np.r_[start, mean]

    def process_of(free: FloatArray) -> Arma:
        inside = np.tanh(free[: order.p + order.q])
        return Arma(
            differences=order.differences,
            mean=float(free[-1]) if order.has_mean else 0.0,
            phi=coefficients(inside[: order.p]),
            theta=-coefficients(inside[order.p :]),
        )

    if not len(start):
        return process_of(start)

    def left(free: FloatArray) -> FloatArray:
        return shocks(values, process_of(free))

    return process_of(least(left, start, method="lm", max_nfev=_MOST_ITERATIONS * (len(start) + 1)).x)


def most_likely(values: FloatArray, order: Order, start: Arma) -> Arma | None:
    """The process that makes differences `values` most likely, or none where the search broke down. One that ran out of
    iterations is kept: it is likelier than `start` already."""
    from statsmodels.tsa.arima.model import ARIMA  # type: ignore[import-untyped]  # noqa: PLC0415 - only learning needs it

    variance = max(float(np.mean(shocks(values, start) ** 2)), 1e-12)
    first = np.r_[[start.mean] if order.has_mean else [], start.phi, start.theta, variance]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of too few iterations: see above
        try:
            model = ARIMA(values, order=(order.p, 0, order.q), trend="c" if order.has_mean else "n")
            found = model.fit(
                start_params=first, low_memory=True, cov_type="none", method_kwargs={"maxiter": _MOST_ITERATIONS, "disp": 0}
            )
        except (ValueError, np.linalg.LinAlgError):
            return None
    if not np.isfinite(found.params).all():
        return None
    return Arma(
        differences=order.differences,
        mean=float(found.params[0]) if order.has_mean else 0.0,
        phi=-np.asarray(found.polynomial_ar[1:], np.float64),
        theta=np.asarray(found.polynomial_ma[1:], np.float64),
    )


def _first_guess(values: FloatArray, order: Order) -> tuple[FloatArray, FloatArray]:
    """Coefficients near enough to start from, within the stationary and invertible ones."""
    long = min(_LONG, len(values) // 4)
    before = _lagged(values, long, long)
    estimated = np.r_[np.zeros(long), values[long:] - before @ _regressed(before, values[long:])]
    begin = long + order.q
    known = np.hstack([_lagged(values, order.p, begin), _lagged(estimated, order.q, begin)])
    found = _regressed(known, values[begin:])
    return -_drawn_in(-found[: order.p]), _drawn_in(found[order.p :])


def _lagged(values: FloatArray, lags: int, begin: int) -> FloatArray:
    """The `lags` values before each, from `begin` on, the newest first."""
    found = np.empty((len(values) - begin, lags))
    for lag in range(1, lags + 1):
        found[:, lag - 1] = values[begin - lag : len(values) - lag]
    return found


def _regressed(on: FloatArray, values: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.lstsq(on, values, rcond=None)[0], np.float64)


def _drawn_in(tail: FloatArray) -> FloatArray:
    """1 + tail_1 B + ... with all its roots moved out alike, if one of them is too near."""
    slowest = float(np.max(np.abs(np.roots(np.r_[1.0, tail])), initial=0.0))
    found: FloatArray = tail * min(1.0, _INSIDE / max(slowest, 1e-9)) ** np.arange(1, len(tail) + 1)
    return found
