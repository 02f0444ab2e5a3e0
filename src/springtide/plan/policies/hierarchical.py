"""Operators ask for what they need, and the application grants what is worth its downtime.

V. Cardellini, F. Lo Presti, M. Nardelli, G. Russo Russo, "Towards Hierarchical Autonomous Control for Elastic Data Stream
Processing in the Fog", Euro-Par 2017 Workshops (Auto-DaSP): the local policy of section 3.1 (`hierarchy.proposing`) under the
global policy of section 3.2 (`hierarchy.granting`), with the settings of section 4. Symbols and departures are there.

The outer layer is also a guard of its own, `gain-cost`, for any other policy.

Departures from the paper, besides those:

* Both layers act at the end of every control interval, as in section 4. The architecture has the outer one slower.
* A host that is left without replicas is released, down to what the pool keeps at least.
* What a stop does to the CPU time used is no reason to ask for anything (`hierarchy.settling`), unless `discounts_stops` is 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from springtide.errors import require
from springtide.model.allocation import Allocation
from springtide.model.decision import Decision, Expectation
from springtide.model.protocols import View
from springtide.plan.hierarchy.granting import Allowance
from springtide.plan.hierarchy.proposing import Proposals, propose
from springtide.plan.hierarchy.settling import is_disturbed, leaves_rows, undisturbed
from springtide.plan.hierarchy.wishing import LocalRules
from springtide.plan.placement.loads import Loads
from springtide.plan.thresholds.response import restored


@dataclass(frozen=True, slots=True, kw_only=True)
class HierarchicalMemory:
    """The tokens in the bucket, and how many decisions were taken: each has a chance of its own.

    `rows_left`: a stop has left rows waiting, which the next interval works off.
    """

    tokens: float
    decisions: int = 0
    rows_left: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchical(Allowance):
    """Cardellini et al. 2017 (EDF): operators propose, the application grants.

    An operator with a replica above `scale_out_above` asks for one more; with a replica on a host above `max_utilisation`,
    for another host; when one replica fewer would leave them below `scale_in_share` of `scale_out_above`, for one fewer. Each
    granted request takes a token; see `gain-cost` for how tokens come. With `discounts_stops` 0 the CPU time used is taken as
    it was measured, in intervals with a stop too, as the paper has it.
    """

    name: ClassVar[str] = "hierarchical"
    summary: ClassVar[str] = "operators ask for replicas and moves, the application grants what is worth its downtime"
    reference: ClassVar[str] = (
        "V. Cardellini, F. Lo Presti, M. Nardelli, G. Russo Russo. Towards Hierarchical Autonomous Control for Elastic Data "
        "Stream Processing in the Fog. Euro-Par 2017: Parallel Processing Workshops, LNCS 10659, Springer, 2018, pp. 106-117."
    )

    max_utilisation: float = 0.7
    scale_out_above: float = 0.7
    scale_in_share: float = 0.75
    discounts_stops: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        Allowance.__post_init__(self)
        for what in ("max_utilisation", "scale_out_above"):
            value = getattr(self, what)
            require(0 < value <= 1, f"{self.name}: {what} must be above 0 and at most 1, not {value}")
        require(
            0 <= self.scale_in_share < 1,
            f"{self.name}: scale_in_share must be 0 or more and below 1, not {self.scale_in_share}",
        )
        require(self.discounts_stops in (0, 1), f"{self.name}: discounts_stops must be 0 or 1, not {self.discounts_stops}")
        require(self.seed >= 0, f"{self.name}: seed must be 0 or more, not {self.seed}")

    def start(self) -> HierarchicalMemory:
        return HierarchicalMemory(tokens=self.capacity)

    def decide(self, view: View, memory: HierarchicalMemory) -> tuple[Decision, HierarchicalMemory]:
        disturbed = bool(self.discounts_stops) and is_disturbed(view.observation, rows_left=memory.rows_left)
        loads = Loads(undisturbed(view) if disturbed else view)
        proposals = propose(loads, self._rules(), lambda: np.random.default_rng((self.seed, memory.decisions)))
        wanted, additions = restored(view, _without_idle_hosts(view, proposals.allocation))
        decision = Decision(planned=wanted, reason="as proposed", why_not=proposals.why_not)
        decision, tokens = self.granted(view, decision, memory.tokens)
        planned = decision.planned
        done = [why for name, why in proposals.findings.items() if planned.operators[name] == wanted.operators[name]]
        decision = replace(
            decision,
            reason=_reason(loads.view, planned, [*done, *additions], proposals),
            expected=Expectation(utilisation=loads.highest_utilisation(planned)),
        )
        rows_left = disturbed and leaves_rows(view.observation)
        return decision, HierarchicalMemory(tokens=tokens, decisions=memory.decisions + 1, rows_left=rows_left)

    def _rules(self) -> LocalRules:
        return LocalRules(
            who=self.name,
            max_utilisation=self.max_utilisation,
            scale_out_above=self.scale_out_above,
            scale_in_share=self.scale_in_share,
        )


def _without_idle_hosts(view: View, allocation: Allocation) -> Allocation:
    """Without the hosts that hold no replica, the newest first, as far as the pool can spare them."""
    used = {host for placed in allocation.operators.values() for host in placed.replica_hosts}
    idle = [host for host in reversed(allocation.hosts) if host not in used]
    surplus = idle[: max(0, len(allocation.hosts) - view.pool.min_hosts)]
    return allocation.with_hosts(tuple(h for h in allocation.hosts if h not in surplus)) if surplus else allocation


def _reason(view: View, planned: Allocation, done: list[str], proposals: Proposals) -> str:
    """What is done and why; or what was proposed and not granted; or what could not be proposed; or that all is calm."""
    released = [host for host in view.requested.hosts if host not in planned.hosts]
    if released:
        done = [*done, f"nothing is left on {', '.join(released)}: release"]
    if done:
        return "; ".join(done)
    if proposals.findings:
        first, *others = proposals.findings.values()
        return f"hold: not granted: {first}" + (f" (and {len(others)} more)" if others else "")
    if proposals.why_not:
        obstacle, *more = proposals.why_not
        return f"hold: no {obstacle.what}, because {obstacle.why}" + (f" (and {len(more)} more)" if more else "")
    busiest = max(view.observation.running_hosts, key=lambda host: host.utilisation, default=None)
    return (
        f"no operator asks for anything: busiest {busiest.name} at {busiest.utilisation:.2f}" if busiest else "no host runs yet"
    )
