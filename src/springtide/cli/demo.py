"""`springtide demo`: a bursty stream on real Spark; or a bursty day, simulated under three policies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from springtide.cli.run import DashboardPort
from springtide.errors import SpringtideError


def demo(
    folder: Annotated[Path, typer.Option("--folder", help="Where everything goes.")] = Path("springtide-demo"),
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Simulate a bursty day instead, under three policies; needs no Java.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the simulated day.")] = 7,
    dashboard: DashboardPort = None,
) -> None:
    """Run a bursty stream on real Spark, and watch executors and shards move: about 3 minutes."""
    from springtide.cli import demonstration

    if simulated and dashboard is not None:
        raise SpringtideError("a simulated day is over in seconds: see it with `springtide dashboard` afterwards")
    if simulated:
        demonstration.simulate(folder, seed)
    else:
        demonstration.demonstrate(folder, dashboard)
