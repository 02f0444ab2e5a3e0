"""How long the intervals of a series are, which interval each counted row belongs to, and the rate of each interval.

Rules: intervals are whole seconds, and begin at multiples of their length after 1970 (UTC). A row of a rate file stands for a
step; it belongs to the interval that its step begins in, told with half a step of tolerance, because recorders jitter. A rate
is what arrived divided by the time that the rows stand for; an interval of which less than half was recorded is a gap. Between
the first and the last event, an interval without one has the rate 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from springtide.errors import SpringtideError, require
from springtide.forecast.pipeline.options import Kind
from springtide.forecast.pipeline.summaries import Counted
from springtide.forecast.pipeline.windowing import Series
from springtide.model.observation import FloatArray

USUAL_INTERVAL_S = 60
LONG_SERIES_INTERVALS = 1_000
EVENT_INTERVALS_S = (60, 10, 1)
FEWEST_EVENT_INTERVALS = 300

_SECOND_US = 1_000_000
_CLOSE = 0.01  # a step that differs from whole seconds by this share of itself only jitters
_LEAST_COVER = 0.5  # of an interval, or it is a gap
_CROWDED = 1.5  # times the rows that an interval has room for: two files tell of the same time
_LONGEST_NAME = 180  # bytes; a folder is named after the series


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One series in one file, and what kind of file it is."""

    path: str
    key: str
    kind: Kind
    are_rates: bool
    counted: Counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """How the rows of one file are read: how long each stands for, by how much later its time is, and whether it has a rate."""

    step_us: int
    shift_us: int
    are_rates: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPlan:
    """How the counts of a series, kept by the key of their file, become rates. `steps` is empty for events."""

    name: str
    kind: Kind
    interval_s: int
    paths: Mapping[str, str]
    steps: Mapping[str, Step] = field(default_factory=dict)

    def shift_us(self, key: str) -> int:
        return self.steps[key].shift_us if key in self.steps else 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IntervalCounts:
    """Counted rows of a series by interval and file, in this order."""

    numbers: NDArray[np.int64]
    files: Sequence[str]
    values: FloatArray
    rows: NDArray[np.int64]


def time_text(time_us: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_us)).isoformat().replace("+00:00", "Z")


def interval_at(time: str, interval_s: int) -> int:
    """The number of the interval that begins at a time, as `time_text` writes it."""
    return round(datetime.fromisoformat(time).timestamp()) // interval_s


def plan_series(name: str, pieces: Sequence[Piece], interval_s: int | None) -> SeriesPlan:
    """Refused where the rows of a series cannot become rates; the message goes on from the name of the series."""
    _refuse_flaws(name, pieces)
    kinds = {piece.kind: piece.path for piece in pieces}
    require(
        len(kinds) == 1,
        f"is told in several ways ({', '.join(f'{kind} in {path}' for kind, path in sorted(kinds.items()))}); "
        "choose the kind of the files",
    )
    kind = pieces[0].kind
    span_us = max(piece.counted.last_us for piece in pieces) - min(piece.counted.first_us for piece in pieces)
    steps = {} if kind == "events" else _steps(pieces)
    longest_us = max((step.step_us for step in steps.values()), default=0)
    if interval_s is None:
        interval_s = event_interval_s(span_us / 1e6) if kind == "events" else step_interval_s(longest_us / 1e6, span_us / 1e6)
    require(
        longest_us <= interval_s * _SECOND_US * (1 + _CLOSE),
        f"has a row every {longest_us / 1e6:g} s, and an interval of {interval_s} s is shorter; "
        f"take one of at least {-(-longest_us // _SECOND_US)} s",
    )
    return SeriesPlan(name=name, kind=kind, interval_s=interval_s, paths={p.key: p.path for p in pieces}, steps=steps)


def event_interval_s(span_s: float) -> int:
    """
    >>> event_interval_s(86_400.0), event_interval_s(3_600.0)
    (60, 10)
    """
    return next((s for s in EVENT_INTERVALS_S if span_s / s >= FEWEST_EVENT_INTERVALS), EVENT_INTERVALS_S[-1])


