"""`springtide demo`: a bursty stream on real Spark; or a bursty day, simulated under three policies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    folder: Annotated[Path, typer.Option("--folder", help="Where everything goes.")] = Path("springtide-demo"),
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Simulate a bursty day instead, under three policies; needs no Java.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the simulated day.")] = 7,
) -> None:
    """Run a bursty stream on real Spark, and watch executors and shards move: about 3 minutes."""
    from springtide.cli import demonstration

    if simulated:
        demonstration.simulate(folder, seed)
    else:
        demonstration.demonstrate(folder)
