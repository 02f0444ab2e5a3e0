"""A change goes through only once several intervals in a row have wanted one in the same direction.

T. Heinze et al., "Auto-scaling Techniques for Elastic Data Stream Processing", 2014, section IV.A:
"scaling decisions are only done after n consecutive violations of the threshold".

Departures from the paper: the paper counts violations of one host's threshold; here it is the direction of the whole
plan that is counted, so that the guard fits every policy. More and less resources have counts of their own.

Directions are told apart by hosts first (they are what is paid for), then by the total number of replicas. A plan that
changes neither number is a move. A confirmed direction stays confirmed until an interval wants something else, so a
long ramp is held up once and not at every step.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import Any, ClassVar

from springtide.errors import require
from springtide.model.allocation import Allocation
from springtide.model.change import change
from springtide.model.decision import Decision, WhyNot
from springtide.model.protocols import AnyPolicy, View


class Direction(StrEnum):
    NONE = "no change"
    MORE = "more resources"
    LESS = "less resources"
    MOVE = "a move"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmedMemory:
    """How many intervals in a row, up to now, have wanted a change in this direction."""

    inner: Any
    direction: Direction = Direction.NONE
    intervals: int = 0


@dataclass(frozen=True, slots=True)
class Confirmed:
    """Waits for `up` intervals that want more resources or a move, and for `down` intervals that want less.

    A move is counted as `up` is, because it is planned, like more resources, to relieve what is overloaded.
    """

    name: ClassVar[str] = "confirmation"
    summary: ClassVar[str] = "a change must be wanted in the same direction for several intervals in a row"

    policy: AnyPolicy
    _: KW_ONLY
    up: int = 2
    down: int = 3

    def __post_init__(self) -> None:
        for what in ("up", "down"):
            require(getattr(self, what) >= 1, f"{self.name}: {what} must be at least 1, not {getattr(self, what)}")

    def start(self) -> ConfirmedMemory:
        return ConfirmedMemory(inner=self.policy.start())

    def decide(self, view: View, memory: ConfirmedMemory) -> tuple[Decision, ConfirmedMemory]:
        decision, inner = self.policy.decide(view, memory.inner)
        direction = direction_of(view.requested, decision.planned)
        intervals = memory.intervals + 1 if direction is memory.direction else 1
        memory = ConfirmedMemory(inner=inner, direction=direction, intervals=intervals)
        needed = self._needed(direction)
        if intervals >= needed:
            return decision, memory
        why = f"it takes {needed} intervals in a row that want {direction}, and this is number {intervals}"
        veto = WhyNot(self.name, str(change(view.requested, decision.planned)), why)
        return decision.refused(view.requested, veto), memory

    def _needed(self, direction: Direction) -> int:
        match direction:
            case Direction.NONE:
                return 0
            case Direction.LESS:
                return self.down
            case _:
                return self.up


def direction_of(base: Allocation, wanted: Allocation) -> Direction:
    """Whether a plan wants more than there is, less, as much in another place, or nothing."""
    if not change(base, wanted):
        return Direction.NONE
    before, after = (len(base.hosts), base.replicas), (len(wanted.hosts), wanted.replicas)
    if before == after:
        return Direction.MOVE
    return Direction.MORE if after > before else Direction.LESS
