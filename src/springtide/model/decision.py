"""A decision: the planned allocation, why, and what it is expected to achieve; and later, what it did achieve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from springtide.errors import require
from springtide.model.allocation import Allocation

if TYPE_CHECKING:
    from springtide.model.protocols import Forecast


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a decision promises for the next interval. A field left `None` is not promised.

    `utilisation` is that of the busiest host, `processed_rows_per_s` the rate at which rows leave the application,
    `latency_s` the SLO's percentile of end-to-end latency.
    """

    utilisation: float | None = None
    processed_rows_per_s: float | None = None
    latency_s: float | None = None


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Something that was wanted and not done: who refused it, what it was, and why."""

    who: str
    what: str
    why: str

    def __post_init__(self) -> None:
        require(bool(self.who and self.what and self.why), "a veto must say who, what and why")

    def __str__(self) -> str:
        return f"{self.who}: not {self.what}, because {self.why}"


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A decision without a reason cannot be built. `foreseen` is the forecast it was made by, if there was one.

    `trigger_s` is how often batches of an operator start at most, in seconds; those of an operator that is not named follow one
    another at once.
    """

    planned: Allocation
    reason: str
    expected: Expectation = Expectation()
    why_not: tuple[WhyNot, ...] = ()
    trigger_s: Mapping[str, float] = field(default_factory=dict)
    foreseen: Forecast | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        require(bool(self.reason.strip()), "a decision needs a reason")

    def noting(self, note: str) -> Decision:
        """The same decision, with something more to its reason."""
        return replace(self, reason=f"{self.reason}; {note}")

    def refused(self, planned: Allocation, veto: WhyNot) -> Decision:
        """The decision with another planned allocation, and the veto that made it so.

        What was promised of the old plan is not promised of the new one.
        """
        return replace(self, planned=planned, expected=Expectation(), why_not=(*self.why_not, veto))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a decision one interval later: each promise beside what was measured in that interval."""

    interval: int
    expected: Expectation
    measured: Expectation
    verdict: str
