"""Every model that is not made of others.

To add one: write its class, with `name`, `summary` and `reference`, and put it into the tuple here. Its parameters and what it
has learnt are its dataclass fields: numbers, text, arrays, or dataclasses of these. So a model that has learnt can be stored
without a word of its own, and one that has been stored needs nothing to predict but numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol, Self

from springtide.forecast.models.arima import Arima
from springtide.forecast.models.bigru import BiGru
from springtide.forecast.models.bilstm import BiLstm
from springtide.forecast.models.boosted_lags import BoostedLags
from springtide.forecast.models.gru import Gru
from springtide.forecast.models.last_value import LastValue
from springtide.forecast.models.last_week import LastWeek
from springtide.forecast.models.lstm import Lstm
from springtide.forecast.models.svr import Svr
from springtide.forecast.models.yesterday import Yesterday
from springtide.model.observation import FloatArray
from springtide.model.protocols import Forecaster


class RegisteredModel(Forecaster, Protocol):
    """A model that can be asked for by name."""

    name: ClassVar[str]
    summary: ClassVar[str]
    reference: ClassVar[str]

    @classmethod
    def together(cls, models: Sequence[Self]) -> Callable[[FloatArray, int], FloatArray]:
        """What predicts many series at once, each with its own model: one row of past rates for each, one row of next ones.

        The models predict from equally long pasts.
        """
        ...


NEURAL: tuple[type[RegisteredModel], ...] = (Lstm, Gru, BiLstm, BiGru)
SINGLES: tuple[type[RegisteredModel], ...] = (LastValue, Yesterday, LastWeek, Arima, Svr, *NEURAL, BoostedLags)
