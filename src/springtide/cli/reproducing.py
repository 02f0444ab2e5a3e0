"""What `springtide reproduce` does: run every experiment of the papers asked for, write their pages, say what holds.

Pages of simulated runs are written before live runs begin, so that whatever ends those leaves these.
"""

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
from springtide.experiments import registry
from springtide.experiments.pages import Written, write
from springtide.experiments.registry import study
from springtide.experiments.running import Outcome, attempt
from springtide.experiments.study import Failure, Finding, Run, Study
from springtide.experiments.version import code_version
from springtide.sweeping.in_turn import run_in_turn

FAILED = 1
_ALL = "all"


def reproduce(paper: str, out: Path, *, quick: bool, as_json: bool, workers: int | None, live: bool = False) -> None:
    """Everything that can be refused is refused before anything is run."""
    if workers is not None and workers < 1:
        raise SpringtideError(f"--workers must be at least 1, not {workers}")
    if out.exists() and not out.is_dir():
        raise SpringtideError(f"--out {out}: this is not a folder")
    studies = [study(name) for name in _names(paper, live=live)]
    simulated = [one for one in studies if not one.live]
    outcomes = _run([run for one in simulated for run in one.runs(quick=quick)], workers) if simulated else []
    written = _write(simulated, outcomes, out, quick=quick)
    for one in (one for one in studies if one.live):
        found = _run_live(one, one.runs(quick=quick))
        written |= _write([one], found, out, quick=quick)
        outcomes += found
    _show(written, as_json)
    failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    for failure in failures:
        typer.echo(f"springtide: {failure}", err=True)
    if failures:
        raise typer.Exit(FAILED)


def _names(paper: str, *, live: bool) -> list[str]:
    """The studies that are asked for: with `live`, those of live runs after the others."""
    names = list(registry.PAPERS) if paper == _ALL else [paper]
    if not live:
        return names
    added = [registry.LIVE[name] for name in names if name in registry.LIVE]
    if not added and paper not in registry.LIVE.values():
        study(paper)  # a name that nobody knows is said to be one
        raise SpringtideError(f"--live: {paper} has no live runs; the papers that have some: {', '.join(registry.LIVE)}")
    return names + added


def _write(studies: Sequence[Study], outcomes: Sequence[Outcome], out: Path, *, quick: bool) -> dict[str, Written]:
    """The pages of these studies. A run that failed costs a simulated study its page, and a live one its experiment."""
    failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    failed = {failure.run.paper for failure in failures}
    found = {
        one.name: [outcome for outcome in outcomes if isinstance(outcome, Finding) and outcome.run.paper == one.name]
        for one in studies
    }
    return {
        one.name: write(one.without(failures), found[one.name], out, version=code_version(), quick=quick)
        for one in studies
        if one.name not in failed or (one.live and found[one.name])
    }


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


def _run_live(of: Study, runs: Sequence[Run]) -> list[Outcome]:
    """One after the other: each has all of the machine."""
    assert of.surroundings is not None
    typer.echo(f"Live runs: {len(runs)}", err=True)
    typer.echo("Starting Spark on executors of this machine, and warming it up ...", err=True)
    with counting("Running live", len(runs)) as note, of.surroundings():
        return run_in_turn(runs, attempt, note)


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
