"""Models judged by days that they have not seen."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer
from rich.console import Console

from springtide.cli.forecasts.listing import chosen
from springtide.cli.forecasts.preparing import input_files, prepared_on, spark_session
from springtide.cli.forecasts.tables import explanation, series_table, verdict_table
from springtide.cli.forecasts.training import trained_on
from springtide.cli.progress import progress
from springtide.cli.results import check_plot_path
from springtide.errors import SpringtideError
from springtide.forecast.pipeline.options import PrepareOptions
from springtide.forecast.pipeline.prepared import Prepared, open_prepared
from springtide.forecast.standings import Judged, SeriesStandings, load_of, standings, verdicts
from springtide.forecast.trained import MANIFEST, WEIGHTS, Trained, open_trained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The loads of Table 1 in the BGElasor paper; the third was not published.
_PAPER_LOADS = ("data:bgelasor-periodic", "data:bgelasor-fluctuating", "generator:stable-stand-in")


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    as_json: bool
    plot: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What `--json` prints. Times are those of the whole work, side by side on `cores` cores."""

    cores: int
    training_s: float | None
    evaluating_s: float
    series: tuple[SeriesStandings, ...]
    warnings: tuple[str, ...]


def evaluate(
    places: Sequence[str], names: str, output: Output, *, repetitions: int, keep: Path | None, workers: int | None
) -> None:
    """Everything that can be refused is refused before anything is trained."""
    if output.plot is not None:
        check_plot_path(output.plot)
    wanted = chosen(names)
    if repetitions < 1:
        raise SpringtideError(f"--repetitions must be at least 1, not {repetitions}")
    evaluation = (
        _of_models(places[0], workers) if _are_models(places) else _of_inputs(places, wanted, repetitions, keep, workers)
    )
    if output.plot is not None:
        from springtide.report.forecasts import plot_errors  # matplotlib takes a second to import

        plot_errors(evaluation.series, output.plot)
    if output.as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(evaluation), indent=2).decode())
        return
    console = Console()
    for series in evaluation.series:
        console.print(series_table(series))
    console.print(verdict_table(evaluation.series))
    console.print(explanation(), style="dim", highlight=False)


def _are_models(places: Sequence[str]) -> bool:
    folder = Path(places[0]) if len(places) == 1 else None
    return folder is not None and (folder / MANIFEST).is_file() and (folder / WEIGHTS).is_dir()


def _of_models(folder: str, workers: int | None) -> Evaluation:
    trained = open_trained(folder)
    data = open_prepared(trained.prepared)
    with spark_session(workers) as spark:
        return _evaluation(spark, data, trained, None)


def _of_inputs(
    places: Sequence[str], names: Sequence[str], repetitions: int, keep: Path | None, workers: int | None
) -> Evaluation:
    with ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="springtide-")))
        inputs = input_files(places or _PAPER_LOADS, folder / "inputs")
        spark = stack.enter_context(spark_session(workers))
        data = prepared_on(spark, inputs, folder / "prepared", PrepareOptions())
        began_s = time.monotonic()
        trained = trained_on(spark, data, folder / "models", names, repetitions)
        return _evaluation(spark, data, trained, time.monotonic() - began_s)


def _evaluation(spark: SparkSession, data: Prepared, trained: Trained, training_s: float | None) -> Evaluation:
    from springtide.forecast.pipeline.evaluating import evaluate as run

    began_s = time.monotonic()
    with progress("Judging") as told:
        judged = run(spark, data, trained, told)
    return Evaluation(
        cores=spark.sparkContext.defaultParallelism,
        training_s=None if training_s is None else round(training_s, 1),
        evaluating_s=round(time.monotonic() - began_s, 1),
        series=tuple(_standing(data, trained, series.name, judged) for series in trained.series),
        warnings=data.warnings,
    )


def _standing(data: Prepared, trained: Trained, name: str, judged: Sequence[Judged]) -> SeriesStandings:
    mine = [one for one in judged if one.series == name]
    known = trained.named(name)
    seconds = {model: sum(one.seconds for one in known.named(model)) for model in {one.model for one in known.models}}
    found = standings(name, mine, seconds)
    return SeriesStandings(
        series=name,
        load=load_of(name),
        interval_s=known.interval_s,
        gaps_filled=data.named(name).gaps.intervals,
        models=found,
        verdicts=verdicts(found),
        arima_from_one_origin=next((one.from_one_origin for one in mine if one.from_one_origin is not None), None),
        problems={one.model: one.problem for one in known.models if one.problem is not None},
    )
