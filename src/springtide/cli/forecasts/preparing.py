"""Data for models: inputs of all kinds become windows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from springtide.cli.options import parse_duration_s
from springtide.errors import SpringtideError, nearest
from springtide.forecast.pipeline.options import Kind, PrepareOptions
from springtide.forecast.pipeline.prepared import Prepared
from springtide.report.units import duration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KINDS = ("rates", "events", "journal")
_DATA = "data"
_GENERATOR = "generator:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the user asked to be prepared."""

    inputs: list[str]
    interval: str | None = None
    past: str | None = None
    future: str | None = None
    split: str | None = None
    kind: str | None = None
    time_column: str | None = None
    count_column: str | None = None
    rate_column: str | None = None
    series_column: str | None = None
    refit: bool = False

    def options(self) -> PrepareOptions:
        if self.kind is not None and self.kind not in _KINDS:
            raise SpringtideError(f"--kind {self.kind}: there is no such kind; {nearest(self.kind, _KINDS)}")
        return PrepareOptions(
            interval_s=_seconds(self.interval, "--interval"),
            past_s=_seconds(self.past, "--past"),
            future_s=_seconds(self.future, "--future"),
            split=self.split,
            kind=cast("Kind | None", self.kind),
            time_column=self.time_column,
            count_column=self.count_column,
            rate_column=self.rate_column,
            series_column=self.series_column,
            refit=self.refit,
        )


def prepare(wishes: Wishes, folder: Path, *, workers: int | None, as_json: bool) -> None:
    if not wishes.inputs:
        raise SpringtideError("nothing to prepare: name files, a folder, data:NAME or generator:NAME")
    options = wishes.options()
    inputs = input_files(wishes.inputs, folder.with_name(f"{folder.name}.inputs"))
    with spark_session(workers) as spark:
        prepared = prepared_on(spark, inputs, folder, options)
    show(prepared, as_json=as_json)


def spark_session(workers: int | None) -> AbstractContextManager[SparkSession]:
    """Spark on the cores of this machine; a line says so, because it takes a while."""
    from springtide.backends.spark.cluster.local import local_session

    if workers is not None and workers < 1:
        raise SpringtideError(f"--workers must be at least 1, not {workers}")
    typer.echo(f"Starting Spark on {workers or 'all'} cores of this machine ...", err=True)
    return local_session("springtide-forecast", workers)


def prepared_on(spark: SparkSession, inputs: Sequence[Path], folder: Path, options: PrepareOptions) -> Prepared:
    from springtide.forecast.pipeline.preparing import prepare as run

    prepared = run(spark, inputs, folder, options, lambda line: typer.echo(f"Preparing: {line}", err=True))
    for warning in prepared.warnings:
        typer.echo(f"springtide: left out: {warning}", err=True)
    return prepared


def input_files(specs: Sequence[str], folder: Path) -> list[Path]:
    """The files that inputs stand for. What is no file yet, a generated trace or a part of a recording, is written here."""
    found: dict[Path, None] = {}
    for spec in specs:
        for file in _files(spec, folder):
            found[file] = None
    return list(found)


def _files(spec: str, folder: Path) -> list[Path]:
    if spec.startswith(_GENERATOR):
        from springtide.workload.loading import load
        from springtide.workload.written import write_trace

        trace = load(spec, seed=0)
        write_trace(trace, folder / f"{trace.name}.parquet")
        return [folder / f"{trace.name}.parquet"]
    if spec == _DATA or spec.startswith(f"{_DATA}:"):
        return _recorded(spec, folder)
    return [Path(spec)]


def _recorded(spec: str, folder: Path) -> list[Path]:
    """A recording's own file if it holds nothing else, else its trace."""
    from springtide.workload.reading import read_trace
    from springtide.workload.recordings import data_folder, recording_in, recordings_in
    from springtide.workload.written import write_trace

    data = data_folder()
    chosen = recordings_in(data) if spec == _DATA else [recording_in(data, spec.removeprefix(f"{_DATA}:"))]
    files = []
    for recording in chosen:
        if recording.reader is read_trace:
            files.append(data / recording.file)
            continue
        file = folder / f"{recording.name}.parquet"
        if not file.is_file():
            write_trace(recording.read(data), file)
        files.append(file)
    return files


def show(prepared: Prepared, *, as_json: bool) -> None:
    if as_json:
        listed = [_plain(series) for series in prepared.series]
        typer.echo(
            msgspec.json.format(msgspec.json.encode({"series": listed, "warnings": prepared.warnings}), indent=2).decode()
        )
        return
    table = Table("series", "interval", "intervals", "gaps filled", "past", "future", "train", "validation", "test")
    for series in prepared.series:
        interval_s, counts = series.interval_s, series.windows
        table.add_row(
            series.name,
            duration(interval_s),
            f"{series.intervals:,}",
            f"{series.gaps.intervals:,}",
            duration(series.past * interval_s),
            duration(series.future * interval_s),
            *(f"{n:,}" for n in (counts.train, counts.validation, counts.test)),
        )
    Console().print(table)
    Console().print(f"Windows are in {prepared.folder}.", style="dim", highlight=False)


def _plain(series: object) -> dict[str, object]:
    found: dict[str, object] = msgspec.to_builtins(series)
    return {name: value for name, value in found.items() if name not in {"written", "written_rates"}}


def _seconds(text: str | None, option: str) -> float | None:
    return None if text is None else parse_duration_s(text, option)
