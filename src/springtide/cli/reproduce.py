"""`springtide reproduce`: a paper's evaluation, run again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from springtide.errors import SpringtideError

Paper = Annotated[str, typer.Argument(metavar="PAPER", help="heinze, edf, elasticutor, psps or bgelasor; or all.")]


def reproduce(
    paper: Paper,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer and shorter runs: minutes instead of hours.")] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Some figures on real Spark too, at a small scale; elasticutor has such.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where pages, pictures and results are written.")] = Path(
        "docs/results"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print the claims as JSON instead of tables.")] = False,
    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", help="Cores to run on, as a Spark job; 1 is without Spark.  [default: all]"),
    ] = None,
    no_spark: Annotated[bool, typer.Option("--no-spark", help="Run in this process, on one core.")] = False,
) -> None:
    """Run a paper's evaluation again: a page with the paper's figures beside ours, pictures, and raw results."""
    if live and no_spark:
        raise SpringtideError("--live runs on Spark: leave out --no-spark, or use --workers 1 for the simulated runs")
    from springtide.cli import reproducing

    reproducing.reproduce(paper, out, quick=quick, as_json=as_json, workers=1 if no_spark else workers, live=live)
