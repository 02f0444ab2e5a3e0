"""`springtide forecast`: from recorded rates to models that foresee them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Prepare rates, train models of them, judge the models, and predict.", rich_markup_mode=None)

Inputs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="INPUT...",
        help="Files or folders of rates, events or journals (CSV, JSON lines, Parquet), data (every known recording in"
        " SPRINGTIDE_DATA), data:NAME (one of them), or generator:NAME.",
    ),
]
Workers = Annotated[int | None, typer.Option("--workers", help="Cores of this machine to use.  [default: all]")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
ModelNames = Annotated[
    str,
    typer.Option(
        "--models", metavar="NAMES", help="Models with commas between them, or all; see `springtide forecast models`."
    ),
]
Repetitions = Annotated[int, typer.Option("--repetitions", help="Train neural models so many times, from other beginnings.")]
Interval = Annotated[
    str | None, typer.Option("--interval", metavar="TIME", help="Length of an interval.  [default: by the data]")
]
Past = Annotated[str | None, typer.Option("--past", metavar="TIME", help="How far windows look back, such as 7d.")]
Future = Annotated[str | None, typer.Option("--future", metavar="TIME", help="How far windows look ahead, such as 1d.")]
Split = Annotated[
    str | None,
    typer.Option("--split", metavar="A/B/C", help="Training, validation and test part: 40d/10d/10d, or shares such as 4/1/1."),
]


@app.callback(invoke_without_command=True)
def forecast(context: typer.Context) -> None:
    """Prepare rates, train models of them, judge the models, and predict."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("models")
def models(as_json: Json = False) -> None:
    """List the models."""
    from springtide.cli.forecasts.listing import show_models

    show_models(as_json=as_json)


@app.command("prepare")
def prepare(
    inputs: Inputs = None,
    to: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="Where the windows are written.")] = Path("prepared"),
    interval: Interval = None,
    past: Past = None,
    future: Future = None,
    split: Split = None,
    kind: Annotated[str | None, typer.Option("--kind", help="rates, events or journal.  [default: found by looking]")] = None,
    time_column: Annotated[str | None, typer.Option("--time-column", help="Name of the time column.")] = None,
    count_column: Annotated[str | None, typer.Option("--count-column", help="Name of the column of rows per step.")] = None,
    rate_column: Annotated[str | None, typer.Option("--rate-column", help="Name of the column of rows per second.")] = None,
    series_column: Annotated[str | None, typer.Option("--series-column", help="Name of the column that names series.")] = None,
    refit: Annotated[bool, typer.Option("--refit", help="Begin anew: other settings, new parts and scales.")] = False,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Make windows of past and future rates, in Parquet, on Spark. Run again, it reads only what is new."""
    from springtide.cli.forecasts import preparing

    wishes = preparing.Wishes(
        inputs=inputs or [],
        interval=interval,
        past=past,
        future=future,
        split=split,
        kind=kind,
        time_column=time_column,
        count_column=count_column,
        rate_column=rate_column,
        series_column=series_column,
        refit=refit,
    )
    preparing.prepare(wishes, to, workers=workers, as_json=as_json)


@app.command("train")
def train(
    prepared: Annotated[Path, typer.Argument(metavar="FOLDER", help="What `prepare` wrote.")] = Path("prepared"),
    to: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="Where the models are written.")] = Path("models"),
    names: ModelNames = "all",
    repetitions: Repetitions = 1,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Train models of every series, side by side on Spark."""
    from springtide.cli.forecasts import training

    training.train(prepared, to, names, repetitions=repetitions, workers=workers, as_json=as_json)


@app.command("evaluate")
def evaluate(
    places: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FOLDER | INPUT...]",
            help="A folder of models, or inputs as of `prepare`, of which models are trained first.  [default: the loads of the"
            " BGElasor paper: data:bgelasor-periodic, data:bgelasor-fluctuating, and a stand-in for the third]",
        ),
    ] = None,
    names: ModelNames = "all",
    repetitions: Repetitions = 1,
    keep: Annotated[Path | None, typer.Option("--keep", metavar="FOLDER", help="Keep data and models here.")] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the errors into a PNG, SVG or PDF file.")
    ] = None,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Judge models by days that they have not seen: errors 1, 12 and a day's intervals ahead."""
    from springtide.cli.forecasts import evaluating

    evaluating.evaluate(
        places or [], names, evaluating.Output(as_json=as_json, plot=plot), repetitions=repetitions, keep=keep, workers=workers
    )


@app.command("predict")
def predict(
    models: Annotated[Path, typer.Argument(metavar="FOLDER", help="What `train` wrote.")] = Path("models"),
    series: Annotated[str | None, typer.Option("--series", help="Which series.  [default: the only one]")] = None,
    model: Annotated[str, typer.Option("--model", help="Which model.")] = "auto",
    recent: Annotated[
        Path | None, typer.Option("--after", metavar="FILE", help="Rates to go on from.  [default: the newest of the data]")
    ] = None,
    steps: Annotated[int, typer.Option("--steps", help="How many intervals.")] = 12,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw it into a PNG, SVG or PDF file.")] = None,
    as_json: Json = False,
) -> None:
    """Say what the next intervals will bring."""
    from springtide.cli.forecasts import predicting

    predicting.predict(
        predicting.Wishes(models=models, series=series, model=model, recent=recent, steps=steps), plot=plot, as_json=as_json
    )


@app.command("retrain")
def retrain(
    journal: Annotated[Path, typer.Argument(metavar="JOURNAL", help="The journal of a run, which may go on.")],
    to: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="Where the models are written.")] = Path("models"),
    names: ModelNames = "last-value,yesterday,last-week,arima,boosted-lags,auto",
) -> None:
    """Train models of an application's sources from its journal: what `springtide run --retrain` does now and then."""
    from springtide.cli.forecasts import training

    training.retrain(journal, to, names)
