"""What came out of runs, as the user wants it: tables, JSON, a picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import typer
from rich.console import Console

from springtide.errors import SpringtideError
from springtide.report.summary import Point, RunSummary
from springtide.report.tables import operators_table, runs_table

PLOT_FORMATS = (".png", ".svg", ".pdf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Where the user wants the results."""

    as_json: bool
    plot: Path | None
    journal: Path | None


def check_plot_path(path: Path) -> None:
    """Say before a long run, not after it, that a plot cannot be written there."""
    if path.suffix.lower() not in PLOT_FORMATS:
        raise SpringtideError(f"--plot {path}: write to a file that ends in {', '.join(PLOT_FORMATS)}")
    if not path.absolute().parent.is_dir():
        raise SpringtideError(f"--plot {path}: the folder {path.parent} does not exist")
    if path.is_dir():
        raise SpringtideError(f"--plot {path}: that is a folder; name a file")


def draw(results: list[tuple[RunSummary, list[Point]]], path: Path) -> None:
    from springtide.report.plots import plot_runs  # matplotlib takes a second to import

    plot_runs(results, path)


def show(runs: list[RunSummary], as_json: bool) -> None:
    """Print the runs: tables for people, JSON for programs."""
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(runs), indent=2).decode())
        return

    console = Console()
    console.print(runs_table(runs))
    for run in runs:
        if 1 < len(run.operators) <= 12 and len(runs) == 1:
            console.print(operators_table(run))
        if run.gaps_filled:
            typer.echo(f"{run.trace}: {run.gaps_filled} missing steps were filled by interpolation.", err=True)
