"""`springtide demo`: a bursty day, simulated under three policies, as a table and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    folder: Annotated[Path, typer.Option("--folder", help="Where the picture and the journal go.")] = Path("springtide-demo"),
    seed: Annotated[int, typer.Option("--seed", help="Seed of the day.")] = 7,
) -> None:
    """Simulate a bursty day: static provisioning beside two elastic policies."""
    from springtide.cli import demonstration

    demonstration.demonstrate(folder, seed)
