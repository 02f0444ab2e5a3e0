"""`springtide bench`: figures measured on this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

Shown = TypeVar("Shown")

app = typer.Typer(help="Measure Springtide on this machine.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def benchmarks(context: typer.Context) -> None:
    """Measure Springtide on this machine."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("simulator")
def simulator(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Leave out the hour of 1,000 operators x 64 shards.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Exit with code 1 when a figure is above its bar.")] = False,
) -> None:
    """Measure how fast the simulator is, and how its cost grows with steps and with shards."""
    from springtide.benchmarks.simulator import measure, table

    report = measure(quick=quick, say=lambda text: typer.echo(text, err=True))
    _print(report, as_json, table)
    if check and not report.within_bars:
        raise typer.Exit(1)


@app.command("policies")
def policies(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer decisions, no larger sizes: to try it out.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Exit with code 1 when a figure is above its bar.")] = False,
    policy: Annotated[list[str] | None, typer.Option("--policy", help="Only this policy. May be repeated.")] = None,
) -> None:
    """Measure how long one decision of every policy takes, and how that grows: in some six minutes."""
    from springtide.benchmarks.policies.measuring import measure, table

    report = measure(policy or (), quick=quick, say=lambda text: typer.echo(text, err=True))
    _print(report, as_json, table)
    if check and not report.within_bars:
        raise typer.Exit(1)


@app.command("forecasts")
def forecasts(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer forecasts, no neural models: to try it out.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Exit with code 1 when a figure is above its bar.")] = False,
) -> None:
    """Measure how long a forecast of 1,000 sources takes, each with its own models, and beside a process that trains."""
    from springtide.benchmarks.forecasts import measure, table

    report = measure(quick=quick, say=lambda text: typer.echo(text, err=True))
    _print(report, as_json, table)
    if check and not report.within_bars:
        raise typer.Exit(1)


@app.command("applications")
def applications(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="One round of a few thousand rows: to try it out.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Exit with code 1 when a figure misses its bar.")] = False,
    application: Annotated[list[str] | None, typer.Option("--application", help="Only this one. May be repeated.")] = None,
) -> None:
    """Measure the applications that come with Springtide beside the same functions as plain queries, on live Spark."""
    from springtide.benchmarks.applications import measure, table

    report = measure(application or (), quick=quick, say=lambda text: typer.echo(text, err=True))
    _print(report, as_json, table)
    if check and not report.within_bars:
        raise typer.Exit(1)


@app.command("spark")
def spark(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Measure everything once, and shortly: to try it out.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Exit with code 1 when a figure misses its bar.")] = False,
    case: Annotated[
        list[str] | None, typer.Option("--case", help="Only this case: pauses, chain, control or skew. May be repeated.")
    ] = None,
) -> None:
    """Measure what changes cost on live Spark, and what they bring: on 4 executors, in more than half an hour."""
    from springtide.benchmarks.spark.measuring import measure, table

    report = measure(case or (), quick=quick, say=lambda text: typer.echo(text, err=True))
    _print(report, as_json, table)
    if check and not report.within_bars:
        raise typer.Exit(1)


@app.command("elasticity")
def elasticity(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Each case once, and shorter: to try it out.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Exit with code 1 when a figure misses its bar.")] = False,
    case: Annotated[
        list[str] | None, typer.Option("--case", help="Only this case: steps, constant, prediction or pacing. May be repeated.")
    ] = None,
) -> None:
    """Measure how tide sizes hosts on live Spark, and how well it predicts latency: on 1 to 4 executors, in half an hour."""
    from springtide.benchmarks.elasticity.measuring import measure, table

    report = measure(case or (), quick=quick, say=lambda text: typer.echo(text, err=True))
    _print(report, as_json, table)
    if check and not report.within_bars:
        raise typer.Exit(1)


@app.command("dashboard")
def dashboard(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="A shorter journal, few turns of the loop: to try it out.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Exit with code 1 when a figure misses its bar.")] = False,
    case: Annotated[list[str] | None, typer.Option("--case", help="Only this one: opening or viewers.")] = None,
) -> None:
    """Measure how soon the journal of a week is open, and what 50 viewers take from the control loop: in some ten minutes."""
    from springtide.benchmarks.dashboard.measuring import measure, table

    report = measure(case or (), quick=quick, say=lambda text: typer.echo(text, err=True))
    _print(report, as_json, table)
    if check and not report.within_bars:
        raise typer.Exit(1)


def _print(report: Shown, as_json: bool, table: Callable[[Shown], Any]) -> None:
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        from rich.console import Console

        Console().print(table(report))
