"""So many instances as the present input needs: the Standard Reactive Elasticity Algorithm (SREA).

W. Mu, Z. Jin, J. Wang, W. Zhu, W. Wang, "BGElasor: Elastic-Scaling Framework for Distributed Streaming Processing with Deep
Neural Network", NPC 2019, pp. 120-131, section 4.3: "considers only the current load and adjusts the instance number
reactively". Symbols: see `cost.model`.

Departures from the paper:

* An instance is a replica, its capability what one core processes.
* The paper's system discards rows that instances cannot keep up with. Here they wait, and are counted with the input.
* The paper has a fixed cluster. Hosts come and go here as `elasticity.need` says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from springtide.model.decision import Decision
from springtide.model.protocols import View
from springtide.plan.elasticity.need import ByNeed, Need, cores_needed, replicas_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Reactive(ByNeed):
    """BGElasor's SREA: the fewest replicas whose capability is not less than the present input. It needs no memory."""

    name: ClassVar[str] = "reactive"
    summary: ClassVar[str] = "gives each operator the replicas that its present rows need"
    reference: ClassVar[str] = (
        "W. Mu, Z. Jin, J. Wang, W. Zhu, W. Wang. BGElasor: Elastic-Scaling Framework for Distributed Streaming Processing "
        "with Deep Neural Network. 16th IFIP International Conference on Network and Parallel Computing (NPC), 2019, "
        "pp. 120-131. Section 4.3 (SREA)."
    )

    def start(self) -> None:
        return None

    def decide(self, view: View, memory: None) -> tuple[Decision, None]:
        cores = cores_needed(view, view.demand_rows_per_s, waiting=True)
        needs = {name: Need(replicas_for(busy), busy) for name, busy in cores.items()}
        return self.resized(view, needs, lambda name: f"{name} needs {cores[name]:.2f} cores"), memory
