"""Models from data, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from springtide.cli.forecasts.listing import chosen
from springtide.cli.forecasts.preparing import prepared_on, spark_session
from springtide.cli.progress import progress
from springtide.errors import SpringtideError
from springtide.forecast.pipeline.options import PrepareOptions
from springtide.forecast.pipeline.prepared import Prepared, open_prepared
from springtide.forecast.trained import Trained
from springtide.report.units import duration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SOURCE = "source:"


def train(prepared: Path, folder: Path, names: str, *, repetitions: int, workers: int | None, as_json: bool) -> None:
    wanted = chosen(names)
    data = open_prepared(prepared)
    with spark_session(workers) as spark:
        trained = trained_on(spark, data, folder, wanted, repetitions)
    show(trained, as_json=as_json)


def retrain(journal: Path, folder: Path, names: str) -> None:
    """Data are kept beside the models, so that the next time only what is new is made."""
    wanted = chosen(names)
    with spark_session(1) as spark:
        data = prepared_on(
            spark, [journal], folder.with_name(f"{folder.name}.data"), PrepareOptions(kind="journal", refit=True)
        )
        sources = [series.name for series in data.series if series.name.startswith(_SOURCE)]
        if not sources:
            raise SpringtideError(f"{journal}: no source has shown enough to learn from yet")
        trained_on(spark, data.only(sources), folder, wanted, 1)


def trained_on(spark: SparkSession, data: Prepared, folder: Path, names: Sequence[str], repetitions: int) -> Trained:
    from springtide.forecast.pipeline.training import train as run

    with progress("Training") as told:
        trained = run(spark, data, folder, names, repetitions=repetitions, progress=told)
    for one in trained.series:
        for model in one.models:
            if model.problem is not None:
                typer.echo(f"springtide: {one.name}: no {model.model}: {model.problem}", err=True)
    return trained


def show(trained: Trained, *, as_json: bool) -> None:
    if as_json:
        told = {"at": trained.at, "series": msgspec.to_builtins(trained.series)}
        typer.echo(msgspec.json.format(msgspec.json.encode(told), indent=2).decode())
        return
    table = Table("series", "model", "validation RMSE (standard deviations)", "took")
    for series in trained.series:
        for one in series.models:
            if one.problem is None and one.repetition == 0:
                errors = ", ".join(f"{score.rmse:.3f} at {score.distance}" for score in one.validation)
                table.add_row(series.name, one.model, errors or "-", duration(one.seconds))
    Console().print(table)
    Console().print(
        f"Errors are so many intervals ahead. Models are in {trained.folder}; see `springtide forecast evaluate`.",
        style="dim",
        highlight=False,
    )
