"""Shards change replica where one has much more to do than the others, whenever the policy itself leaves things as they are.

L. Wang et al., "Elasticutor", SIGMOD 2019, section 3.1: see `placement.balancing`. A policy decides how many replicas and
hosts there are; which keys are popular changes faster than that, and what it takes is a few moved shards.

Departure from the paper: while the busiest replica is below `least` nothing is moved. In micro-batches every shard costs its
share of a batch, rows or none, and moving it costs more than an idle replica can gain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from springtide.errors import require
from springtide.model.allocation import OperatorAllocation
from springtide.model.decision import Decision, WhyNot
from springtide.model.protocols import AnyPolicy, View
from springtide.plan.placement.balancing import balance, imbalance


@dataclass(frozen=True, slots=True)
class Balanced:
    """Re-routes shards of keyed operators whose busiest replica has more than `theta` times the mean to do."""

    name: ClassVar[str] = "balance"
    summary: ClassVar[str] = "moves shards to even out an operator's replicas (Elasticutor, 3.1)"

    policy: AnyPolicy
    theta: float = 1.2
    least: float = 0.3

    def __post_init__(self) -> None:
        require(self.theta >= 1, f"guard {self.name!r}: theta must be at least 1, not {self.theta}")
        require(0 <= self.least <= 1, f"guard {self.name!r}: least must lie between 0 and 1, not {self.least}")

    def start(self) -> Any:
        return self.policy.start()

    def decide(self, view: View, memory: Any) -> tuple[Decision, Any]:
        decision, memory = self.policy.decide(view, memory)
        if decision.planned != view.requested or view.observation.observed.operators != view.requested.operators:
            return decision, memory  # what is under way comes first
        planned, why_not = decision.planned, list(decision.why_not)
        for name, placed in view.requested.operators.items():
            routed = self._balanced(view, name, placed)
            if routed != placed:
                planned = planned.with_operator(name, routed)
                why_not.append(WhyNot(self.name, f"leave {name} as it is", self._reason(view, name, placed, routed)))
        return replace(decision, planned=planned, why_not=tuple(why_not)), memory

    def _balanced(self, view: View, name: str, placed: OperatorAllocation) -> OperatorAllocation:
        seen = view.observation.operators[name]
        keyed = view.application.operator(name).keyed and placed.replicas > 1
        if not keyed or float(seen.replica_utilisation.max(initial=0.0)) < self.least:
            return placed
        routes = balance(seen.shards.busy_s, placed.shard_replicas, placed.replicas, self.theta)
        return OperatorAllocation(placed.replica_hosts, routes)

    def _reason(self, view: View, name: str, before: OperatorAllocation, after: OperatorAllocation) -> str:
        busy_s = view.observation.operators[name].shards.busy_s
        loads = [np.bincount(p.shard_replicas, busy_s, p.replicas).astype(np.float64) for p in (before, after)]
        was, becomes = (imbalance(load) for load in loads)
        moved = sum(a != b for a, b in zip(before.shard_replicas, after.shard_replicas, strict=True))
        shards = "1 shard" if moved == 1 else f"{moved} shards"
        return f"its busiest replica has {was:.2f} times the mean to do, and {becomes:.2f} with {shards} elsewhere"
