"""Which part of a series is learnt from, which chooses between models, and which judges them; and how long windows are.

After Mu et al. (2019), section 4.1: 40 days to train, 10 to validate, and the days after them to test. Parts follow one another
in time, and the last is open: whatever is recorded later belongs to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from springtide.errors import InvalidValue, require
from springtide.model.windows import DAY_S, DAYS_PER_WEEK, steps_per_day

Part = Literal["train", "validation", "test"]
PARTS: tuple[Part, ...] = get_args(Part)

FEWEST_PAST = 4
USUAL_FEWEST_FUTURE = 12

_DAYS = "40d/10d/10d"
_SHARES = "4/1/1"
_HOW = 'a split is three lengths, as days "40d/10d/10d" or as shares "4/1/1"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Lengths of the three parts: numbers of days, or shares of the series."""

    lengths: tuple[float, float, float]
    are_days: bool

    def bounds(self, intervals: int, interval_s: float) -> Bounds:
        """Where parts of a series of so many intervals begin."""
        train, validation, test = self.lengths
        per_length = DAY_S / interval_s if self.are_days else intervals / (train + validation + test)
        first, second = round(train * per_length), round((train + validation) * per_length)
        return Bounds(validation=min(first, intervals), test=min(second, intervals), end=intervals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The first interval of the validation part and of the test part, and the one after the last of all."""

    validation: int
    test: int
    end: int

    def part(self, part: Part) -> tuple[int, int]:
        """The first interval of a part, and the one after its last."""
        edges = (0, self.validation, self.test, self.end)
        at = PARTS.index(part)
        return edges[at], max(edges[at], edges[at + 1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """How many past intervals a window shows (b in the paper), and how many future ones (f)."""

    past: int
    future: int


def split_of(text: str) -> Split:
    """
    >>> split_of("40d/10d/10d").lengths
    (40.0, 10.0, 10.0)
    """
    words = [word.strip() for word in text.split("/")]
    in_days = [word.endswith("d") for word in words]
    require(len(words) == 3 and len(set(in_days)) == 1, f"{text!r}: {_HOW}")
    try:
        train, validation, test = (float(word.removesuffix("d")) for word in words)
    except ValueError:
        raise InvalidValue(f"{text!r}: {_HOW}") from None
    require(all(0 < length < float("inf") for length in (train, validation, test)), f"{text!r}: {_HOW}, each above 0")
    return Split(lengths=(train, validation, test), are_days=in_days[0])


def usual_split(intervals: int, interval_s: float) -> Split:
    """The paper's days where there are as many, else the same shares."""
    days = split_of(_DAYS)
    return days if intervals * interval_s >= sum(days.lengths) * DAY_S else split_of(_SHARES)


def usual_past(training: int, interval_s: float) -> int:
    """A week or a day if the training part has four of them, else an eighth of it."""
    day = steps_per_day(interval_s)
    fitting = [length for length in (DAYS_PER_WEEK * day, day) if FEWEST_PAST <= length <= training // 4]
    return fitting[0] if fitting else max(FEWEST_PAST, training // 8)


def usual_future(bounds: Bounds, past: int, interval_s: float) -> int:
    """A day if the training part has eight of them, else an eighth of it, but 12 intervals where every part has the room."""
    training, day = bounds.validation, steps_per_day(interval_s)
    if day <= training // 8:
        return day
    room = min(training - past, bounds.test - bounds.validation, bounds.end - bounds.test)
    return max(training // 8, min(USUAL_FEWEST_FUTURE, room))


def lengths_for(bounds: Bounds, interval_s: float, past_s: float | None, future_s: float | None) -> Lengths:
    """Lengths as given, or the usual ones; refused where a part has no room for a single window."""
    past = usual_past(bounds.validation, interval_s) if past_s is None else _intervals("past_s", past_s, interval_s)
    future = usual_future(bounds, past, interval_s) if future_s is None else _intervals("future_s", future_s, interval_s)
    future = max(1, future)
    for part, needed in zip(PARTS, (past + future, future, future), strict=True):
        first, end = bounds.part(part)
        require(
            end - first >= needed,
            f"is too short: its {part} part has {end - first} intervals of {interval_s:g} s, and a window of {past} past and "
            f"{future} future ones needs {needed}; give more data, a shorter interval, or shorter windows",
        )
    return Lengths(past=past, future=future)


def _intervals(name: str, duration_s: float, interval_s: float) -> int:
    intervals = round(duration_s / interval_s)
    require(intervals >= 1, f"{name} of {duration_s:g} s is shorter than an interval of {interval_s:g} s")
    return intervals
