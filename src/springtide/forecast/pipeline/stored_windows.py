"""Windows and rates of one series, read from prepared data by whoever needs them: a task on an executor, or a command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from springtide.errors import SpringtideError
from springtide.forecast.pipeline.parts import Part
from springtide.forecast.pipeline.writing import series_folder
from springtide.model.observation import FloatArray
from springtide.model.windows import Windows


def read_windows(prepared: Path, series: str, interval_s: float, part: Part) -> Windows:
    """One part of a series, in order of time; NaN where a future rate was made up."""
    folder = prepared / "windows" / series_folder(series) / f"part={part}"
    try:
        table = pq.read_table(folder, columns=["origin", "past", "future"], partitioning=None)
    except (OSError, pa.ArrowException) as error:
        raise SpringtideError(f"{folder}: cannot be read ({error}); prepare the data again, with refit") from None
    table = table.sort_by("origin")
    return Windows(
        interval_s=interval_s,
        origins=table["origin"].to_numpy(),
        past=_matrix(table["past"]),
        future=_matrix(table["future"]),
    )


def read_newest_rates(prepared: Path, series: str, intervals: int) -> FloatArray:
    """The newest rates of a series, in rows per second, the oldest first."""
    folder = prepared / "rates" / series_folder(series)
    try:
        table = pq.read_table(folder, columns=["index", "rate_per_s"], partitioning=None).sort_by("index")
    except (OSError, pa.ArrowException) as error:
        raise SpringtideError(f"{folder}: cannot be read ({error}); prepare the data again, with refit") from None
    rates: FloatArray = table["rate_per_s"].to_numpy()[-intervals:]
    return rates


def _matrix(lists: pa.ChunkedArray) -> FloatArray:
    values = lists.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    rows: FloatArray = values.reshape(len(lists), -1).astype(np.float64)
    return rows
