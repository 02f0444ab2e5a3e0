"""The last rate goes on: what every other model must beat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from springtide.model.observation import FloatArray
from springtide.model.windows import Windows


@dataclass(frozen=True, slots=True, kw_only=True)
class LastValue:
    """Nothing is learnt: the rate stays as it is."""

    name: ClassVar[str] = "last-value"
    summary: ClassVar[str] = "the rate stays as it is"
    reference: ClassVar[str] = "The naive forecast; R. J. Hyndman, G. Athanasopoulos, Forecasting, 3rd ed., section 5.2."

    def fit(self, train: Windows, validation: Windows, seed: int) -> LastValue:  # noqa: ARG002 - there is nothing to learn
        return self

    def predict(self, past: FloatArray, steps: int) -> FloatArray:
        return np.repeat(past[:, -1:], steps, axis=1)

    @classmethod
    def together(cls, models: Sequence[LastValue]) -> Callable[[FloatArray, int], FloatArray]:
        return models[0].predict
