"""`springtide validate`: how near the simulator is to live Spark."""

from __future__ import annotations

from typing import Annotated

import typer


def validate(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    pair: Annotated[
        list[str] | None,
        typer.Option("--pair", metavar="NAME", help="Only this pair: steps, waves or requests. May be repeated."),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Exit with code 1 when a figure misses its bar.")] = False,
) -> None:
    """Run the same applications, loads and policies live on Spark and in the simulator, calibrated: how far apart are they?"""
    from springtide.experiments.fidelity.reporting import table
    from springtide.experiments.fidelity.validating import validate as validated

    report = validated(pair or (), say=lambda text: typer.echo(text, err=True))
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        from rich.console import Console

        Console().print(table(report))
    if check and not report.within_bars:
        raise typer.Exit(1)
