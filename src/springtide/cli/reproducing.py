"""What `springtide reproduce` does: run every experiment of the papers asked for, write their pages, say what holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from springtide.cli.progress import counting
from springtide.cli.simulating import compile_once
from springtide.errors import SpringtideError
from springtide.experiments.pages import Written, write
from springtide.experiments.registry import PAPERS, study
from springtide.experiments.running import Outcome, attempt
from springtide.experiments.study import Failure, Finding, Run
from springtide.experiments.version import code_version
from springtide.sweeping.in_turn import run_in_turn

FAILED = 1
_ALL = "all"


def reproduce(paper: str, out: Path, *, quick: bool, as_json: bool, workers: int | None) -> None:
    """Everything that can be refused is refused before anything is run."""
    if workers is not None and workers < 1:
        raise SpringtideError(f"--workers must be at least 1, not {workers}")
    if out.exists() and not out.is_dir():
        raise SpringtideError(f"--out {out}: this is not a folder")
    studies = [study(name) for name in (PAPERS if paper == _ALL else (paper,))]
    outcomes = _run([run for one in studies for run in one.runs(quick=quick)], workers)
    failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    failed = {failure.run.paper for failure in failures}
    written = {
        one.name: write(
            one,
            [outcome for outcome in outcomes if isinstance(outcome, Finding) and outcome.run.paper == one.name],
            out,
            version=code_version(),
            quick=quick,
        )
        for one in studies
        if one.name not in failed
    }
    _show(written, as_json)
    for failure in failures:
        typer.echo(f"springtide: {failure}", err=True)
    if failures:
        raise typer.Exit(FAILED)


def _run(runs: Sequence[Run], workers: int | None) -> list[Outcome]:
    compile_once()
    typer.echo(f"Runs: {len(runs)}", err=True)
    with counting("Running", len(runs)) as note:
        if workers == 1:
            return run_in_turn(runs, attempt, note)
        from springtide.backends.spark.cluster.local import local_session
        from springtide.sweeping.on_spark import run_on_spark

        typer.echo(f"Starting Spark on {workers or 'all'} cores of this machine ...", err=True)
        with local_session("springtide-reproduce", workers, without_java=", or use --no-spark") as spark:
            return run_on_spark(runs, attempt, spark, note)


def _show(written: dict[str, Written], as_json: bool) -> None:
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(_plain(written)), indent=2).decode())
        return
    console = Console()
    for paper, files in written.items():
        table = Table("claim", "paper", "here", "holds", title=f"{paper}: {files.page}", title_justify="left")
        for claim in files.claims:
            table.add_row(claim.says, claim.paper, claim.here, "yes" if claim.holds else f"NO: {claim.why}")
        console.print(table)


def _plain(written: dict[str, Written]) -> dict[str, Any]:
    return {
        paper: {
            "page": str(files.page),
            "results": str(files.results),
            "pictures": [str(path) for path in files.pictures],
            "claims": files.claims,
        }
        for paper, files in written.items()
    }
