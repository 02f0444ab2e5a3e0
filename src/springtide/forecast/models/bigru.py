"""BiGRU: a forecast by gated recurrent units that read in both directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from springtide.forecast.recurrent.forecaster import RecurrentForecaster


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BiGru(RecurrentForecaster):
    """The paper's own: two hidden layers of gated recurrent units, one for each direction of time, and a dense layer.

    Section 3.2 and Table 1 of the paper. Symbols and their arrays: `Network`. Departures from the paper: those that all four
    recurrent models share, in `springtide.forecast.recurrent.forecaster`.
    """

    name: ClassVar[str] = "bigru"
    summary: ClassVar[str] = "gated recurrent units that read the past in both directions"
    reference: ClassVar[str] = (
        "W. Mu, Z. Jin, J. Wang, W. Zhu, W. Wang. BGElasor: Elastic-Scaling Framework for Distributed Streaming Processing "
        "with Deep Neural Network. 16th IFIP International Conference on Network and Parallel Computing (NPC), 2019, "
        "pp. 120-131. Section 3.2."
    )
    cell: ClassVar[str] = "gru"
    bidirectional: ClassVar[bool] = True
