"""Instances are started and stopped when that costs least: the Cost-Balance-Algorithm (CBA) of BGElasor.

W. Mu, Z. Jin, J. Wang, W. Zhu, W. Wang, "BGElasor: Elastic-Scaling Framework for Distributed Streaming Processing with Deep
Neural Network", NPC 2019, pp. 120-131, section 3.3. The cost model (equations 5 to 9) is `cost.model`, the algorithm
`cost.timetable`, with a table of symbols in the one and how its pseudo-code is read in the other.

At the end of every interval the timetable of each operator is made anew from the input just measured and that of the next
`horizon` intervals. Its first number is what is done now.

Departures from the paper:

* The paper predicts with a neural network (BiGRU), which comes as the view's forecast. Without one, the rates of a source
  are taken from the straight line through its last `window` rates. How far ahead is predicted the paper does not say.
* An instance is a replica, its capability what one core processes. An operator never needs more than its limit.
* The paper's system discards rows that instances cannot keep up with. Here they wait, and are counted with the
  input, the present one and the next alike: as SREA does.
* The paper has a fixed cluster. Hosts come and go here as `elasticity.need` says, and cost nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from springtide.errors import require
from springtide.model.application import Operator
from springtide.model.decision import Decision, WhyNot
from springtide.model.protocols import View
from springtide.plan.cost.model import Prices, total_cost
from springtide.plan.cost.timetable import balanced, enough
from springtide.plan.elasticity.need import ByNeed, Need, cores_needed, replicas_for
from springtide.plan.prediction.rates import RecentRates, forecast_rates

PAPER = Prices()


@dataclass(frozen=True, slots=True, kw_only=True)
class CostBalance(ByNeed):
    """BGElasor's CBA: enough replicas for what comes in `horizon` intervals, started and stopped when it costs least.

    Prices are those of a replica for one interval, of starting one, of stopping one, and of changing their number at all.
    """

    name: ClassVar[str] = "cost-balance"
    summary: ClassVar[str] = "plans each operator's replicas ahead so that running and changing them costs little"
    reference: ClassVar[str] = (
        "W. Mu, Z. Jin, J. Wang, W. Zhu, W. Wang. BGElasor: Elastic-Scaling Framework for Distributed Streaming Processing "
        "with Deep Neural Network. 16th IFIP International Conference on Network and Parallel Computing (NPC), 2019, "
        "pp. 120-131. Section 3.3 (CBA)."
    )
    looks_ahead: ClassVar[bool] = True

    horizon: int = 6
    window: int = 6
    instance_price: float = PAPER.instance
    startup_price: float = PAPER.startup
    shutdown_price: float = PAPER.shutdown
    reroute_price: float = PAPER.reroute

    def __post_init__(self) -> None:
        ByNeed.__post_init__(self)
        for what in ("horizon", "window"):
            require(getattr(self, what) >= 1, f"{self.name}: {what} must be at least 1, not {getattr(self, what)}")
        for what in ("instance_price", "startup_price", "shutdown_price", "reroute_price"):
            value = getattr(self, what)
            require(0 <= value < math.inf, f"{self.name}: {what} must be 0 or more, not {value}")

    @property
    def prices(self) -> Prices:
        return Prices(
            instance=self.instance_price,
            startup=self.startup_price,
            shutdown=self.shutdown_price,
            reroute=self.reroute_price,
        )

    def start(self) -> RecentRates:
        return RecentRates()

    def decide(self, view: View, memory: RecentRates) -> tuple[Decision, RecentRates]:
        recent = memory.then(view, self.window)
        ahead = self._cores_ahead(view, recent)
        prices = self.prices
        plans = {
            o.name: _planned(o, view.requested.operators[o.name].replicas, tuple(cores[o.name] for cores in ahead), prices)
            for o in view.application.operators
        }
        needs = {name: Need(plan.replicas, plan.cores[1]) for name, plan in plans.items()}
        decision = self.resized(view, needs, lambda name: f"{name} {plans[name].finding}")
        dearer = tuple(
            WhyNot(self.name, f"{name} {plan.present} -> {plan.simple[1]} replicas", plan.why_not_simple(prices))
            for name, plan in plans.items()
            if plan.numbers[1] != plan.simple[1]
        )
        return replace(decision, why_not=(*decision.why_not, *dearer)), recent

    def _cores_ahead(self, view: View, recent: RecentRates) -> list[dict[str, float]]:
        """What each operator needs for the input just measured, and in each interval to come."""
        found = [cores_needed(view, view.demand_rows_per_s, waiting=True)]
        for k in range(1, self.horizon + 1):
            rates = forecast_rates(view, k) or recent.ahead(k)
            found.append(cores_needed(view, view.demand_at(rates), waiting=k == 1))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """One operator's cores now and in each interval to come, and its timetables: of step 1 only, and of all steps."""

    cores: tuple[float, ...]
    simple: tuple[int, ...]
    numbers: tuple[int, ...]

    @property
    def present(self) -> int:
        return self.numbers[0]

    @property
    def replicas(self) -> int:
        """What is to be done now; more than the operator may have if it needs more."""
        return max(self.numbers[1], replicas_for(max(self.cores[:2])))

    @property
    def finding(self) -> str:
        now, coming, *later = self.cores
        most = f", {max(later):.2f} at most in the {len(later)} intervals after it" if later else ""
        return f"needs {now:.2f} cores now and {coming:.2f} next{most}"

    def why_not_simple(self, prices: Prices) -> str:
        dear, cheap = total_cost(self.simple, prices), total_cost(self.numbers, prices)
        return f"with what follows from it, {len(self.numbers) - 1} intervals would cost {dear:.0f} and not {cheap:.0f}"


def _planned(operator: Operator, present: int, cores: tuple[float, ...], prices: Prices) -> _Plan:
    needs = tuple(min(replicas_for(c), operator.replica_limit) for c in cores)
    return _Plan(cores=cores, simple=(present, *enough(needs)), numbers=balanced(present, needs, prices))
