"""LSTM: a forecast by long short-term memory cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from springtide.forecast.recurrent.forecaster import RecurrentForecaster


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lstm(RecurrentForecaster):
    """A hidden layer of long short-term memory cells that reads the past from old to new, and a dense layer.

    Section 3.2 and Table 1 of the paper. Symbols and their arrays: `Network`. Departures from the paper: those that all four
    recurrent models share, in `springtide.forecast.recurrent.forecaster`.
    """

    name: ClassVar[str] = "lstm"
    summary: ClassVar[str] = "long short-term memory cells that read the past from old to new"
    reference: ClassVar[str] = (
        "W. Mu, Z. Jin, J. Wang, W. Zhu, W. Wang. BGElasor: Elastic-Scaling Framework for Distributed Streaming Processing "
        "with Deep Neural Network. 16th IFIP International Conference on Network and Parallel Computing (NPC), 2019, "
        "pp. 120-131. Section 3.2."
    )
    cell: ClassVar[str] = "lstm"
    bidirectional: ClassVar[bool] = False
