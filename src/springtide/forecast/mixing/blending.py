"""How much each of several forecasts counts: the weights whose mixture has had the smallest squared errors.

J. M. Bates, C. W. J. Granger, "The Combination of Forecasts", Operational Research Quarterly 20(4), 1969: the best weights
follow from the errors' second moments, for forecasts that err alike are worth little more than one of them. Weights are kept
at 0 or above and sum to 1. They are found as J. C. Platt's "Sequential Minimal Optimization" (1998) finds those of a support
vector machine: weight goes from the member that adds most to the error to the one that adds least, as much as is best, again
and again. No such move makes the mixture worse, so a few of them for each new error follow a load that changes.

Rules: arrays have the axes series, distance, member, and any of these may be one long. A member that a series lacks is padded,
and `there` says so.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from springtide.model.observation import FloatArray

_RIDGE = 0.001  # of the mean squared error: members that have been equal share alike
_MOVES_AT_FIRST = 60
_LARGEST = 8.0  # times the usual size of errors
_TINY = 1e-15


def moments_of(errors: FloatArray) -> FloatArray:
    """The mean products of the errors of each two members: from the axes time, distance, member.

    Errors that are not known are NaN, and left out.
    """
    known = np.isfinite(errors.sum(axis=2))
    kept = np.where(known[..., None], errors, 0.0)
    usual = np.sqrt(np.mean(kept**2, axis=(0, 2)))[:, None]
    kept = tempered(kept, usual)
    found: FloatArray = np.einsum("tai,taj->aij", kept, kept) / np.maximum(known.sum(axis=0), 1)[:, None, None]
    return found


def tempered(errors: FloatArray, usual: FloatArray) -> FloatArray:
    """Errors in which no single interval counts for all: those of all members at once are drawn in if they are so large.

    How the members compare in that interval stays as it is.
    """
    size = np.sqrt(np.mean(errors**2, axis=-1, keepdims=True))
    drawn: FloatArray = errors * np.minimum(1.0, _LARGEST * usual / np.maximum(size, _TINY))
    return drawn


def first_weights(moments: FloatArray) -> FloatArray:
    """The best weights, from nothing but the moments; of one series."""
    distances, members, _ = moments.shape
    even = np.full((1, distances, members), 1.0 / members)
    best: FloatArray = improved(even, moments[None], np.ones((1, members), bool), _MOVES_AT_FIRST)[0]
    return best


def improved(weights: FloatArray, moments: FloatArray, there: NDArray[np.bool_], moves: int) -> FloatArray:
    """Weights that are nearer to the best ones.

    >>> even, apart = np.array([[[0.5, 0.5]]]), np.array([[[[1.0, 0.0], [0.0, 4.0]]]])
    >>> improved(even, apart, np.array([[True, True]]), 10).round(2)
    array([[[0.8, 0.2]]])
    """
    members = weights.shape[-1]
    size = np.einsum("saii->sa", moments) / there.sum(axis=1)[:, None] + _TINY
    products = moments / size[..., None, None] + _RIDGE * np.eye(members)
    squares = np.einsum("saii->sai", products)
    absent = np.where(there, 0.0, np.inf)[:, None, :]
    weights = weights.copy()
    gradient = np.einsum("saij,saj->sai", products, weights)
    for _ in range(moves):
        to = (gradient + absent).argmin(axis=2)[..., None]
        of = np.where(weights > 0, gradient, -np.inf).argmax(axis=2)[..., None]
        to_row = np.take_along_axis(products, to[..., None], axis=2)[:, :, 0]
        of_row = np.take_along_axis(products, of[..., None], axis=2)[:, :, 0]
        gain = np.take_along_axis(gradient, of, 2) - np.take_along_axis(gradient, to, 2)
        curvature = np.take_along_axis(squares, to, 2) + np.take_along_axis(squares, of, 2)
        curvature -= 2 * np.take_along_axis(to_row, of, 2)
        most = np.take_along_axis(weights, of, 2)
        moved = np.clip(gain / (curvature + _TINY), 0.0, most)
        np.put_along_axis(weights, of, most - moved, 2)
        np.put_along_axis(weights, to, np.take_along_axis(weights, to, 2) + moved, 2)
        gradient += moved * (to_row - of_row)
    return weights
