"""BiLSTM: a forecast by long short-term memory cells that read in both directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from springtide.forecast.recurrent.forecaster import RecurrentForecaster


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BiLstm(RecurrentForecaster):
    """Two hidden layers of long short-term memory cells, one for each direction of time, and a dense layer.

    Section 3.2 and Table 1 of the paper. Symbols and their arrays: `Network`. Departures from the paper: those that all four
    recurrent models share, in `springtide.forecast.recurrent.forecaster`.
    """

    name: ClassVar[str] = "bilstm"
    summary: ClassVar[str] = "long short-term memory cells that read the past in both directions"
    reference: ClassVar[str] = (
        "W. Mu, Z. Jin, J. Wang, W. Zhu, W. Wang. BGElasor: Elastic-Scaling Framework for Distributed Streaming Processing "
        "with Deep Neural Network. 16th IFIP International Conference on Network and Parallel Computing (NPC), 2019, "
        "pp. 120-131. Section 3.2."
    )
    cell: ClassVar[str] = "lstm"
    bidirectional: ClassVar[bool] = True
