"""ARIMA: the linear model of a series by its own past rates and shocks.

A baseline of Table 1 in W. Mu et al., "BGElasor: Elastic-Scaling Framework for Distributed Streaming Processing with Deep
Neural Network", NPC 2019, section 4.2, which tells neither its order nor how it was found. Here it is found as Hyndman and
Khandakar do: see `arima.orders`. It has no seasons, and theirs seems to have had none.

Departures from the paper: see `arima.orders`. Rates that were missing in the recording are learnt as they have been filled,
because a series with holes has no shocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from springtide.forecast.arima.orders import fitted
from springtide.forecast.arima.process import Arma, stacked
from springtide.model.observation import FloatArray
from springtide.model.windows import Windows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Arima:
    """Its one field is the process that has been learnt; a process without coefficients repeats its mean."""

    name: ClassVar[str] = "arima"
    summary: ClassVar[str] = "a linear model of its own past rates and shocks, the order found by itself"
    reference: ClassVar[str] = (
        "R. J. Hyndman, Y. Khandakar, Automatic Time Series Forecasting: The forecast Package for R, "
        "Journal of Statistical Software 27(3), 2008."
    )

    process: Arma = field(default_factory=Arma)

    def fit(self, train: Windows, validation: Windows, seed: int) -> Arima:  # noqa: ARG002 - nothing is stopped or drawn
        return replace(self, process=fitted(train.series(), train.past.shape[1]))

    def predict(self, past: FloatArray, steps: int) -> FloatArray:
        return stacked([self.process]).continued(past, steps)

    @classmethod
    def together(cls, models: Sequence[Arima]) -> Callable[[FloatArray, int], FloatArray]:
        return stacked([model.process for model in models]).continued
