"""How much of what may be late has been: as long as that is little, late work is worth less than its price.

The objective allows some rows to be late, and what is aimed at is a part of them (`spend`). The price of late work is such that
this part is used up if demand is as uncertain as it usually is. Where it is steadier, next to nothing is late, and hosts are
paid for that nobody needs: then the price comes down with what has been spent. It does not go up when more was late: what
nobody could foresee is not foreseen by more hosts either, and they would be kept for hours after a burst.
"""

from __future__ import annotations

from dataclasses import dataclass

from springtide.model.observation import Observation

_REMEMBERED = 0.9997  # of the rows seen before, with each interval
_BEGUN = 50.0  # intervals in which as much was late as may be, before the first
_CHEAPEST = 0.1  # of the price


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """Rows that were late or dropped, and that were allowed to be, so far; older ones count for less."""

    rows: float = 0.0
    allowed_rows: float = 0.0
    intervals: float = 0.0

    def then(self, seen: Observation, late_share: float) -> Late:
        dropped = sum(operator.dropped_rows for operator in seen.operators.values())
        rows = seen.latency.rows + dropped
        return Late(
            rows=_REMEMBERED * self.rows + seen.latency.rows * seen.latency.violation_share + dropped,
            allowed_rows=_REMEMBERED * self.allowed_rows + rows * late_share,
            intervals=_REMEMBERED * self.intervals + (rows > 0),
        )

    @property
    def dearness(self) -> float:
        """The part of what may be late that was; it is taken to have begun with all of it."""
        if self.allowed_rows <= 0:
            return 1.0
        begun = self.allowed_rows / self.intervals * _BEGUN
        spent = (self.rows + begun) / (self.allowed_rows + begun)
        return min(max(spent, _CHEAPEST), 1.0)
