"""Blended forecasts in use, of any number of series: after each interval the weights and the quantiles follow what came.

`came` is told of every interval, in order; `says` turns what the members forecast into one forecast with quantiles. What was
said is remembered until it has come out at every distance.

Rules: nothing looks ahead. What is kept does not grow. The same rates and forecasts give the same answers, whether series are
followed one by one or some together; of many, only some have their weights looked at in each interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from springtide.forecast.mixing.blending import improved, tempered
from springtide.forecast.mixing.calibration import LEVELS, first_levels, moved_levels, scores, stretched
from springtide.forecast.mixing.distances import at_every_step
from springtide.model.observation import FloatArray

_KEPT_SCORES = 2048
_MEMORY = 500.0  # intervals in which an error's weight falls to a third
_MOVES = 4  # of weight, for each new error
_FEW = 64  # series whose weights are looked at in every interval; of more, a quarter at a time
_TURNS = 4
_REFRESH = 8  # intervals between two looks at a series' quantiles


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Beginning:
    """What a blend knows of one series when it begins: from the part that it was validated on.

    `weights` has the axes distance, member; `moments` distance, member, member; `scores` distance, time, the oldest first.
    `errors` is how many errors these were made of.
    """

    distances: NDArray[np.int64]
    weights: FloatArray
    moments: FloatArray
    scores: FloatArray
    errors: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Foreseen:
    """The next rates of each series, `mean[series, step]`, and `quantiles[series, level, step]` for `calibration.LEVELS`."""

    mean: FloatArray
    quantiles: FloatArray


class Following:
    """The blends of some series, from their beginnings on, that are asked for the next `steps` rates."""

    def __init__(self, beginnings: Sequence[Beginning], steps: int, *, quantiles: bool = True) -> None:
        """Without `quantiles` none are kept, which is quicker: all of them are then the mean."""
        self._distances = beginnings[0].distances[beginnings[0].distances <= steps]
        self._steps, self._with_quantiles = steps, quantiles
        members = max(b.weights.shape[1] for b in beginnings)
        count, far = len(beginnings), int(self._distances[-1]) + 1
        near = len(self._distances)
        self._weights = np.stack([_padded(b.weights[:near], (near, members)) for b in beginnings])
        self._there = np.arange(members) < np.array([b.weights.shape[1] for b in beginnings])[:, None]
        self._moments = np.stack([_padded(b.moments[:near], (near, members, members)) for b in beginnings])
        worth = np.minimum(np.array([float(b.errors) for b in beginnings]), _MEMORY)
        self._worth = np.repeat(worth[:, None], near, axis=1)
        self._scores = np.full((count if quantiles else 0, near, _KEPT_SCORES), np.nan)
        self._scored = np.zeros((count, near), np.int64)
        for s, beginning in enumerate(beginnings if quantiles else ()):
            newest = beginning.scores[:near, -_KEPT_SCORES:]
            self._scores[s, :, : newest.shape[1]] = newest
            self._scored[s] = newest.shape[1]
        self._levels = np.stack([first_levels(self._distances, b.errors) for b in beginnings])
        self._factors = np.zeros((count, near, len(LEVELS)))
        self._count = 0
        self._said_at = np.full(far, -1, np.int64)
        self._said = np.zeros((far, count, near, members))
        self._blended = np.zeros((far, count, near))
        self._held_at = np.zeros((far if quantiles else 0, count, near, len(LEVELS)))
        self._index = -1

    def came(self, index: int, rates: FloatArray) -> None:
        """These are the rates of the interval `index`, one of each series; NaN if it is not known."""
        self._index = index
        rows = (index - self._distances) % len(self._said_at)
        settled = np.flatnonzero(self._said_at[rows] == index - self._distances)
        if settled.size:
            self._learn(settled, rows[settled], rates)

    def says(self, said: FloatArray) -> Foreseen:
        """The forecast that follows from those of the members, `said[series, member, step]`, after the newest interval."""
        members = said.shape[1]
        few = len(self._weights) <= _FEW
        due = slice(None) if few else slice(self._count % _TURNS, None, _TURNS)
        self._weights[due] = improved(self._weights[due], self._moments[due], self._there[due], _MOVES)
        if self._with_quantiles:
            self._look_at_quantiles()
        self._count += 1
        everywhere = at_every_step(np.moveaxis(self._weights, 1, 0), self._distances, self._steps)
        mean: FloatArray = np.einsum("tsm,smt->st", everywhere[:, :, :members], said)
        self._remember(said, mean)
        return Foreseen(mean=mean, quantiles=self._quantiles(mean))

    def _quantiles(self, mean: FloatArray) -> FloatArray:
        if not self._with_quantiles:
            return np.broadcast_to(mean[:, None, :], (len(mean), len(LEVELS), mean.shape[1]))
        factors = np.moveaxis(at_every_step(np.moveaxis(self._factors, 1, 0), self._distances, self._steps), 0, 2)
        crossing = stretched(mean[:, None, :], factors)
        found: FloatArray = np.maximum.accumulate(crossing, axis=1)
        return found

    def _learn(self, near: NDArray[np.int64], rows: NDArray[np.int64], rates: FloatArray) -> None:
        """At some of the distances it has come out what was said, in the remembered rows."""
        known = np.isfinite(rates)
        blended = self._blended[rows, :, near].T
        came = np.where(known[:, None], rates[:, None], blended)
        self._weigh_errors(near, self._said[rows, :, near].swapaxes(0, 1) - came[:, :, None], known)
        if self._with_quantiles:
            self._keep_scores(near, scores(blended, came), known)
            held = came[:, :, None] <= self._held_at[rows, :, near].swapaxes(0, 1)
            levels = self._levels[:, near]
            self._levels[:, near] = np.where(known[:, None, None], moved_levels(levels, self._distances[near], held), levels)

    def _weigh_errors(self, near: NDArray[np.int64], errors: FloatArray, known: NDArray[np.bool_]) -> None:
        errors = np.where(self._there[:, None, :] & known[:, None, None], errors, 0.0)
        squares = np.einsum("saii->sa", self._moments[:, near]) / self._there.sum(axis=1)[:, None]
        errors = tempered(errors, np.sqrt(squares)[..., None])
        keep = np.where(known, 1.0 - 1.0 / _MEMORY, 1.0)[:, None]
        before = keep * self._worth[:, near]
        after = np.maximum(before + known[:, None], 1.0)
        products = errors[..., :, None] * errors[..., None, :]
        self._moments[:, near] = self._moments[:, near] * (before / after)[..., None, None] + products / after[..., None, None]
        self._worth[:, near] = after

    def _keep_scores(self, near: NDArray[np.int64], score: FloatArray, known: NDArray[np.bool_]) -> None:
        series = np.flatnonzero(known)
        slots = self._scored[np.ix_(series, near)] % _KEPT_SCORES
        self._scores[series[:, None], near[None, :], slots] = score[series]
        self._scored[np.ix_(series, near)] += 1

    def _look_at_quantiles(self) -> None:
        """Of some series at a time, so that no interval has to do it for all."""
        due = (np.arange(len(self._factors)) + self._count) % _REFRESH == 0
        due |= self._count == 0
        for s in np.flatnonzero(due):
            ordered = np.sort(self._scores[s], axis=1)  # what is not there comes last
            last = np.minimum(self._scored[s], _KEPT_SCORES)[:, None] - 1
            at = self._levels[s] * last
            low = at.astype(np.int64)
            high = np.minimum(low + 1, last)
            below, above = np.take_along_axis(ordered, low, 1), np.take_along_axis(ordered, high, 1)
            self._factors[s] = below + (at - low) * (above - below)

    def _remember(self, said: FloatArray, mean: FloatArray) -> None:
        row = self._index % len(self._said_at)
        at = self._distances - 1
        self._said_at[row] = self._index
        self._said[row, :, :, : said.shape[1]] = np.moveaxis(said[:, :, at], 2, 1)
        self._blended[row] = mean[:, at]
        if self._with_quantiles:
            self._held_at[row] = stretched(mean[:, at, None], self._factors)


def _padded(values: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    return np.pad(values, [(0, wanted - there) for wanted, there in zip(shape, values.shape, strict=True)])
