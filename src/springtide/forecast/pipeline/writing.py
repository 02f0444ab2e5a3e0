"""Rates and windows of a series as Parquet files, written by whichever worker has made them.

Spark takes arrays apart and puts them together value by value, which takes ten times as long as all the rest. So a worker
writes the files of a day itself; they hold the same rows whichever worker writes them, and a file appears as a whole.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from springtide.forecast.pipeline.assembling import bounds_in
from springtide.forecast.pipeline.parts import PARTS, Lengths
from springtide.forecast.pipeline.prepared import PreparedSeries
from springtide.forecast.pipeline.windowing import Series, cut, days_of_windows

_FILE = "part-0.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """What is to be written of a series: its rates, and the windows of these days."""

    rates: bool
    days: frozenset[str]


def write_rows(folder: Path, summary: PreparedSeries, series: Series, changed: Changed, most_windows: int) -> int:
    """Write what has changed of a series below a folder, and tell how many windows that were."""
    name = series_folder(summary.name)
    bounds = bounds_in(summary, series)
    if changed.rates:
        parts = np.repeat(PARTS, np.diff((0, bounds.validation, bounds.test, bounds.end)))
        _write(folder / "rates" / name, [rate_rows(series, parts.tolist())])
    lengths = Lengths(past=summary.past, future=summary.future)
    written = 0
    for day in days_of_windows(series, bounds, lengths, most_windows):
        if day.name in changed.days:
            place = folder / "windows" / name / f"part={day.part}" / f"day={day.day}"
            _write(place, [cut(day, series, lengths, summary.scale)])
            written += len(day.origins)
    return written


def rate_rows(series: Series, parts: list[str]) -> pa.RecordBatch:
    index = np.arange(len(series.rates_per_s), dtype=np.int64)
    return pa.RecordBatch.from_pydict(
        {
            "index": pa.array(index),
            "time": pa.array((series.first + index) * (series.interval_s * 1_000_000), pa.timestamp("us", "UTC")),
            "rate_per_s": pa.array(series.rates_per_s),
            "filled": pa.array(series.filled),
            "part": pa.array(parts, pa.string()),
        }
    )


def series_folder(name: str) -> str:
    """The name of a folder that Spark reads as the column `series`: percent-encoded, but for letters beyond ASCII."""
    return "series=" + re.sub(r"[\x00-\x7f]", lambda found: _encoded(found.group()), name)


def _encoded(character: str) -> str:
    return character if character.isalnum() or character in "-_." else f"%{ord(character):02X}"


def _write(folder: Path, batches: Iterable[pa.RecordBatch]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f".{uuid.uuid4().hex}"
    pa.parquet.write_table(pa.Table.from_batches(batches), beside, compression="zstd")
    os.replace(beside, folder / _FILE)
