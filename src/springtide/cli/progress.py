"""How far long work is: a bar on a terminal, a line for each thing that is done elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from springtide.forecast.pipeline.jobs import Progress as Told
from springtide.report.units import duration


@contextmanager
def progress(what: str) -> Iterator[Told]:
    """Shows what it is told, on standard error."""
    console = Console(stderr=True)
    if not console.is_terminal:
        began_s = time.monotonic()
        yield lambda done, of, name: typer.echo(
            f"{what}: {done} of {of} done after {duration(time.monotonic() - began_s)}: {name}", err=True
        )
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, of, name: bar.update(task, completed=done, total=of, description=f"{what} ({name})")


@contextmanager
def counting(what: str, of: int) -> Iterator[Callable[[str], None]]:
    """The same for work that tells the name of each thing that is done, out of so many."""
    done = 0
    with progress(what) as told:

        def note(name: str) -> None:
            nonlocal done
            done += 1
            told(done, of, name)

        yield note
