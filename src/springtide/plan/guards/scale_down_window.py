"""Resources fall only to the most that was planned over a window: a short dip of the load releases nothing.

As the stabilisation window of Kubernetes' HorizontalPodAutoscaler (`behavior.scaleDown.stabilizationWindowSeconds`,
300 s by default), and the scale-down interval of Flink's autoscaler. Both look at replicas; hosts are held here as well.

A plan never grows through this guard: where more was planned earlier than has been requested since, what has been
requested is kept. What had been requested before the first decision counts as planned then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from springtide.errors import require
from springtide.model.allocation import Allocation
from springtide.model.decision import Decision, WhyNot
from springtide.model.protocols import AnyPolicy, View
from springtide.plan.guards.partial import keep_hosts, refuse
from springtide.plan.guards.replica_count import shrink


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """How much was planned at one time."""

    time_s: float
    hosts: int
    replicas: Mapping[str, int]

    @classmethod
    def of(cls, allocation: Allocation, time_s: float) -> Planned:
        replicas = {name: operator.replicas for name, operator in allocation.operators.items()}
        return cls(time_s=time_s, hosts=len(allocation.hosts), replicas=replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDownWindowMemory:
    """What the policy inside planned within the window, oldest first."""

    inner: Any
    planned: tuple[Planned, ...] = ()


@dataclass(frozen=True, slots=True)
class ScaleDownWindow:
    """Neither hosts nor an operator's replicas fall below the most that was planned in the last `window_s`."""

    name: ClassVar[str] = "scale-down-window"
    summary: ClassVar[str] = "resources fall only to the most that was planned within a window"

    policy: AnyPolicy
    _: KW_ONLY
    window_s: float = 300.0

    def __post_init__(self) -> None:
        require(self.window_s >= 0, f"{self.name}: window_s must be 0 or more, not {self.window_s}")

    def start(self) -> ScaleDownWindowMemory:
        return ScaleDownWindowMemory(inner=self.policy.start())

    def decide(self, view: View, memory: ScaleDownWindowMemory) -> tuple[Decision, ScaleDownWindowMemory]:
        decision, inner = self.policy.decide(view, memory.inner)
        earlier = memory.planned or (Planned.of(view.requested, view.now_s),)
        recent = tuple(p for p in earlier if view.now_s - p.time_s < self.window_s)
        memory = ScaleDownWindowMemory(inner=inner, planned=(*recent, Planned.of(decision.planned, view.now_s)))
        if recent:
            decision = self._with_replicas_held(decision, view, recent)
            decision = self._with_hosts_held(decision, view, recent)
        return decision, memory

    def _with_replicas_held(self, decision: Decision, view: View, recent: Sequence[Planned]) -> Decision:
        floor, why = view.requested, {}
        for name, wanted in decision.planned.operators.items():
            peak = max(reversed(recent), key=lambda p: p.replicas[name])
            requested = view.requested.operators[name]
            if wanted.replicas < min(peak.replicas[name], requested.replicas):
                floor = floor.with_operator(name, shrink(requested, peak.replicas[name]))
                why[name] = self._why(f"{peak.replicas[name]} replicas were", view.now_s - peak.time_s)
        return refuse(decision, floor, self.name, operators=why, hosts={}) if why else decision

    def _with_hosts_held(self, decision: Decision, view: View, recent: Sequence[Planned]) -> Decision:
        peak = max(reversed(recent), key=lambda p: p.hosts)
        held = keep_hosts(view.requested, decision.planned, peak.hosts)
        kept = [h for h in held.hosts if h not in decision.planned.hosts]
        if not kept:
            return decision
        why = self._why(f"{peak.hosts} hosts were", view.now_s - peak.time_s)
        return decision.refused(held, WhyNot(self.name, f"release {', '.join(kept)}", why))

    def _why(self, planned: str, age_s: float) -> str:
        return f"{planned} planned {age_s:g} s ago and the window is {self.window_s:g} s"
