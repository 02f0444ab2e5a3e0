"""A trace: how many rows arrive in each of many steps of equal length.

Rules: a trace is a value. It checks itself when built, its counts cannot be written to, and every method returns a
new trace. No method loses or invents a row unless that is its purpose.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np

from springtide.errors import InvalidValue, require
from springtide.model.observation import FloatArray

MAX_STEPS = 50_000_000  # more than a year and a half of seconds; 400 MB of counts

# A share of a step: 3 * 0.1 s and 0.3 s are the same edge, though not the same float.
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """Rows that arrive in each step of `step_s` seconds.

    `start` is the ISO time of the first step, for people. `gaps` counts the steps that were missing in the source and
    were filled; it stays that number in whatever is made of the trace.

    >>> trace = Trace(name="lunch", step_s=60.0, counts=np.array([120.0, 600.0]))
    >>> trace.rows, trace.peak_rate_per_s
    (720.0, 10.0)
    >>> trace.resampled(30.0).counts
    array([ 60.,  60., 300., 300.])
    """

    name: str
    step_s: float
    counts: FloatArray
    start: str | None = None
    gaps: int = 0

    def __post_init__(self) -> None:
        require(bool(self.name), "a trace needs a name")
        _require_positive(self.name, "step_s", self.step_s)
        require(self.gaps >= 0, f"trace {self.name!r}: gaps must be 0 or more, not {self.gaps}")
        if self.start is not None:
            _parsed_start(self.name, self.start)
        counts = np.array(self.counts, dtype=np.float64)
        require(
            counts.ndim == 1 and counts.size > 0,
            f"trace {self.name!r}: counts must be a list of at least one number, not of shape {counts.shape}",
        )
        wrong = np.flatnonzero(~(np.isfinite(counts) & (counts >= 0)))
        if wrong.size:
            raise InvalidValue(
                f"trace {self.name!r}: the count of step {wrong[0] + 1} must be finite and 0 or more, not {counts[wrong[0]]}"
            )
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)

    @staticmethod
    def of_times(*, name: str, times_s: FloatArray, step_s: float = 1.0) -> Trace:
        """The trace of single arrivals: row i comes in the step in which `times_s[i]` lies, counted from 0.

        >>> Trace.of_times(name="doors", times_s=np.array([0.2, 0.9, 2.5])).counts
        array([2., 0., 1.])
        """
        times = np.asarray(times_s, dtype=np.float64)
        fine = times.ndim == 1 and times.size > 0 and bool(np.all(np.isfinite(times)) and times[0] >= 0)
        require(fine and bool(np.all(np.diff(times) >= 0)), f"trace {name!r}: times must begin at 0 or later and never fall")
        steps_in(float(times[-1]) + step_s, step_s, owner=f"trace {name!r}")
        return Trace(name=name, step_s=step_s, counts=np.bincount((times / step_s).astype(np.int64)).astype(np.float64))

    @property
    def steps(self) -> int:
        return self.counts.size

    @property
    def duration_s(self) -> float:
        return self.steps * self.step_s

    @property
    def rows(self) -> float:
        return float(self.counts.sum())

    @property
    def mean_rate_per_s(self) -> float:
        return self.rows / self.duration_s

    @property
    def peak_rate_per_s(self) -> float:
        return float(self.counts.max()) / self.step_s

    def peak_rate_over(self, window_s: float) -> float:
        """The rate of the busiest window, of those that follow one another from the start; no window is below a step.

        >>> Trace(name="lunch", step_s=1.0, counts=np.array([0.0, 4.0, 3.0, 3.0])).peak_rate_over(2.0)
        3.0
        """
        return self.resampled(max(window_s, self.step_s)).peak_rate_per_s

    def resampled(self, step_s: float) -> Trace:
        """The same rows in steps of another length: rows are taken to arrive evenly within a step.

        Where the last new step reaches beyond the end of the trace, nothing arrives in the rest of it.
        """
        steps = steps_in(self.duration_s, step_s, owner=f"trace {self.name!r}")
        edges = _snapped(np.arange(steps + 1, dtype=np.float64) * (step_s / self.step_s))
        edges[-1] = max(edges[-1], self.steps)
        arrived = np.interp(edges, np.arange(self.steps + 1), np.concatenate(([0.0], np.cumsum(self.counts))))
        # Interpolation may overshoot an edge by one rounding error, and a count may not be below 0.
        return replace(self, step_s=step_s, counts=np.maximum(np.diff(arrived), 0.0))

    def scaled(self, factor: float) -> Trace:
        """Every count times `factor`."""
        require(
            math.isfinite(factor) and factor >= 0,
            f"trace {self.name!r}: the factor to scale by must be finite and 0 or more, not {factor}",
        )
        return replace(self, counts=self.counts * factor)

    def scaled_to_peak(self, rows_per_s: float) -> Trace:
        """Scaled so that its busiest step offers `rows_per_s`."""
        _require_positive(self.name, "the peak to scale to", rows_per_s)
        require(self.rows > 0, f"trace {self.name!r}: it has no rows, so no factor gives it a peak; use another trace")
        return self.scaled(rows_per_s / self.peak_rate_per_s)

    def cut(self, start_s: float, end_s: float) -> Trace:
        """The steps that begin at or after `start_s` and before `end_s`, both counted from the first step."""
        within = 0 <= start_s < end_s <= self.duration_s * (1 + _NEGLIGIBLE)
        require(
            within,
            f"trace {self.name!r}: cannot cut from {start_s:g} s to {end_s:g} s; "
            f"choose a start before an end, both between 0 s and {self.duration_s:.15g} s",
        )
        first = math.ceil(start_s / self.step_s - _NEGLIGIBLE)
        last = min(math.ceil(end_s / self.step_s - _NEGLIGIBLE), self.steps)
        require(
            first < last,
            f"trace {self.name!r}: no step begins between {start_s:g} s and {end_s:g} s; cut at least {self.step_s:g} s",
        )
        return replace(self, counts=self.counts[first:last], start=self._start_of(first))

    def _start_of(self, step: int) -> str | None:
        if self.start is None or step == 0:
            return self.start
        return (_parsed_start(self.name, self.start) + timedelta(seconds=step * self.step_s)).isoformat()


def steps_in(duration_s: float, step_s: float, *, owner: str) -> int:
    """How many steps cover `duration_s`, the last one perhaps only in part. `owner` is named when it cannot be done."""
    for what, value in (("duration_s", duration_s), ("step_s", step_s)):
        require(math.isfinite(value) and value > 0, f"{owner}: {what} must be above 0, not {value}")
    steps = duration_s / step_s
    require(
        steps <= MAX_STEPS,
        f"{owner}: {duration_s:g} s in steps of {step_s:g} s are more than {MAX_STEPS:,} steps; choose longer steps",
    )
    return max(1, math.ceil(steps - _NEGLIGIBLE))


def _snapped(edges: FloatArray) -> FloatArray:
    whole = np.rint(edges)
    return np.where(np.abs(edges - whole) <= _NEGLIGIBLE, whole, edges)


def _require_positive(name: str, what: str, value: float) -> None:
    require(math.isfinite(value) and value > 0, f"trace {name!r}: {what} must be finite and above 0, not {value}")


def _parsed_start(name: str, start: str) -> datetime:
    try:
        return datetime.fromisoformat(start)
    except ValueError:
        raise InvalidValue(f"trace {name!r}: start must be an ISO time such as '2024-05-01T08:00:00', not {start!r}") from None
