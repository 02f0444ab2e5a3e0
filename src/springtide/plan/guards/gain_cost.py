"""A plan is taken as requests of its operators, and those are granted that gain most for the downtime they cost.

V. Cardellini, F. Lo Presti, M. Nardelli, G. Russo Russo, "Towards Hierarchical Autonomous Control for Elastic Data Stream
Processing in the Fog", Euro-Par 2017 Workshops: the Application Manager's global policy (section 3.2), around any policy.
Symbols and departures: see `hierarchy.granting` and `hierarchy.worth`.

It differs from `token-bucket` in what goes first (the ratio of gain to seconds of downtime, not the kind of change), in tokens
that also come, more slowly, while the application is quick, and in that hosts take none.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from springtide.model.decision import Decision
from springtide.model.protocols import AnyPolicy, View
from springtide.plan.hierarchy.granting import Allowance


@dataclass(frozen=True, slots=True, kw_only=True)
class GainCostMemory:
    inner: Any
    tokens: float


@dataclass(frozen=True, slots=True)
class GainCost(Allowance):
    """Grants at most `capacity` requests at once, and `tokens_per_minute` more while the response time is above `beta` times
    what the SLO allows, `calm_tokens_per_minute` otherwise. A request costs `pause_s` and the time its state takes to move."""

    name: ClassVar[str] = "gain-cost"
    summary: ClassVar[str] = "grants the changes that gain most for their downtime, as far as there are tokens (EDF)"

    policy: AnyPolicy
    _: KW_ONLY

    def start(self) -> GainCostMemory:
        return GainCostMemory(inner=self.policy.start(), tokens=self.capacity)

    def decide(self, view: View, memory: GainCostMemory) -> tuple[Decision, GainCostMemory]:
        decision, inner = self.policy.decide(view, memory.inner)
        decision, tokens = self.granted(view, decision, memory.tokens)
        return decision, GainCostMemory(inner=inner, tokens=tokens)
