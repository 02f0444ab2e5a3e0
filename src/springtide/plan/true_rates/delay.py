"""Scale-downs that wait: they are carried out only when one has been recommended all the time for a while.

Flink autoscaler: `DelayedScaleDown`, `JobVertexScaler.applyScaleDownInterval`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommended:
    """So many replicas at that time; `outside` if the operator's rate was outside its bounds."""

    time_s: float
    replicas: int
    outside: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayedScaleDown:
    """One operator's scale-down: since when it has been recommended, and how far, falling with time."""

    first_s: float
    recommended: tuple[Recommended, ...] = ()

    def then(self, latest: Recommended, interval_s: float) -> DelayedScaleDown:
        """With one more recommendation; what cannot be the highest of the last `interval_s` any more is left out."""
        kept = (r for r in self.recommended if r.replicas > latest.replicas and r.time_s >= latest.time_s - interval_s)
        return DelayedScaleDown(first_s=self.first_s, recommended=(*kept, latest))

    @property
    def highest(self) -> Recommended:
        return self.recommended[0]
