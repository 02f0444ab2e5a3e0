"""Which ARIMA model a series is fitted by: Hyndman and Khandakar's stepwise search.

Paper: R. J. Hyndman, Y. Khandakar, "Automatic Time Series Forecasting: The forecast Package for R", Journal of Statistical
Software 27(3), 2008, section 3. d is found by successive KPSS tests. Then the search starts from (2, d, 2), (0, d, 0),
(1, d, 0) and (0, d, 1), and goes on to the first better model among the neighbours of the best one, until none is better: p or
q one more or less, both one more or less, with a mean or without.

| symbol | argument | unit |
|---|---|---|
| p, q | `Order.p`, `Order.q` | lags, at most 5 |
| d | `Order.differences` | differences, at most 2 |
| c | `Order.has_mean` | only where d is at most 1 |

Departures from the paper. Not seasonal. While it searches, models are compared by the AICc of their conditional sum of squares,
as the R package does for long series. The likelihood is that of the newest differences only (`MOST_LIKELY_VALUES`). Where the
most likely coefficients are not found or lie too near a unit root, the next best order is tried, and last the conditional ones.
A model whose shocks outlast the past that it will forecast from is rejected in the end, because it could not know them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from springtide.errors import require
from springtide.forecast.arima.estimates import Order, least_squares, most_likely
from springtide.forecast.arima.process import Arma, shocks
from springtide.model.observation import FloatArray

MOST_ORDER = 5
MOST_DIFFERENCES = 2
MOST_LIKELY_VALUES = 4_000

_LEAST_VALUES = 24
_SIGNIFICANT = 0.05  # of the KPSS tests
_NEAR_UNIT_ROOT = 1.001  # section 3.3: models with a root below it are rejected
_MOST_REMEMBERED = 0.05
_ORDERS_TRIED = 3
_NOTHING_VARIES = 1e-9  # in scaled rates


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """A model by its conditional sum of squares."""

    order: Order
    process: Arma
    aicc: float


def fitted(series: FloatArray, past: int) -> Arma:
    """The ARIMA model of a series, which will forecast from so many past rates."""
    require(
        len(series) >= _LEAST_VALUES,
        f"an ARIMA model needs {_LEAST_VALUES} rates to learn from, and there are {len(series)}",
    )
    differences = differences_needed(series)
    values = np.diff(series, differences)
    if np.ptp(values) < _NOTHING_VARIES:
        return Arma(differences=differences, mean=float(values.mean()))
    usable = (candidate for candidate in searched(values, differences) if _is_usable(candidate.process, past))
    found = sorted(usable, key=lambda candidate: candidate.aicc)  # a model of order (0, d, 0) at least
    for candidate in found[:_ORDERS_TRIED]:
        process = most_likely(values[-MOST_LIKELY_VALUES:], candidate.order, candidate.process)
        if process is not None and _is_usable(process, past):
            return process
    return found[0].process


def differences_needed(series: FloatArray) -> int:
    """How often a series is differenced until the KPSS test no longer rejects that its level stays (section 3.1)."""
    from statsmodels.tsa.stattools import kpss  # type: ignore[import-untyped]  # noqa: PLC0415 - only learning needs it

    for times in range(MOST_DIFFERENCES):
        values = np.diff(series, times)
        if np.ptp(values) < _NOTHING_VARIES:
            return times
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that p is beyond the test's table
            if kpss(values, regression="c", nlags="auto")[1] >= _SIGNIFICANT:
                return times
    return MOST_DIFFERENCES


def searched(values: FloatArray, differences: int) -> list[Candidate]:
    """All models that the stepwise search came by (section 3.2), and could use."""
    has_mean = differences <= 1
    tried: dict[Order, Candidate] = {}

    def look_at(order: Order) -> Candidate:
        if order not in tried:
            tried[order] = _candidate(values, order)
        return tried[order]

    starts = [Order(p=p, differences=differences, q=q, has_mean=has_mean) for p, q in ((2, 2), (0, 0), (1, 0), (0, 1))]
    best = min((look_at(order) for order in starts), key=lambda candidate: candidate.aicc)
    better: Candidate | None = best
    while better is not None:
        best = better
        better = next((found for order in _neighbours(best.order) if (found := look_at(order)).aicc < best.aicc), None)
    return [candidate for candidate in tried.values() if math.isfinite(candidate.aicc)]


def _neighbours(order: Order) -> Iterator[Order]:
    for more_p, more_q in ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (1, 1)):
        p, q = order.p + more_p, order.q + more_q
        if 0 <= p <= MOST_ORDER and 0 <= q <= MOST_ORDER:
            yield replace(order, p=p, q=q)
    if order.differences <= 1:
        yield replace(order, has_mean=not order.has_mean)


def _is_usable(process: Arma, past: int) -> bool:
    return process.nearest_root >= _NEAR_UNIT_ROOT and process.remembered(past) <= _MOST_REMEMBERED


def _candidate(values: FloatArray, order: Order) -> Candidate:
    """The model of that order with the least conditional sum of squares; its AICc is infinite where it must not be used."""
    process = least_squares(values, order)
    left = shocks(values, process)[MOST_ORDER:]
    count, parameters = len(left), order.parameters
    if count <= parameters + 1 or process.nearest_root < _NEAR_UNIT_ROOT:
        return Candidate(order=order, process=process, aicc=math.inf)
    variance = max(float(np.mean(left**2)), 1e-300)
    penalty = 2.0 * parameters * count / (count - parameters - 1)
    return Candidate(order=order, process=process, aicc=count * math.log(variance) + penalty)
