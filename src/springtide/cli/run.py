"""`springtide run`: an application on live Spark, under a policy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ApplicationName = Annotated[
    str,
    typer.Argument(
        metavar="APP.PY|NAME",
        help="Python file with a springtide.Application in the variable `app`, or one of `springtide applications`.",
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="NAME=VALUE", help="An option of an application by NAME; may be repeated."),
]
Parameters = Annotated[
    list[str] | None, typer.Option("--set", "-s", metavar="NAME=VALUE", help="A parameter of the policy; may be repeated.")
]
Guards = Annotated[
    list[str] | None,
    typer.Option("--guard", "-g", metavar="GUARD[:NAME=VALUE,...]", help="A guard around the policy; the first is innermost."),
]
SparkSettings = Annotated[
    list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="A Spark setting; may be repeated.")
]
JournalPath = Annotated[
    Path | None,
    typer.Option("--journal", metavar="FILE", help="Keep every observation, decision and outcome (see `springtide explain`)."),
]

DashboardPort = Annotated[
    int | None,
    typer.Option(
        "--dashboard", metavar="[PORT]", min=0, max=65535, help="Show the run in the browser.  [default port: 8765; 0: any]"
    ),
]


def run(
    application: ApplicationName,
    option: Options = None,
    policy: Annotated[
        str | None, typer.Option("--policy", "-p", help="Policy (see `springtide policies`).  [default: tide]")
    ] = None,
    parameters: Parameters = None,
    guard: Guards = None,
    slo: Annotated[float | None, typer.Option("--slo", metavar="SECONDS", help="Latency to keep.")] = None,
    folder: Annotated[
        str | None,
        typer.Option("--folder", metavar="PATH", help="Where state and edges are kept.  [default: springtide-<application>]"),
    ] = None,
    master: Annotated[
        str | None, typer.Option("--master", metavar="URL", help="A Spark master; else executors on this machine.")
    ] = None,
    hosts: Annotated[
        str | None, typer.Option("--hosts", metavar="MIN:MAX", help="Fewest and most executors.  [default: 1:4]")
    ] = None,
    start_hosts: Annotated[int | None, typer.Option("--start-hosts", help="Executors to begin with.  [default: MIN]")] = None,
    cores: Annotated[int, typer.Option("--cores", help="Cores of an executor.")] = 1,
    memory: Annotated[int, typer.Option("--memory", metavar="MB", help="Memory of an executor.")] = 600,
    conf: SparkSettings = None,
    scaling: Annotated[
        str, typer.Option("--scaling", help="How changes are made: elastic, resource-centric or dynamic-allocation.")
    ] = "elastic",
    interval: Annotated[float, typer.Option("--interval", metavar="SECONDS", help="Time between decisions.")] = 5.0,
    seconds: Annotated[float | None, typer.Option("--for", metavar="SECONDS", help="End after so long.")] = None,
    until_drained: Annotated[bool, typer.Option("--until-drained", help="End when nothing comes and nothing waits.")] = False,
    journal: JournalPath = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the run into a PNG, SVG or PDF file at its end.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    models: Annotated[
        Path | None,
        typer.Option("--models", metavar="FOLDER", help="Forecast with models that were trained (`forecast train`)."),
    ] = None,
    retrain: Annotated[
        str | None,
        typer.Option(
            "--retrain", metavar="TIME", help="Train models anew from the journal as often, such as 6h, into --models."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="TOML with policy, guards, slo_s, hosts; read anew when it changes."),
    ] = None,
    dashboard: DashboardPort = None,
    log_format: Annotated[
        str, typer.Option("--log-format", metavar="text|json", help="Lines for people, or one JSON object per line.")
    ] = "text",
) -> None:
    """Run an application on Spark, and change it while it runs."""
    from springtide.cli import results, running
    from springtide.cli.options import chosen_models

    running.run(
        running.Wishes(
            application=application,
            options=option or [],
            policy=policy,
            parameters=parameters or [],
            guards=guard or [],
            slo_s=slo,
            folder=folder,
            master=master,
            hosts=hosts,
            start_hosts=start_hosts,
            cores=cores,
            memory_mb=memory,
            settings=conf or [],
            scaling=scaling,
            interval_s=interval,
            for_s=seconds,
            until_drained=until_drained,
            models=chosen_models(models, retrain),
            config=config,
            dashboard_port=dashboard,
            log_format=log_format,
        ),
        results.Output(as_json=as_json, plot=plot, journal=journal),
    )


def reshard(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="The operator's folder: <application's folder>/<operator>.")],
    shards: Annotated[int, typer.Option("--shards", help="The number of shards from now on.")],
) -> None:
    """Partition a stopped operator's state into another number of shards."""
    from springtide.cli import running

    running.reshard(folder, shards)
