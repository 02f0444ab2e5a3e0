"""What is registered under a name, as a list: its summary, and its settings with their defaults."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table


def show_registered(found: Mapping[str, Sequence[Any]], *, as_json: bool, settings: str = "parameters") -> None:
    """Classes with a name and a summary, whose fields are their settings, by what they are."""
    described = {title: [_described(one, settings) for one in those] for title, those in found.items()}
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(described, enc_hook=str), indent=2).decode())
        return
    console = Console()
    for title, entries in described.items():
        console.print(_table(title, entries, settings))


def _described(registered: Any, settings: str) -> dict[str, Any]:
    fields = [f for f in dataclasses.fields(registered) if f.name != "policy"]
    return {"name": registered.name, "summary": registered.summary, settings: {f.name: f.default for f in fields}}


def _table(title: str, entries: Sequence[dict[str, Any]], settings: str) -> Table:
    table = Table(title=title.capitalize(), show_lines=True)
    for column in ("name", "what it does", f"{settings} and defaults"):
        table.add_column(column, no_wrap=column == "name")
    for entry in entries:
        shown = "\n".join(f"{name} = {value}" for name, value in entry[settings].items())
        table.add_row(entry["name"], entry["summary"], shown or "none")
    return table
