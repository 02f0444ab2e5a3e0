"""How good a model is: its errors on windows that it has not learnt from, on the z-score scale, at some distances ahead.

Rules: every window of the part counts once, and every model is judged by the same windows. Rates that were missing in the
recording judge nobody. A mixture goes on learning from its errors while it is judged, as it does in use; it never sees a rate
before it has come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from springtide.forecast.mixing.calibration import LEVELS
from springtide.forecast.mixing.following import Following
from springtide.forecast.models.auto import Auto
from springtide.model.observation import FloatArray
from springtide.model.protocols import Forecaster
from springtide.model.windows import Scale, Windows

COVERED_LEVEL = 0.9
USUAL_DISTANCES = (1, 12)

_ROWS_AT_ONCE = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Root mean squared and mean absolute error, in standard deviations of the training part, so many intervals ahead.

    `coverage` is the share of rates at or below the 90 % quantile, of a model that gives one.
    """

    distance: int
    rates: int
    rmse: float
    mae: float
    coverage: float | None = None


def judged_at(steps: int) -> tuple[int, ...]:
    """The distances at which models are judged: 1 and 12 intervals, and as far as windows reach.

    >>> judged_at(288), judged_at(12), judged_at(6)
    ((1, 12, 288), (1, 12), (1, 6))
    """
    return tuple(dict.fromkeys([*(d for d in USUAL_DISTANCES if d < steps), steps]))


def judge(model: Forecaster, windows: Windows, scale: Scale, distances: Sequence[int]) -> list[Score]:
    """The model's errors at each distance at which there is a rate to judge by."""
    at = np.array(distances, np.int64)
    came = windows.future[:, at - 1]
    if isinstance(model, Auto):
        said, held = followed(model, windows, at)
    else:
        said, held = predicted(model, windows.past, at), None
    errors = (said - came) * scale.deviations_per_unit
    return [
        _score(int(distance), errors[:, i], None if held is None else held[:, i])
        for i, distance in enumerate(at)
        if np.isfinite(errors[:, i]).any()
    ]


def judge_from_one_origin(model: Forecaster, windows: Windows, scale: Scale) -> Score:
    """The errors of a single forecast, made before the first window, of all that came: what no one would do in use."""
    came = windows.recorded()[windows.past.shape[1] :]
    said = model.predict(windows.past[:1], len(came))[0]
    return _score(len(came), (said - came) * scale.deviations_per_unit, None)


def predicted(model: Forecaster, past: FloatArray, distances: NDArray[np.int64]) -> FloatArray:
    """What the model says at the distances, one row for each past."""
    steps = int(distances[-1])
    parts = [model.predict(past[at : at + _ROWS_AT_ONCE], steps)[:, distances - 1] for at in range(0, len(past), _ROWS_AT_ONCE)]
    return np.concatenate(parts)


def followed(auto: Auto, windows: Windows, distances: NDArray[np.int64]) -> tuple[FloatArray, NDArray[np.bool_]]:
    """What the mixture says at the distances, one row for each window, and whether its 90 % quantile held."""
    steps = int(distances[-1])
    following = Following([auto.known], steps)
    rates, begin = windows.recorded(), windows.first
    level = LEVELS.index(COVERED_LEVEL)
    mean, quantile = np.empty((2, len(windows), len(distances)))
    index = int(windows.origins[0])
    for row, origin in enumerate(windows.origins.tolist()):
        if row % _ROWS_AT_ONCE == 0:
            some = windows.past[row : row + _ROWS_AT_ONCE]
            said = np.stack([member.predict(some, steps) for member in auto.members], axis=1)
        for came in range(index + 1, origin + 1):
            following.came(came, rates[came - begin : came - begin + 1])
        index = origin
        foreseen = following.says(said[row % _ROWS_AT_ONCE][None])
        mean[row] = foreseen.mean[0, distances - 1]
        quantile[row] = foreseen.quantiles[0, level, distances - 1]
    return mean, windows.future[:, distances - 1] <= quantile


def _score(distance: int, errors: FloatArray, held: NDArray[np.bool_] | None) -> Score:
    known = np.isfinite(errors)
    kept = errors[known]
    return Score(
        distance=distance,
        rates=len(kept),
        rmse=float(np.sqrt(np.mean(kept**2))),
        mae=float(np.mean(np.abs(kept))),
        coverage=None if held is None else float(held[known].mean()),
    )
