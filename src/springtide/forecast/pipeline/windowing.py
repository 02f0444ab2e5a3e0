"""Where windows of a series are cut, and the cut ones as Arrow columns.

Rules: a window belongs to the part that holds all of its future; its past may reach back into earlier parts, which are known by
then. A part with too many windows keeps every so many-th, counted from its first. Numbers of intervals are counted from the
start of the series.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from springtide.forecast.pipeline.parts import PARTS, Bounds, Lengths, Part
from springtide.model.observation import FloatArray
from springtide.model.windows import DAY_S, Scale

Origins = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DayOfWindows:
    """The origins of one part that lie in one day (UTC)."""

    part: Part
    day: str
    origins: Origins

    @property
    def name(self) -> str:
        return f"{self.part}/{self.day}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series:
    """A series without gaps; `filled` tells which rates were made up. Interval 0 begins `first * interval_s` after 1970."""

    first: int
    interval_s: int
    rates_per_s: FloatArray
    filled: NDArray[np.bool_]


def origins_in(bounds: Bounds, part: Part, lengths: Lengths, most_windows: int) -> Origins:
    """The last past interval of each window of a part.

    >>> origins_in(Bounds(validation=10, test=14, end=18), "validation", Lengths(past=4, future=2), 100).tolist()
    [9, 10, 11]
    """
    begin, end = bounds.part(part)
    first, last = max(begin - 1, lengths.past - 1), end - 1 - lengths.future
    count = max(0, last - first + 1)
    stride = max(1, -(-count // most_windows))
    return np.arange(first, first + count, stride, dtype=np.int64)


def days_of_windows(series: Series, bounds: Bounds, lengths: Lengths, most_windows: int) -> list[DayOfWindows]:
    """All windows of a series, by part and day."""
    days = []
    for part in PARTS:
        origins = origins_in(bounds, part, lengths, most_windows)
        numbers = (series.first + origins) * series.interval_s // int(DAY_S)
        for number in np.unique(numbers):
            day = np.datetime64(int(number), "D")
            days.append(DayOfWindows(part=part, day=str(day), origins=origins[numbers == number]))
    return days


def digest_of(day: DayOfWindows, series: Series, lengths: Lengths, scale: Scale) -> str:
    """A name for the content of the day's windows: the same content, the same name."""
    shown = slice(int(day.origins[0]) - lengths.past + 1, int(day.origins[-1]) + lengths.future + 1)
    hashed = hashlib.blake2b(repr((lengths, scale, series.first, series.interval_s)).encode(), digest_size=8)
    for content in (day.origins, series.rates_per_s[shown], series.filled[shown]):
        hashed.update(np.ascontiguousarray(content).tobytes())
    return hashed.hexdigest()


def cut(day: DayOfWindows, series: Series, lengths: Lengths, scale: Scale) -> pa.RecordBatch:
    """The day's windows as rows: scaled, and without the made-up part of their future."""
    scaled = scale.scaled(series.rates_per_s).astype(np.float32)
    past_at = day.origins[:, None] + np.arange(1 - lengths.past, 1)
    future_at = day.origins[:, None] + np.arange(1, lengths.future + 1)
    times_us = (series.first + day.origins) * (series.interval_s * 1_000_000)
    count = len(day.origins)
    columns = {
        "origin": pa.array(day.origins, pa.int64()),
        "time": pa.array(times_us, pa.timestamp("us", "UTC")),
        "past": _lists(pa.array(scaled[past_at].ravel()), lengths.past, count),
        "future": _lists(pa.array(scaled[future_at].ravel(), mask=series.filled[future_at].ravel()), lengths.future, count),
    }
    return pa.RecordBatch.from_pydict(columns)


def _lists(values: pa.Array, length: int, count: int) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32) * length), values)
