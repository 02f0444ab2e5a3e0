"""The same time last week."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from springtide.forecast.cycles import cycle_in, repeated
from springtide.model.observation import FloatArray
from springtide.model.windows import Windows

_DAYS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class LastWeek:
    """Each rate is that of the same time one week before. `cycle` is how many intervals that is."""

    name: ClassVar[str] = "last-week"
    summary: ClassVar[str] = "the rate of the same time one week before"
    reference: ClassVar[str] = (
        "The seasonal naive forecast; R. J. Hyndman, G. Athanasopoulos, Forecasting, 3rd ed., section 5.2."
    )

    cycle: int = 0

    def fit(self, train: Windows, validation: Windows, seed: int) -> LastWeek:  # noqa: ARG002 - there is little to learn
        return replace(self, cycle=cycle_in(train, _DAYS))

    def predict(self, past: FloatArray, steps: int) -> FloatArray:
        return repeated(past, self.cycle, steps)

    @classmethod
    def together(cls, models: Sequence[LastWeek]) -> Callable[[FloatArray, int], FloatArray]:
        return models[0].predict
