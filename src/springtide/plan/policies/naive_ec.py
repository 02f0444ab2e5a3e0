"""Executors get as many cores as Elasticutor gives them, but from anywhere.

L. Wang, T. Z. J. Fu, R. T. B. Ma, M. Winslett, Z. Zhang, "Elasticutor: Rapid Elasticity for Realtime Stateful Stream
Processing", SIGMOD 2019, pp. 573-588, section 5.4: naive-EC is Elasticutor without its scheduler's optimisations for migration
cost and computation locality. So every C+ and C- is 0, no executor is data-intensive, and each core comes from the host with
most free cores, and when none is free from the first executor that can give one. All else is as in `elastic-executors`.
The paper does not say which core naive-EC takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from springtide.errors import require
from springtide.model.decision import Decision
from springtide.model.protocols import View
from springtide.plan.executors.scheduling import Rules, schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class NaiveEC:
    """Elasticutor's naive-EC: the fewest cores whose E[T] is at most `t_max_s` (0: from the SLO), wherever they are.

    Each keyed operator has `executors` executors, whose shards are balanced to within `theta`. It needs no memory.
    """

    name: ClassVar[str] = "naive-ec"
    summary: ClassVar[str] = "gives cores to executors by a queueing model, from anywhere (Elasticutor's naive-EC)"
    reference: ClassVar[str] = (
        "L. Wang, T. Z. J. Fu, R. T. B. Ma, M. Winslett, Z. Zhang. Elasticutor: Rapid Elasticity for Realtime Stateful Stream "
        "Processing. ACM SIGMOD International Conference on Management of Data, 2019, pp. 573-588. Section 5.4, naive-EC."
    )

    executors: int = 1
    t_max_s: float = 0.0
    theta: float = 1.2

    def __post_init__(self) -> None:
        require(self.executors >= 1, f"{self.name}: executors must be at least 1, not {self.executors}")
        require(self.t_max_s >= 0, f"{self.name}: t_max_s must be 0 (from the SLO) or more, not {self.t_max_s}")
        require(self.theta >= 1, f"{self.name}: theta must be at least 1, not {self.theta}")

    def start(self) -> None:
        return None

    def decide(self, view: View, memory: None) -> tuple[Decision, None]:
        rules = Rules(who=self.name, executors=self.executors, t_max_s=self.t_max_s, theta=self.theta, saves_moves=False)
        return schedule(view, rules), memory
