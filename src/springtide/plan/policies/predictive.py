"""So many replicas as the predicted rows of the next interval need, those that wait included.

D. Wladdimiro, L. Arantes, P. Sens, N. Hidalgo, "A predictive approach for dynamic replication of operators in distributed
stream processing systems" (PSPS), SBAC-PAD 2022, pp. 120-129, section IV: equations 1 to 4 and Algorithm 2.

| symbol | here | unit |
|---|---|---|
| td | `view.observation.interval_s` | s |
| et_i | `service_time_s(view, operator)` | s |
| lambda_G(t) | `view.observation.source_rows` | rows in the interval |
| theta_i(t) | `view.gains[source][operator]` | rows for each row of the source |
| q_i(t) | `backlog_rows` of the operator | rows |
| lambda^r_i(t+1), lambda^q_i(t+1), lambda_i(t+1) | `Predicted.received`, `.queued`, `.rows` | rows in the interval |
| r_i(t+1) | `replicas_needed(...)` | replicas |
| pool of replicas | `operator.replica_limit` | replicas |

The theta of equations 2b and 2c come with the view (`analyze.demand`). What the paper predicts the next input with is the input
of the interval just measured (equation 2a): a model of the input is left to future work (section VI). Equation 5 and Algorithm
1 are how rows are dealt to replicas, not how many there are: an operator whose `grouping` is `load_balanced` has them from
the backend, and equation 5 is measured as `replica_utilisation`.

Departures from the paper:

* A forecast, when the view has one, takes the place of lambda_G(t): its mean of the next interval.
* theta is not that of one interval but of all of them, older ones counting less; et_i is measured all the time, not once
  before deployment. Both because a live application has nobody to say them beforehand.
* lambda_i may be a fraction of a row; replicas are rounded up as in Table II, and there is one at least.
* The paper has a fixed cluster, and stateless operators. Hosts come and go here as `elasticity.need` says, and an operator's
  shards are regrouped as `placement.counts` says. The number of replicas takes shards to be even.
* A change of one replica is made at once, as in Algorithm 2. What keeps it from happening too often are guards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from springtide.model.decision import Decision
from springtide.model.protocols import View
from springtide.plan.elasticity.need import ByNeed, Need, replicas_for
from springtide.plan.placement.counts import service_time_s
from springtide.plan.prediction.rates import forecast_rates, present_rates


@dataclass(frozen=True, slots=True)
class Predicted:
    """The rows that an operator is predicted to have in the next interval: those it receives, and those that wait for it."""

    received: float
    queued: float

    @property
    def rows(self) -> float:
        return self.received + self.queued  # Eq. (4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictive(ByNeed):
    """PSPS 2022: every operator has the replicas that its predicted rows and its queue need, and gets them at once."""

    name: ClassVar[str] = "predictive"
    summary: ClassVar[str] = "gives each operator the replicas that its next rows, and those that wait, need"
    reference: ClassVar[str] = (
        "D. Wladdimiro, L. Arantes, P. Sens, N. Hidalgo. A predictive approach for dynamic replication of operators in "
        "distributed stream processing systems. IEEE 34th International Symposium on Computer Architecture and High "
        "Performance Computing (SBAC-PAD), 2022, pp. 120-129. Section IV."
    )

    def start(self) -> None:
        return None

    def decide(self, view: View, memory: None) -> tuple[Decision, None]:
        td = view.observation.interval_s
        predicted = predict(view, forecast_rates(view, 1) or present_rates(view))
        et = {o.name: service_time_s(view, o) for o in view.application.operators}
        needs = {
            name: Need(replicas_needed(its.rows, et[name], td), its.rows * et[name] / td) for name, its in predicted.items()
        }

        def finding(name: str) -> str:
            its = predicted[name]
            return f"{name} will have {its.received:.0f} + {its.queued:.0f} rows of {et[name] * 1000:.3g} ms in {td:g} s"

        return self.resized(view, needs, finding), memory


def predict(view: View, source_rates_per_s: Mapping[str, float]) -> dict[str, Predicted]:
    """What each operator will have to process in the next interval if the sources have these rates."""
    td = view.observation.interval_s
    seen = view.observation.operators
    return {
        name: Predicted(
            received=rate * td,  # Eq. (2a)
            queued=seen[name].backlog_rows if name in seen else 0.0,  # Eq. (3)
        )
        for name, rate in view.demand_at(source_rates_per_s).items()
    }


def replicas_needed(rows: float, execution_time_s: float, interval_s: float) -> int:
    """How many replicas process so many rows within an interval: O_3 of Table II.

    >>> replicas_needed(83, 0.1, 1.0)
    9
    """
    return replicas_for(rows * execution_time_s / interval_s)  # Eq. (1)
