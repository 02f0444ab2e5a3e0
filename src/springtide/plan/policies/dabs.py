"""Replicas follow an activity level, predicted by a regression: DABS-Storm, as PSPS compares itself with it.

R. K. Kombi, N. Lumineau, P. Lamarre, N. Rivetti, Y. Busnel, "DABS-Storm: A Data-Aware Approach for Elastic Stream Processing",
Trans. Large-Scale Data- and Knowledge-Centered Systems 40, 2019, pp. 58-93; as described by D. Wladdimiro et al. (PSPS),
SBAC-PAD 2022, sections III and V.F: the system's input is predicted by a regression function, pending events are added, and an
operator's activity is what that makes of its capacity, which depends on its machine and on the latency of its events.

| here | meaning | unit |
|---|---|---|
| `RecentRates.ahead(1)` | input of the next interval, on the line through the last `window` rates | rows/s |
| `backlog_rows` | pending events | rows |
| 1 / `service_time_s` | capacity of one replica, from the latency of one row on its machine | rows/s |
| activity | input and pending rows over the capacity of all replicas | share |

An operator with an activity above `upper` gets replicas until it is not, one below `lower` gives away what it can. Storm has
to be restarted for either. That is a property of what runs the application, not of who decides: in the simulator it is
`activation = "restart"` (and `restart_drops_queue = true`, section V.F).

Departures from the paper:

* PSPS gives neither the regression nor the thresholds. The regression is a straight line here, `window` 6 intervals. The
  upper threshold is 1, all that an operator can do; the lower one, 0.5, is where half of the replicas would do.
* The activity is predicted for every operator from the sources' rates and the view's gains.
* A replica's capacity is that of one core. What a machine with too few cores takes away from it is left to the number of
  hosts, which is chosen as `elasticity.need` says: the paper's cluster is fixed.
* Load balancing by the values of the stream, the other half of DABS-Storm, is left to `placement.counts`.
* A forecast in the view is not looked at: the regression is what makes this policy what it is.
* Rows that come while Storm restarts are pending like any others, and lead to the next change if a restart takes about as
  long as an interval. The paper mentions no pause between two changes, so there is none: see the guard `cooldown`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from springtide.errors import require
from springtide.model.decision import Decision
from springtide.model.protocols import View
from springtide.plan.elasticity.need import ByNeed, Need, cores_needed, replicas_for
from springtide.plan.prediction.rates import RecentRates


@dataclass(frozen=True, slots=True, kw_only=True)
class Dabs(ByNeed):
    """DABS-Storm as in PSPS 2022: more replicas above `upper`, fewer below `lower`, of the activity that a line through
    the last `window` rates predicts."""

    name: ClassVar[str] = "dabs"
    summary: ClassVar[str] = "changes replicas when the activity that a regression predicts is too high or too low"
    reference: ClassVar[str] = (
        "R. K. Kombi, N. Lumineau, P. Lamarre, N. Rivetti, Y. Busnel. DABS-Storm: A Data-Aware Approach for Elastic Stream "
        "Processing. Transactions on Large-Scale Data- and Knowledge-Centered Systems 40, 2019, pp. 58-93. As described in "
        "D. Wladdimiro et al., SBAC-PAD 2022, sections III and V.F."
    )

    window: int = 6
    upper: float = 1.0
    lower: float = 0.5

    def __post_init__(self) -> None:
        ByNeed.__post_init__(self)
        require(self.window >= 1, f"{self.name}: window must be at least 1, not {self.window}")
        require(0 < self.upper <= 1, f"{self.name}: upper must be above 0 and at most 1, not {self.upper}")
        require(0 <= self.lower < self.upper, f"{self.name}: lower must be 0 or more and below upper, not {self.lower}")

    def start(self) -> RecentRates:
        return RecentRates()

    def decide(self, view: View, memory: RecentRates) -> tuple[Decision, RecentRates]:
        recent = memory.then(view, self.window)
        cores = cores_needed(view, view.demand_at(recent.ahead(1)), waiting=True)
        now = {name: placed.replicas for name, placed in view.requested.operators.items()}
        needs = {name: Need(self._replicas(busy, now[name]), busy) for name, busy in cores.items()}

        def finding(name: str) -> str:
            beyond = f"> {self.upper:.2f}" if needs[name].replicas > now[name] else f"< {self.lower:.2f}"
            return f"{name} will have an activity of {cores[name] / now[name]:.2f} {beyond}"

        return self.resized(view, needs, finding), recent

    def _replicas(self, cores: float, now: int) -> int:
        """As many as keep the activity at most at `upper`, if that of the present ones is outside the thresholds."""
        activity = cores / now
        return now if self.lower <= activity <= self.upper else replicas_for(cores / self.upper)
