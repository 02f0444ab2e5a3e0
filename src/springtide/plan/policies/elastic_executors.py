"""Cores go to executors: as few as the latency allows, from where they cost the least state to move; shards follow inside.

L. Wang, T. Z. J. Fu, R. T. B. Ma, M. Winslett, Z. Zhang, "Elasticutor: Rapid Elasticity for Realtime Stateful Stream
Processing", SIGMOD 2019, pp. 573-588: section 4.1 (see `sizing.jackson`), 4.2 (see `executors.assignment`), and 3.1 (see
`placement.balancing`). Symbols: see there, and `executors.measuring` for what an executor is here.

| symbol | parameter | unit |
|---|---|---|
| y | `executors`: per operator with shards | |
| T_max | `t_max_s` | s |
| theta | `theta` | |
| phi bar | `phi_bytes_per_s` | bytes/s per core |

Departures from the paper:

* Hosts are rented: as many as the cores need (see `executors.hosting`). The paper's cluster is fixed.
* The paper has 32 executors per operator on 32 nodes, and advises one or two per node. The default here is 1: every executor
  rounds its cores up, and with few hosts one executor can use all of them (the paper's figure 10).
* T_max is the user's in the paper. Without one it is the mean that keeps the SLO's percentile if latencies are exponential:
  latency_s / ln(1 / (1 - percentile)).
* Executors with more cores than they need keep them while no other needs them and the host is not released, as in Eq. (2).
* Splitting and merging executors (the end of section 4.2) is left to a change of `executors`.
* Further departures are said where they are made: `executors.assignment`, `sizing.jackson`, `placement.balancing`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from springtide.errors import require
from springtide.model.decision import Decision
from springtide.model.protocols import View
from springtide.plan.executors.scheduling import Rules, schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticExecutors:
    """Elasticutor: the fewest cores whose E[T] is at most `t_max_s` (0: from the SLO), assigned by Algorithm 1.

    Each keyed operator has `executors` executors, whose shards are balanced to within `theta`. Executors with more than
    `phi_bytes_per_s` per core get cores on their own host only, as long as that is possible. It needs no memory.
    """

    name: ClassVar[str] = "elastic-executors"
    summary: ClassVar[str] = "gives cores to executors by a queueing model, where it moves the least state (Elasticutor)"
    reference: ClassVar[str] = (
        "L. Wang, T. Z. J. Fu, R. T. B. Ma, M. Winslett, Z. Zhang. Elasticutor: Rapid Elasticity for Realtime Stateful Stream "
        "Processing. ACM SIGMOD International Conference on Management of Data, 2019, pp. 573-588. Sections 3.1 and 4."
    )

    executors: int = 1
    t_max_s: float = 0.0
    theta: float = 1.2
    phi_bytes_per_s: float = 512 * 1024.0

    def __post_init__(self) -> None:
        require(self.executors >= 1, f"{self.name}: executors must be at least 1, not {self.executors}")
        require(self.t_max_s >= 0, f"{self.name}: t_max_s must be 0 (from the SLO) or more, not {self.t_max_s}")
        require(self.theta >= 1, f"{self.name}: theta must be at least 1, not {self.theta}")
        require(self.phi_bytes_per_s > 0, f"{self.name}: phi_bytes_per_s must be above 0, not {self.phi_bytes_per_s}")

    def start(self) -> None:
        return None

    def decide(self, view: View, memory: None) -> tuple[Decision, None]:
        rules = Rules(
            who=self.name,
            executors=self.executors,
            t_max_s=self.t_max_s,
            theta=self.theta,
            saves_moves=True,
            phi_bytes_per_s=self.phi_bytes_per_s,
        )
        return schedule(view, rules), memory
