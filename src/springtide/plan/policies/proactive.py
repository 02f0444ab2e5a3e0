"""So many instances as the present and the next interval's input need: the Simple Proactive Elasticity Algorithm (SPEA).

W. Mu, Z. Jin, J. Wang, W. Zhu, W. Wang, "BGElasor: Elastic-Scaling Framework for Distributed Streaming Processing with Deep
Neural Network", NPC 2019, pp. 120-131, section 4.3: "considers the load of the current epoch and the next epoch". Symbols: see
`cost.model`.

Departures from the paper:

* The paper predicts with a neural network (BiGRU), which comes as the view's forecast. Without one, the next rate of a source
  is taken from the straight line through its last `window` rates.
* An instance is a replica, its capability what one core processes.
* The paper's system discards rows that instances cannot keep up with. Here they wait, and are counted with the
  input, the present one and the next alike: as SREA does.
* The paper has a fixed cluster. Hosts come and go here as `elasticity.need` says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from springtide.errors import require
from springtide.model.decision import Decision
from springtide.model.protocols import View
from springtide.plan.elasticity.need import ByNeed, Need, cores_needed, replicas_for
from springtide.plan.prediction.rates import RecentRates, forecast_rates


@dataclass(frozen=True, slots=True, kw_only=True)
class Proactive(ByNeed):
    """BGElasor's SPEA: replicas for the present input or the next, whichever is more."""

    name: ClassVar[str] = "proactive"
    summary: ClassVar[str] = "gives each operator the replicas that its present and its next rows need"
    reference: ClassVar[str] = (
        "W. Mu, Z. Jin, J. Wang, W. Zhu, W. Wang. BGElasor: Elastic-Scaling Framework for Distributed Streaming Processing "
        "with Deep Neural Network. 16th IFIP International Conference on Network and Parallel Computing (NPC), 2019, "
        "pp. 120-131. Section 4.3 (SPEA)."
    )
    looks_ahead: ClassVar[bool] = True

    window: int = 6

    def __post_init__(self) -> None:
        ByNeed.__post_init__(self)
        require(self.window >= 1, f"{self.name}: window must be at least 1, not {self.window}")

    def start(self) -> RecentRates:
        return RecentRates()

    def decide(self, view: View, memory: RecentRates) -> tuple[Decision, RecentRates]:
        recent = memory.then(view, self.window)
        present = cores_needed(view, view.demand_rows_per_s, waiting=True)
        coming = cores_needed(view, view.demand_at(forecast_rates(view, 1) or recent.ahead(1)), waiting=True)
        needs = {name: Need(replicas_for(max(present[name], coming[name])), coming[name]) for name in coming}

        def finding(name: str) -> str:
            return f"{name} needs {present[name]:.2f} cores now and {coming[name]:.2f} next"

        return self.resized(view, needs, finding), recent
