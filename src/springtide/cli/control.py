"""`springtide control`: steer a live run by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def control(
    journal: Annotated[Path, typer.Argument(metavar="JOURNAL", help="The journal of a live run that goes on.")],
    do: Annotated[str, typer.Argument(metavar="WHAT", help="pause, resume, pin, unpin, drain or undrain.")],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[OPERATOR [REPLICAS] | HOST]", help="What is to be pinned, and to how much, or drained."),
    ] = None,
) -> None:
    """Pause a live run's policy, pin an operator's replicas, or drain a host.

    springtide control run.jsonl pause | resume | pin OPERATOR REPLICAS | unpin OPERATOR | drain HOST | undrain HOST
    """
    from springtide.cli import controlling

    typer.echo(controlling.ask(journal, do, words or []))
