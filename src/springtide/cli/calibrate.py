"""`springtide calibrate`: what batches cost in live runs, as settings of the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def calibrate(
    journals: Annotated[list[Path], typer.Argument(metavar="JOURNAL...", help="Journals of live runs (`run --journal`).")],
) -> None:
    """Print what batches cost in live runs, as the part of an application file that makes a simulation cost the same."""
    from springtide.cli import calibrating

    typer.echo(calibrating.calibrate(journals), nl=False)
