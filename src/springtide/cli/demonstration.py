"""What `springtide demo` does."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from springtide.applications.runs import RunFolder
from springtide.applications.simulated.pipeline import pipeline
from springtide.backends.simulator.calibration import settings_for
from springtide.backends.simulator.settings import ServiceModel
from springtide.cli.results import draw, show
from springtide.cli.simulating import run_all
from springtide.cli.telling import InWords
from springtide.errors import SpringtideError
from springtide.model.allocation import HostType, Pool, new_host_names, spread
from springtide.plan.registry import make_policy
from springtide.report.in_words import in_words
from springtide.simulation import Simulation
from springtide.workload.generators import bursty_day

if TYPE_CHECKING:
    from springtide.cli import running

# Every row waits for 3 ms, as for a service, so that two cores are enough to show what four executors do.
_APPLICATION = "micro-benchmark"
_OPTIONS = (
    "trace=generator:steps:levels=60/60/150/300/450/600/450/300/150/60/60/60,hold_s=15",
    "waits=true",
    "cost_us_per_tuple=3000",
    "max_rows_per_batch=1200",
    "keys=2000",
    "buckets=16",
)


def demonstrate(folder: Path, dashboard_port: int | None = None) -> None:
    """Run a bursty stream on real Spark, check its answer row by row, and say what it took."""
    from springtide.cli import running  # pyspark takes a second to import, which the simulation does not need

    _made(folder)
    RunFolder(folder / "live").remove()  # an earlier demonstration
    journal, picture = folder / "journal.jsonl", folder / "live.png"
    journal.unlink(missing_ok=True)
    wishes = dataclasses.replace(_wishes(folder / "live"), dashboard_port=dashboard_port)
    ended = running.run_live(wishes, journal, quiet=False)
    draw([(ended.result.summary, ended.result.points)], picture)
    typer.echo("\n" + "\n".join(in_words(ended.result.summary)))
    _name_files(picture, journal)
    running.leave(ended, InWords())


def _wishes(folder: Path) -> running.Wishes:
    from springtide.cli import running

    return running.Wishes(
        application=_APPLICATION,
        options=list(_OPTIONS),
        policy="tide",
        parameters=[],
        guards=[],
        slo_s=10.0,
        folder=str(folder),
        master=None,
        hosts="1:4",
        start_hosts=None,
        cores=1,
        memory_mb=600,
        settings=[],
        scaling="elastic",
        interval_s=2.0,
        for_s=None,
        until_drained=True,
        models=None,
    )


def simulate(folder: Path, seed: int) -> None:
    """Run a bursty day in micro-batches with hosts for the peak all the time, and with two elastic policies beside it."""
    _made(folder)
    day = bursty_day(seed)
    application = pipeline(day.peak_rate_per_s, cores_at_peak=12.0, latency_s=15.0)
    pool = Pool(host=HostType(cores=2, start_s=30.0), min_hosts=1, max_hosts=10)
    every = {o.name: min(o.replica_limit, 20) for o in application.operators}
    full = spread(application, new_host_names(frozenset(), pool.max_hosts), every)
    elastic = Simulation(
        trace=day,
        application=application,
        pool=pool,
        settings=dataclasses.replace(settings_for(ServiceModel.MICRO_BATCH), interval_s=10.0, initial_hosts=4),
        policy=make_policy("tide", {}),
        policy_name="tide",
        seed=seed,
    )
    runs = [
        dataclasses.replace(elastic, policy=make_policy("static", {}), policy_name="static (peak)", start=full),
        dataclasses.replace(elastic, policy=make_policy("local-thresholds", {}), policy_name="local-thresholds"),
    ]
    journal = folder / "journal.jsonl"
    journal.unlink(missing_ok=True)
    results = [*run_all(runs), *run_all([elastic], journal)]
    picture = folder / "bursty-day.png"
    draw(results, picture)
    show([summary for summary, _ in results], as_json=False)
    _name_files(picture, journal)


def _made(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpringtideError(f"--folder {folder}: cannot be made ({error.strerror}); name another") from None


def _name_files(picture: Path, journal: Path) -> None:
    typer.echo(f"\nThe picture:            {picture}")
    typer.echo(f"What was decided, why:  springtide explain {journal} --changes")
    typer.echo(f"All of it in a browser: springtide dashboard {journal}")
