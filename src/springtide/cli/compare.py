"""`springtide compare`: policies beside one another, on the same traces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from springtide.backends.simulator.settings import ServiceModel

Traces = Annotated[
    list[str],
    typer.Argument(
        metavar="TRACE...",
        help="A trace file or generator:NAME, as `springtide simulate` takes them; `data`, or a folder: every recording in it"
        " that is known by name (`data` is the folder SPRINGTIDE_DATA, else ../shared/data); data:NAME: one of them.",
    ),
]
Policies = Annotated[
    str, typer.Option("--policies", "-p", metavar="NAME,...", help="Policies (see `springtide policies`), or all of them.")
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        metavar="NAME=VALUE",
        help="A parameter of all policies, or POLICY.NAME=VALUE of one; may be repeated. `static` has the whole pool, and a"
        " replica of every operator for each of its cores, unless it is set here.",
    ),
]
Guards = Annotated[
    list[str] | None,
    typer.Option(
        "--guard", "-g", metavar="GUARD[:NAME=VALUE,...]", help="A guard around every policy; the first is innermost."
    ),
]
ApplicationPath = Annotated[
    Path | None,
    typer.Option(
        "--application",
        "-a",
        metavar="FILE",
        help="TOML file that describes the application, its hosts and the simulator.  [default: four operators with skewed"
        " keys and state, on 1 to 10 hosts of 4 cores]",
    ),
]
Longest = Annotated[
    str,
    typer.Option(
        "--longest",
        metavar="TIME",
        help="Of a longer trace take this much (7d, 12h, 30m): the days up to the end of the one with its busiest minute.",
    ),
]
PeakLoad = Annotated[
    float | None,
    typer.Option(
        "--peak-load",
        metavar="SHARE",
        help="Scale every trace so that its busiest minute needs this share of all cores of the pool.  [default: 0.5 in"
        " micro-batches, 0.7 row by row]",
    ),
]
LateCost = Annotated[
    float, typer.Option("--late-cost", metavar="N", help="What a late row costs: as much as the core time of N rows.")
]


def compare(
    traces: Traces,
    policies: Policies = "all",
    parameters: Parameters = None,
    guard: Guards = None,
    application: ApplicationPath = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables (see docs/comparing.md).")] = False,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw core-hours against late rows into a PNG, SVG or PDF file."),
    ] = None,
    seed: Annotated[
        list[int] | None, typer.Option("--seed", help="Seed of chance; several are as many runs, averaged.  [default: 0]")
    ] = None,
    longest: Longest = "7d",
    peak_load: PeakLoad = None,
    peak: Annotated[float | None, typer.Option("--peak", metavar="ROWS/S", help="Scale every trace to this peak rate.")] = None,
    scale: Annotated[float | None, typer.Option("--scale", help="Multiply every trace's rows.")] = None,
    no_scale: Annotated[bool, typer.Option("--no-scale", help="Take traces as they are.")] = False,
    late_cost: LateCost = 10.0,
    interval: Annotated[float | None, typer.Option("--interval", metavar="SECONDS", help="Time between decisions.")] = None,
    step: Annotated[float | None, typer.Option("--step", metavar="SECONDS", help="Resolution of simulated time.")] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", help="Cores to run on, as a Spark job; 1 is without Spark.  [default: all]"),
    ] = None,
    service: Annotated[
        ServiceModel,
        typer.Option(
            "--service",
            help="How rows are processed where the application file does not say: in micro-batches at the costs that were"
            " measured on Spark, or one by one, as the papers' Storm does.",
        ),
    ] = ServiceModel.MICRO_BATCH,
    no_spark: Annotated[bool, typer.Option("--no-spark", help="Run in this process, on one core.")] = False,
) -> None:
    """Compare policies on the same traces: core-hours, late rows, changes, regret, and who is dominated by whom."""
    from springtide.cli import comparing

    comparing.compare(
        comparing.Wishes(
            traces=traces,
            policies=policies,
            parameters=parameters or [],
            guards=guard or [],
            application=application,
            seeds=seed or [0],
            longest=longest,
            peak_load=peak_load,
            peak_rows_per_s=peak,
            scale=scale,
            as_they_are=no_scale,
            late_cost=late_cost,
            interval_s=interval,
            step_s=step,
            service=service,
            workers=1 if no_spark else workers,
        ),
        as_json=as_json,
        plot=plot,
    )
