"""`springtide bench`: figures measured on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

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
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        from rich.console import Console

        Console().print(table(report))
    if check and not report.within_bars:
        raise typer.Exit(1)
