"""The models by name."""

from __future__ import annotations

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from springtide.forecast.models.registry import models


def show_models(*, as_json: bool) -> None:
    if as_json:
        listed = [{"name": m.name, "summary": m.summary, "reference": m.reference} for m in models().values()]
        typer.echo(msgspec.json.format(msgspec.json.encode(listed), indent=2).decode())
        return
    table = Table("model", "what it says")
    for model in models().values():
        table.add_row(model.name, model.summary)
    Console().print(table)


def chosen(names: str) -> list[str]:
    """The names in a text, or all."""
    from springtide.errors import SpringtideError, nearest

    known = list(models())
    if names == "all":
        return known
    wanted = [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in known:
            raise SpringtideError(f"--models {names!r}: there is no model {name!r}; {nearest(name, known)}")
    return [name for name in known if name in wanted]
