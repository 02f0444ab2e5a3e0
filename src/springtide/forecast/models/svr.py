"""Support vector regression on lags: one model for all distances ahead.

Paper: A. J. Smola, B. Schölkopf, "A Tutorial on Support Vector Regression", Statistics and Computing 14, 2004, section 1. It is
a baseline of Table 1 in W. Mu et al., "BGElasor: Elastic-Scaling Framework for Distributed Streaming Processing with Deep
Neural Network", NPC 2019, section 4.2, which tells neither its kernel nor its inputs. Here the kernel is
k(x, y) = exp(-gamma |x - y|^2), and what is learnt is how far the rate will be from the last one.

| symbol | argument | unit |
|---|---|---|
| C | `penalties`, one of which is chosen | standard deviations of the change |
| epsilon | `tolerance` | standard deviations of the change |
| x_i | `vectors`, after learning | standardised features: see `lags` |
| alpha_i - alpha_i* | `coefficients`, after learning | scaled rates |
| b | `offset`, after learning | scaled rates |

Departures from the papers. The distance is a feature, by its logarithm. At most `samples` samples are learnt from, because the
effort grows with their square. C, gamma, and whether the change is counted from the last rate or from the usual one of the time
of day, are those with the least error on the validation windows (`judging`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import ClassVar

import numpy as np

from springtide.forecast.lagged.boosting import one_thread
from springtide.forecast.lagged.judging import judge_of
from springtide.forecast.lagged.lags import NOW, Lags, lags_in
from springtide.forecast.lagged.samples import samples_of
from springtide.model.observation import FloatArray
from springtide.model.windows import Windows

_AT_ONCE = 4_000  # places whose kernels are computed at once
_MOST_JUDGED = 300
_LEAST_DEVIATION = 1e-6  # of a feature, in scaled rates: one that varies less tells nothing


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Svr:
    """`samples`, `penalties`, `widths` and `tolerance` are parameters; a width is gamma times the number of features.
    The others are learnt: `share_of_usual` is 1 where changes count from the usual rate, 0 where from the last; features are
    standardised by `centre` and `per`."""

    name: ClassVar[str] = "svr"
    summary: ClassVar[str] = "support vector regression on lags, with a radial kernel"
    reference: ClassVar[str] = (
        "A. J. Smola, B. Schölkopf, A Tutorial on Support Vector Regression, Statistics and Computing 14, 2004."
    )

    samples: int = 2_500
    penalties: tuple[float, ...] = (1.0, 10.0)
    widths: tuple[float, ...] = (0.03, 0.1)
    tolerance: float = 0.2
    lags: Lags = field(default_factory=Lags)
    share_of_usual: float = 0.0
    gamma: float = 1.0
    centre: FloatArray = field(default_factory=lambda: np.zeros(1))
    per: FloatArray = field(default_factory=lambda: np.zeros(1))
    vectors: FloatArray = field(default_factory=lambda: np.zeros((0, 1)))
    coefficients: FloatArray = field(default_factory=lambda: np.zeros(0))
    offset: float = 0.0

    def fit(self, train: Windows, validation: Windows, seed: int) -> Svr:
        rng = np.random.default_rng(seed)
        samples, lags = samples_of(train), lags_in(train)
        origins = samples.some(self.samples, rng)
        distances = samples.distances(len(origins), 2, rng)
        changes = samples.changes(origins, distances)
        known = np.flatnonzero(np.isfinite(changes))
        drawn = np.sort(rng.choice(known, min(self.samples, len(known)), replace=False))
        features = lags.at(samples.series, origins, distances).reshape(-1, lags.count)[drawn]
        judged = validation if len(validation) else train
        judge = judge_of(judged.every(-(-len(judged) // _MOST_JUDGED)), lags, samples.steps)
        begun = replace(self, lags=lags)._standardising(features)
        shares = (0.0, 1.0) if lags.day else (0.0,)
        with one_thread():
            choices = [
                begun._supported(features, changes.ravel()[drawn], choice)
                for choice in product(self.penalties, self.widths, shares)
            ]
            return choices[judge.best(choice._changes(judge.features) for choice in choices)]

    def predict(self, past: FloatArray, steps: int) -> FloatArray:
        rows = max(1, _AT_ONCE // steps)
        return np.concatenate([self._continued(past[i : i + rows], steps) for i in range(0, len(past), rows)])

    @classmethod
    def together(cls, models: Sequence[Svr]) -> Callable[[FloatArray, int], FloatArray]:
        """One model after the other: the kernels of each are a matrix product, and stacking would save nothing."""

        def predict(pasts: FloatArray, steps: int) -> FloatArray:
            return np.concatenate([model._continued(pasts[i : i + 1], steps) for i, model in enumerate(models)])

        return predict

    def _continued(self, pasts: FloatArray, steps: int) -> FloatArray:
        features = self.lags.of(pasts, np.tile(np.arange(1, steps + 1), (len(pasts), 1)))
        return features[:, :, NOW] + self._changes(features)

    def _changes(self, features: FloatArray) -> FloatArray:
        """How far the rates will be from the last ones, by features (rows, distances, features)."""
        places = self._standard(features.reshape(-1, features.shape[2]))
        apart = np.sum(places**2, axis=1)[:, None] + np.sum(self.vectors**2, axis=1) - 2.0 * places @ self.vectors.T
        found = (np.exp(-self.gamma * apart) @ self.coefficients + self.offset).reshape(features.shape[:2])
        if self.share_of_usual:
            found = found + self.share_of_usual * features[:, :, self.lags.usual]
        return np.asarray(found, np.float64)

    def _standardising(self, features: FloatArray) -> Svr:
        logged = self._logged(features)
        deviation = logged.std(axis=0)
        told = deviation > _LEAST_DEVIATION
        return replace(self, centre=logged.mean(axis=0), per=np.where(told, 1.0 / np.where(told, deviation, 1.0), 0.0))

    def _standard(self, features: FloatArray) -> FloatArray:
        return (self._logged(features) - self.centre) * self.per

    def _logged(self, features: FloatArray) -> FloatArray:
        found = features.copy()
        found[:, self.lags.of_distance] = np.log(found[:, self.lags.of_distance])
        return found

    def _supported(self, features: FloatArray, changes: FloatArray, choice: tuple[float, float, float]) -> Svr:
        """The regression with one choice of C, of the width and of the share of what is usual."""
        from sklearn.svm import SVR  # type: ignore[import-untyped]  # noqa: PLC0415 - only learning needs it

        penalty, width, share = choice
        values = changes - share * features[:, self.lags.usual] if share else changes
        deviation = max(float(values.std()), _LEAST_DEVIATION)
        gamma = width / features.shape[1]
        machine = SVR(C=penalty, epsilon=self.tolerance, gamma=gamma, cache_size=400)
        machine.fit(self._standard(features), values / deviation)
        return replace(
            self,
            share_of_usual=share,
            gamma=gamma,
            vectors=np.asarray(machine.support_vectors_, np.float64),
            coefficients=deviation * np.asarray(machine.dual_coef_[0], np.float64),
            offset=deviation * float(machine.intercept_[0]),
        )
