"""What `springtide run` and `springtide reshard` do."""

from __future__ import annotations

import dataclasses
import math
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from springtide.applications.runs import RunFolder
from springtide.applications.shipped import Checked
from springtide.backends.spark.cluster.embedded import dynamic_allocation, session
from springtide.backends.spark.controlled import Silent
from springtide.backends.spark.fusion import fused, pool_of
from springtide.backends.spark.resharding import reshard as reshard_operator
from springtide.backends.spark.scaling import Scaling
from springtide.cli.loading import Chosen, chosen
from springtide.cli.options import guarded, parse_assignments
from springtide.cli.results import Output, check_plot_path, draw, show
from springtide.cli.watching import Lines, View
from springtide.errors import SpringtideError, nearest
from springtide.forecast.running.choosing import Models
from springtide.live import LiveResult, LiveRun
from springtide.model.protocols import Recorder
from springtide.plan.registry import make_policy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAILED = 1
_SILENCE_S = 10.0  # after which the stream of an application that comes with Springtide has ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the user asked to be run."""

    application: str
    options: list[str]
    policy: str
    parameters: list[str]
    guards: list[str]
    slo_s: float | None
    folder: str | None
    master: str | None
    hosts: str
    start_hosts: int | None
    cores: int
    memory_mb: int
    settings: list[str]
    scaling: str
    interval_s: float
    for_s: float | None
    until_drained: bool
    models: Models | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ended:
    """A run that is over. `checked` is what the application said of its answers; empty if they were not looked at."""

    result: LiveResult
    checked: tuple[Checked, ...] = ()


def run(wishes: Wishes, output: Output) -> None:
    """Run an application, and show what came of it."""
    if output.plot is not None:
        check_plot_path(output.plot)
    ended = run_live(wishes, output.journal, quiet=output.as_json)
    if output.plot is not None:
        draw([(ended.result.summary, ended.result.points)], output.plot)
    show([ended.result.summary], output.as_json)
    leave(ended)


def leave(ended: Ended) -> None:
    """Say what was right and what was wrong; if anything was, the exit code says so too."""
    for name, why in ended.result.failures.items():
        typer.echo(f"springtide: operator {name!r} has stopped: {why}", err=True)
    for checked in ended.checked:
        said = "springtide" if checked.wrong else "Checked" if checked.exact else "Beside it"
        typer.echo(f"{said}: {checked}{'' if checked.wrong else '.'}", err=True)
    if ended.result.failures or any(checked.wrong for checked in ended.checked):
        raise typer.Exit(FAILED)


def run_live(wishes: Wishes, journal: Path | None, *, quiet: bool) -> Ended:
    """Run an application, and let it check its answers, if it can, once its stream has been read to the end.

    Everything that can be refused is refused before Spark is started, which takes a while.
    """
    settings = parse_assignments(wishes.settings, "--conf")
    asked_for = _asked_for(wishes)
    what = chosen(wishes.application, wishes.options, wishes.folder)
    live = dataclasses.replace(asked_for(what), journal=journal)
    if live.scaling is Scaling.DYNAMIC_ALLOCATION:
        settings = dynamic_allocation(live.pool.min_hosts, live.pool.max_hosts) | settings
    with ExitStack() as stack:
        writer = None if journal is None else stack.enter_context(live.open_journal(journal))
        _announce(wishes, live, what)
        spark = stack.enter_context(
            session(
                live.application.name,
                master=wishes.master,
                executors=live.pool.max_hosts,
                cores=wishes.cores,
                memory_mb=wishes.memory_mb,
                settings=settings,
            )
        )
        with _watching(live, quiet=quiet) as watcher:
            result = live.run(
                spark,
                [watcher] if writer is None else [watcher, writer],
                for_s=math.inf if wishes.for_s is None else wishes.for_s,
                until_drained=wishes.until_drained or what.shipped is not None,
                silence_s=_SILENCE_S if what.shipped is not None else 0.0,
                began=lambda backend: _stop_on_signals(backend.clock.stop),
            )
        if writer is not None:
            writer.end(result.summary.duration_s, dataclasses.asdict(result.summary))
        return Ended(result=result, checked=_checked(spark, what, result))


