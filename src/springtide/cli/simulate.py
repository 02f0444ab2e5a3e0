"""`springtide simulate`: what policies would have done with a history of rates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Traces = Annotated[
    list[str],
    typer.Argument(
        metavar="TRACE...",
        help="A CSV (.csv, .csv.gz) or Parquet file with a time column and a count or rate column, or generator:NAME"
        " (generator:bursty-day, generator:steps:levels=100/500/50,hold_s=600, ...). Each trace is a run of its own.",
    ),
]
Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policy", "-p", help="Policy (see `springtide policies`); give it several times to compare.  [default: static]"
    ),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        metavar="NAME=VALUE",
        help="A parameter of the policy, or POLICY.NAME=VALUE of one of several; may be repeated.",
    ),
]
Guards = Annotated[
    list[str] | None,
    typer.Option("--guard", "-g", metavar="GUARD[:NAME=VALUE,...]", help="A guard around the policy; the first is innermost."),
]
ApplicationPath = Annotated[
    Path | None,
    typer.Option(
        "--application", "-a", metavar="FILE", help="TOML file that describes the application, its hosts and the simulator."
    ),
]
PlotPath = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw the runs into a PNG, SVG or PDF file.")]
JournalPath = Annotated[
    Path | None,
    typer.Option("--journal", metavar="FILE", help="Keep every observation, decision and outcome (see `springtide explain`)."),
]


def simulate(
    traces: Traces,
    policy: Policies = None,
    parameters: Parameters = None,
    guard: Guards = None,
    application: ApplicationPath = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    plot: PlotPath = None,
    journal: JournalPath = None,
    interval: Annotated[float | None, typer.Option("--interval", metavar="SECONDS", help="Time between decisions.")] = None,
    step: Annotated[float | None, typer.Option("--step", metavar="SECONDS", help="Resolution of simulated time.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of everything that is left to chance.")] = 0,
    scale: Annotated[float, typer.Option("--scale", help="Multiply the trace's rows.")] = 1.0,
    peak: Annotated[float | None, typer.Option("--peak", metavar="ROWS/S", help="Scale the trace to this peak rate.")] = None,
    start: Annotated[float, typer.Option("--from", metavar="SECONDS", help="Begin this far into the trace.")] = 0.0,
    end: Annotated[float | None, typer.Option("--to", metavar="SECONDS", help="End this far into the trace.")] = None,
    time_column: Annotated[str | None, typer.Option("--time-column", help="Name of the trace's time column.")] = None,
    count_column: Annotated[str | None, typer.Option("--count-column", help="Name of the column of rows per step.")] = None,
    rate_column: Annotated[str | None, typer.Option("--rate-column", help="Name of the column of rows per second.")] = None,
    models: Annotated[
        Path | None,
        typer.Option("--models", metavar="FOLDER", help="Forecast with models that were trained (`forecast train`)."),
    ] = None,
) -> None:
    """Show what a policy would have done with a history of rates."""
    from springtide.cli import results, simulating
    from springtide.cli.options import chosen_models

    simulating.simulate(
        simulating.Wishes(
            traces=traces,
            policies=policy or ["static"],
            parameters=parameters or [],
            guards=guard or [],
            application=application,
            interval_s=interval,
            step_s=step,
            seed=seed,
            scale=scale,
            peak_rows_per_s=peak,
            start_s=start,
            end_s=end,
            time_column=time_column,
            count_column=count_column,
            rate_column=rate_column,
            models=chosen_models(models, None),
        ),
        results.Output(as_json=as_json, plot=plot, journal=journal),
    )
