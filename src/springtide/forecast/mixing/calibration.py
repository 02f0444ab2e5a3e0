"""How far off a forecast may be: quantiles from what its errors have been, and from how often they have held.

Split conformal prediction (V. Vovk, A. Gammerman, G. Shafer, "Algorithmic Learning in a Random World", 2005): the errors of a
part that was not learnt from, relative to what was forecast, are kept, and their quantiles stretch the forecast. Errors at a
distance of d intervals overlap, so n of them are worth n / d, and the level that is looked up is raised by as much as so few
errors ask for: q (1 + 1 / (n / d)).

While a forecast is in use, the levels follow how often it has held: I. Gibbs, E. Candès, "Adaptive Conformal Inference Under
Distribution Shift", NeurIPS 2021, Eq. (2). Their step is made smaller the farther ahead a forecast is, for what comes of it is
known the later: with one step for all distances, levels of far ones swing.

Rules: errors have the axes distance, time. Nothing is assumed of their distribution.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from springtide.model.observation import FloatArray

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)

_FLOOR = 0.05  # of the scale: what is added to a forecast before errors are taken relative to it
_CORRECTION = 0.7  # of 1 / (n / d)
_STEP = 0.05  # of a level, at a distance of one interval
_HIGHEST = 0.9995


def scores(mean: FloatArray, came: FloatArray) -> FloatArray:
    """Errors relative to what was forecast."""
    found: FloatArray = (came - mean) / (np.abs(mean) + _FLOOR)
    return found


def stretched(mean: FloatArray, score: FloatArray) -> FloatArray:
    """What would have come with such a score: the inverse of `scores`."""
    found: FloatArray = mean + score * (np.abs(mean) + _FLOOR)
    return found


def first_levels(distances: NDArray[np.int64], errors: int) -> FloatArray:
    """Which quantile of the errors to look up for each of `LEVELS`, with the axes distance, level."""
    worth = np.maximum(errors / distances, 1.0)[:, None]
    wanted = np.array(LEVELS)[None, :]
    # Away from the middle on both sides: little is known of either end.
    raised = wanted + np.sign(wanted - 0.5) * np.maximum(wanted, 1.0 - wanted) * _CORRECTION / worth
    found: FloatArray = np.clip(raised, 1.0 - _HIGHEST, _HIGHEST)
    return found


def moved_levels(levels: FloatArray, distances: NDArray[np.int64] | int, held: NDArray[np.bool_]) -> FloatArray:
    """Levels after it has come out whether the forecast held at each: lower if it did, higher if it did not."""
    step = _STEP / np.sqrt(np.asarray(distances, np.float64))
    moved: FloatArray = np.clip(levels + step[..., None] * (np.array(LEVELS) - held), 1.0 - _HIGHEST, _HIGHEST)
    return moved
