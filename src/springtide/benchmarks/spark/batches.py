"""From the times of batches to what a change cost them: pure.

A batch's time runs from the end of the batch before it to its own end, so that nothing between two batches is left out. A
normal batch is the median of the undisturbed ones next to a change, before and after it: near in time, because the machine may
be shared. What a change cost is how much longer the batches it may have disturbed took than as many normal ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from springtide.errors import require
from springtide.model.allocation import OperatorAllocation

_NEXT = 10  # undisturbed batches on either side of a change that tell what is normal
_COMPARED = 8  # batches that are compared with as many before them, to see whether they still get faster
_NO_FASTER = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """When its rows began to be processed, when it was over, and what it followed."""

    began_s: float
    ended_s: float
    followed: OperatorAllocation


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """A change, and the batches that it may have disturbed: those from `first` on and before `after`. `followed` is the
    first one that was run as the change asks for; all three are positions in the list of batches."""

    kind: str
    first: int
    followed: int
    after: int

    def __post_init__(self) -> None:
        require(
            0 < self.first <= self.followed < self.after,
            f"{self.kind}: batches {self.first}, {self.followed}, {self.after} are not in order, or have none before them",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """What one change cost. `idle_s` is the longest time in which no row was processed, less that between normal batches."""

    kind: str
    normal_s: float
    batch_s: float
    excess_s: float
    idle_s: float

    @property
    def batch(self) -> float:
        """The first batch that followed the change, in normal batches."""
        return self.batch_s / self.normal_s

    @property
    def excess(self) -> float:
        """How much longer all the batches took that it may have disturbed, in normal batches."""
        return self.excess_s / self.normal_s


def batch_times_s(batches: Sequence[Batch]) -> list[float]:
    """Of every batch but the first."""
    return [b.ended_s - a.ended_s for a, b in pairwise(batches)]


def pauses(batches: Sequence[Batch], disturbances: Sequence[Disturbance]) -> list[Pause]:
    """What each change cost the batches of one run."""
    times_s = [0.0, *batch_times_s(batches)]
    idle_s = [0.0, *(b.began_s - a.ended_s for a, b in pairwise(batches))]
    disturbed = {i for d in disturbances for i in range(d.first, d.after)}
    quiet = [i for i in range(1, len(batches)) if i not in disturbed]
    found = []
    for d in disturbances:
        near = [i for i in quiet if i < d.first][-_NEXT:] + [i for i in quiet if i >= d.after][:_NEXT]
        require(bool(near), f"{d.kind}: there is no undisturbed batch to compare with")
        normal_s = median(times_s[i] for i in near)
        window = range(d.first, d.after)
        found.append(
            Pause(
                kind=d.kind,
                normal_s=normal_s,
                batch_s=times_s[d.followed],
                excess_s=sum(times_s[i] - normal_s for i in window),
                idle_s=max(idle_s[i] for i in window) - median(idle_s[i] for i in near),
            )
        )
    return found


def settled(times_s: Sequence[float]) -> bool:
    """Whether batches have stopped getting faster, as they do while JVMs are cold.

    >>> settled([9.0, 5.0, 3.0, 2.0, 1.5, 1.2, 1.1, 1.0] + [0.7] * 8), settled([0.7] * 16)
    (False, True)
    """
    if len(times_s) < 2 * _COMPARED:
        return False
    before, last = times_s[-2 * _COMPARED : -_COMPARED], times_s[-_COMPARED:]
    return median(last) >= _NO_FASTER * median(before)


def rows_per_s(batches: Sequence[Batch], rows: Sequence[float], from_s: float, until_s: float) -> float:
    """Throughput between the first and the last batch that ended between two times: whole batches over the time they took."""
    within = [i for i, b in enumerate(batches) if from_s <= b.ended_s <= until_s]
    require(len(within) > 1, f"{len(within)} batches ended within {until_s - from_s:.0f} s: too few to tell a throughput")
    taken_s = batches[within[-1]].ended_s - batches[within[0]].ended_s
    return sum(rows[i] for i in within[1:]) / taken_s
