"""Windows and rates of one series, read from prepared data by whoever needs them: a task on an executor, or a command."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from springtide.errors import SpringtideError
from springtide.forecast.pipeline.parts import Part
from springtide.model.observation import FloatArray
from springtide.model.windows import Windows


def read_windows(prepared: Path, series: str, interval_s: float, part: Part) -> Windows:
    """One part of a series, in order of time; NaN where a future rate was made up."""
    folder = _series_folder(prepared / "windows", series) / f"part={part}"
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
    folder = _series_folder(prepared / "rates", series)
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


def _series_folder(folder: Path, series: str) -> Path:
    """Spark percent-encodes names of folders in its own way."""
    for path in folder.glob("series=*"):
        if unquote(path.name) == f"series={series}":
            return path
    raise SpringtideError(f"{folder}: has nothing of {series!r}; prepare the data again, with refit")