def _watching(live: LiveRun, *, quiet: bool) -> AbstractContextManager[Recorder]:
    """A view that stays in its place needs a terminal."""
    if quiet:
        return nullcontext(Silent())
    return View(live) if sys.stderr.isatty() else nullcontext(Lines(live))


def _announce(wishes: Wishes, live: LiveRun, what: Chosen) -> None:
    if what.shipped is not None:
        typer.echo(f"{what.shipped.name}: {what.data}", err=True)
    most = live.pool.max_hosts
    own = "one executor of this machine" if most == 1 else f"{most} executors of this machine"
    typer.echo(f"Starting Spark on {wishes.master or own} ...", err=True)


def _checked(spark: SparkSession, what: Chosen, result: LiveResult) -> tuple[Checked, ...]:
    if what.shipped is None or result.failures:
        return ()
    if not result.drained:
        typer.echo(f"Not checked: the stream was not read to its end. The same command goes on from {what.folder}.", err=True)
        return ()
    typer.echo("Checking every row of the answer ...", err=True)
    checked = tuple(what.shipped.check(spark, Path(what.folder)))
    RunFolder(Path(what.folder)).end()
    return checked


def _stop_on_signals(stop: Any) -> None:
    """Ctrl-C and a polite kill end the run after the batches that run; a second Ctrl-C does not wait."""

    def handle(*_: object) -> None:
        typer.echo("Stopping after the batches that run; press Ctrl-C again not to wait.", err=True)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stop()

    signal.signal(signal.SIGINT, handle)
    signal.signal(signal.SIGTERM, handle)


def _asked_for(wishes: Wishes) -> Callable[[Chosen], LiveRun]:
    """What was asked for, but for the application: what is wrong with it is said before anything is written."""
    fewest, most = _hosts(wishes.hosts)
    scalings = [s.value for s in Scaling]
    if wishes.scaling not in scalings:
        raise SpringtideError(f"--scaling cannot be {wishes.scaling!r}; {nearest(wishes.scaling, scalings)}")
    start = fewest if wishes.start_hosts is None else wishes.start_hosts
    if not fewest <= start <= most:
        raise SpringtideError(f"--start-hosts {start} is not between --hosts {fewest} and {most}")
    for option, seconds in (("--interval", wishes.interval_s), ("--for", wishes.for_s), ("--slo", wishes.slo_s)):
        if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
            raise SpringtideError(f"{option} must be above 0 s, not {seconds:g}")
    policy = guarded(make_policy(wishes.policy, parse_assignments(wishes.parameters, "--set")), wishes.guards)

    def live_run(what: Chosen) -> LiveRun:
        if wishes.slo_s is not None:
            what.application.slo = dataclasses.replace(what.application.slo, latency_s=wishes.slo_s)
        fused(what.application)  # what is wrong with it is said now
        return LiveRun(
            application=what.application,
            pool=pool_of(wishes.cores, wishes.memory_mb * 2**20, fewest, most),
            policy=policy,
            policy_name=wishes.policy,
            folder=what.folder,
            hosts=start,
            interval_s=wishes.interval_s,
            scaling=Scaling(wishes.scaling),
            models=wishes.models,
        )

    return live_run


def _hosts(text: str) -> tuple[int, int]:
    fewest, colon, most = text.partition(":")
    try:
        low = int(fewest)
        high = int(most) if colon else low
    except ValueError:
        raise SpringtideError(f"--hosts {text!r}: write it as MIN:MAX, for example --hosts 1:4") from None
    if not 1 <= low <= high:
        raise SpringtideError(f"--hosts {text!r}: MIN must be at least 1, and MAX not below it")
    return low, high


def reshard(folder: str, shards: int) -> None:
    before = reshard_operator(folder, shards)
    typer.echo(f"{folder}: {before} shards are {shards} now. Write shards={shards} in the code, and start the application.")
