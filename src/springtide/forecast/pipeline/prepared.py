"""Prepared data on the disk: what is in the folder, and how it is read.

    manifest.json                                  everything about the series but their rates
    rates/series=<name>/...                        index, time, rate_per_s, filled, part
    windows/series=<name>/part=<part>/day=<day>/   origin, time, past, future
    counts/file=<key>/                             what was counted in each input

Rules: the manifest is replaced as a whole, and last. While rows are moved into place there is a file `unfinished`: until the
next run has repaired it, such a folder is not read. Times are UTC; `time` is when an interval begins, and in a window that of
the last past one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from springtide.errors import SpringtideError, nearest
from springtide.forecast.pipeline.filling import Gaps
from springtide.forecast.pipeline.options import Kind, PrepareOptions
from springtide.forecast.pipeline.parts import PARTS, Part
from springtide.forecast.pipeline.sources import InputFile
from springtide.model.observation import FloatArray
from springtide.model.windows import Scale, Windows

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

FORMAT = 1
MANIFEST = "manifest.json"
UNFINISHED = "unfinished"

WINDOWS_SCHEMA = "series string, part string, day string, origin long, time timestamp, past array<float>, future array<float>"
RATES_SCHEMA = "series string, index long, time timestamp, rate_per_s double, filled boolean, part string"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowCounts:
    """How many windows each part has."""

    train: int
    validation: int
    test: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSeries:
    """One series: `past` and `future` are the lengths of its windows in intervals, and times are ISO texts in UTC.

    The validation part begins at `validation_start`, the test part at `test_start`, and the last interval ends at `end`.
    `written` and `written_rates` name the content of each day of windows and of the rates.
    """

    name: str
    kind: Kind
    interval_s: int
    past: int
    future: int
    scale: Scale
    intervals: int
    gaps: Gaps
    start: str
    validation_start: str
    test_start: str
    end: str
    windows: WindowCounts
    written_rates: str
    written: dict[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A folder of prepared data. `warnings` tells which series were left out, and why."""

    folder: Path
    options: PrepareOptions
    inputs: tuple[InputFile, ...]
    series: tuple[PreparedSeries, ...]
    warnings: tuple[str, ...] = ()

    def named(self, name: str) -> PreparedSeries:
        for series in self.series:
            if series.name == name:
                return series
        raise SpringtideError(
            f"{self.folder}: has no series {name!r}; {nearest(name, (series.name for series in self.series))}"
        )

    def only(self, names: Sequence[str]) -> Prepared:
        """The same data without other series."""
        return replace(self, series=tuple(self.named(name) for name in names))

    def windows(self, spark: SparkSession, parts: Sequence[Part] = PARTS) -> DataFrame:
        """Windows of all series: `series`, `part`, `day`, `origin`, `time`, `past`, and `future`, null where it was made up."""
        for part in parts:
            if part not in PARTS:
                raise SpringtideError(f"there is no part {part!r}; {nearest(part, PARTS)}")
        read = self._read(spark, "windows", WINDOWS_SCHEMA)
        return read.where(read["part"].isin(*parts))

    def rates(self, spark: SparkSession) -> DataFrame:
        """All rates: `series`, `index`, `time`, `rate_per_s`, `filled`, `part`."""
        return self._read(spark, "rates", RATES_SCHEMA)

    def _read(self, spark: SparkSession, name: str, schema: str) -> DataFrame:
        from springtide.forecast.pipeline.counting import spark_path  # noqa: PLC0415 - a second that who only looks need not wait

        columns = [column.split()[0] for column in schema.split(", ")]
        return spark.read.schema(schema).parquet(spark_path(self.folder / name)).select(*columns)


class _Head(msgspec.Struct):
    format: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Manifest:
    format: int
    options: PrepareOptions
    inputs: tuple[InputFile, ...]
    series: tuple[PreparedSeries, ...]
    warnings: tuple[str, ...]


def open_prepared(folder: str | Path) -> Prepared:
    """The prepared data in a folder. The rows are not read yet."""
    place = Path(folder).expanduser().resolve()
    prepared = read_manifest(place)
    if prepared is None:
        raise SpringtideError(f"{folder}: holds no prepared data, for there is no {MANIFEST} in it; prepare some first")
    if (place / UNFINISHED).exists():
        raise SpringtideError(f"{folder}: a run was stopped while it wrote; prepare the same inputs again, which repairs it")
    return prepared


def read_manifest(folder: Path) -> Prepared | None:
    """What the manifest says, whether or not a run was stopped since; None where there is none."""
    file = folder / MANIFEST
    try:
        content = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise SpringtideError(f"{file}: cannot be read: {error.strerror}") from None
    try:
        written_format = msgspec.json.decode(content, type=_Head).format
        if written_format != FORMAT:
            raise SpringtideError(
                f"{file}: has format {written_format}, and this Springtide reads {FORMAT}; prepare the data again, with refit"
            )
        manifest = msgspec.json.decode(content, type=_Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SpringtideError(f"{file}: is damaged ({error}); prepare the data again, with refit") from None
    return Prepared(
        folder=folder,
        options=manifest.options,
        inputs=manifest.inputs,
        series=manifest.series,
        warnings=manifest.warnings,
    )


def write_manifest(prepared: Prepared) -> None:
    manifest = _Manifest(
        format=FORMAT,
        options=prepared.options,
        inputs=prepared.inputs,
        series=prepared.series,
        warnings=prepared.warnings,
    )
    file = prepared.folder / MANIFEST
    beside = file.with_suffix(".new")
    beside.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
    os.replace(beside, file)


def windows_from(frame: pd.DataFrame, interval_s: float) -> Windows:
    """Rows of `Prepared.windows` of one series, as models want them: in order of time, NaN for what was made up."""
    ordered = frame.sort_values("origin")
    return Windows(
        interval_s=interval_s,
        origins=ordered["origin"].to_numpy(dtype=np.int64),
        past=_matrix(ordered["past"]),
        future=_matrix(ordered["future"]),
    )


def _matrix(lists: pd.Series) -> FloatArray:
    rows = [np.asarray(row, dtype=np.float64) for row in lists]
    return np.stack(rows) if rows else np.empty((0, 0))