def step_interval_s(step_s: float, span_s: float) -> int:
    """The step, but a minute at least where the series is long."""
    near = max(1, round(step_s))
    whole = near if abs(near - step_s) <= _CLOSE * step_s else max(1, int(np.ceil(step_s)))
    return max(whole, USUAL_INTERVAL_S) if span_s > LONG_SERIES_INTERVALS * USUAL_INTERVAL_S else whole


def _refuse_flaws(name: str, pieces: Sequence[Piece]) -> None:
    require(len(name.encode()) <= _LONGEST_NAME, f"has a name that is longer than {_LONGEST_NAME} bytes")
    for piece in pieces:
        flaw, repeated_us = piece.counted.flaw, piece.counted.repeated_us
        if flaw is not None:
            raise SpringtideError(
                f"{piece.path} has a count at {time_text(flaw.time_us)} that {flaw.why}; "
                "correct the row, or remove it: it is then a gap"
            )
        if repeated_us is not None:
            raise SpringtideError(
                f"{piece.path} has several rows for {time_text(repeated_us)}; keep one row for each time, "
                "or choose the kind 'events' if each row is an event"
            )


def _steps(pieces: Sequence[Piece]) -> dict[str, Step]:
    known = [piece.counted.step_us for piece in pieces if piece.counted.step_us is not None]
    require(bool(known), f"{pieces[0].path} has a single row of it, which does not tell how long a step is")
    steps = {}
    for piece in pieces:
        step_us = piece.counted.step_us or max(known)
        # A first row that is a little early is one that jitters, not one that is nearly a step late.
        late_us = piece.counted.first_us % step_us
        late_us -= step_us if late_us > 0.75 * step_us else 0
        steps[piece.key] = Step(step_us=step_us, shift_us=step_us // 2 - late_us, are_rates=piece.are_rates)
    return steps


def rates_of(plan: SeriesPlan, counts: IntervalCounts) -> Series:
    """The rates of a series, NaN where there is a gap, from the first recorded interval to the last."""
    first = int(counts.numbers[0])
    places = counts.numbers - first
    amounts, seconds = np.zeros(int(places[-1]) + 1), np.zeros(int(places[-1]) + 1)
    if plan.kind == "events":
        np.add.at(amounts, places, counts.rows)
        seconds[:] = plan.interval_s
    else:
        steps = [plan.steps[file] for file in counts.files]
        row_s = np.array([step.step_us / 1e6 for step in steps])
        factors = np.where([step.are_rates for step in steps], row_s, 1.0)
        np.add.at(amounts, places, counts.values * factors)
        np.add.at(seconds, places, counts.rows * row_s)
        _refuse_overlaps(plan, counts, places, seconds)
    recorded = seconds >= _LEAST_COVER * plan.interval_s
    require(bool(recorded.any()), f"has no interval of {plan.interval_s} s that was recorded")
    rates = np.full(amounts.size, np.nan)
    rates[recorded] = amounts[recorded] / seconds[recorded]
    begin, end = int(recorded.argmax()), recorded.size - int(recorded[::-1].argmax())
    return Series(first=first + begin, interval_s=plan.interval_s, rates_per_s=rates[begin:end], filled=~recorded[begin:end])


def _refuse_overlaps(plan: SeriesPlan, counts: IntervalCounts, places: NDArray[np.int64], seconds: FloatArray) -> None:
    """Two files that meet may share an interval; files that share more tell of the same time twice."""
    shared = np.bincount(places) > 1
    crowded = np.flatnonzero(shared & (seconds > _CROWDED * plan.interval_s))
    if crowded.size >= max(2, len(plan.paths)):
        at = np.flatnonzero(places == crowded[0])
        when = time_text(int(counts.numbers[at[0]]) * plan.interval_s * _SECOND_US)
        one, other = (plan.paths[counts.files[int(i)]] for i in at[:2])
        raise SpringtideError(f"{one} and {other} both have rows for {when}; keep one of them")
