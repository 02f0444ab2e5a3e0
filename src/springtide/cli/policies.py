"""`springtide policies` and `springtide cite`."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import typer


def policies(as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False) -> None:
    """List all policies and guards with their parameters."""
    from springtide.plan import registry

    found = {
        "policies": [_described(p) for p in registry.policies().values()],
        "guards": [_described(g) for g in registry.guards().values()],
    }
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        return
    from rich.console import Console

    console = Console()
    for title, entries in found.items():
        console.print(_table(title, entries))


def cite(name: Annotated[str, typer.Argument(metavar="NAME", help="A policy's name.")]) -> None:
    """Print the paper or system that a policy is taken from."""
    from springtide.plan import registry

    typer.echo(registry.cite(name))


def _described(registered: Any) -> dict[str, Any]:
    fields = [f for f in dataclasses.fields(registered) if f.name != "policy"]
    return {
        "name": registered.name,
        "summary": registered.summary,
        "parameters": {f.name: f.default for f in fields},
    }


def _table(title: str, entries: list[dict[str, Any]]) -> Any:
    from rich.table import Table

    table = Table(title=title.capitalize(), show_lines=True)
    for column in ("name", "what it does", "parameters and defaults"):
        table.add_column(column, no_wrap=column == "name")
    for entry in entries:
        parameters = "\n".join(f"{name} = {value}" for name, value in entry["parameters"].items())
        table.add_row(entry["name"], entry["summary"], parameters or "none")
    return table
