"""What `springtide run` and `springtide reshard` do."""

from __future__ import annotations

import dataclasses
import math
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from springtide.applications.runs import RunFolder
from springtide.applications.shipped import Checked
from springtide.backends.spark.cluster.class_archive import ClassArchive
from springtide.backends.spark.cluster.embedded import dynamic_allocation, session
from springtide.backends.spark.controlled import Silent
from springtide.backends.spark.fusion import fused, pool_of
from springtide.backends.spark.resharding import reshard as reshard_operator
from springtide.backends.spark.scaling import Scaling
from springtide.cli.configuration import Configuration, Settings, read_configuration, settled
from springtide.cli.dashboard_process import dashboard_beside, dashboard_command
from springtide.cli.loading import Chosen, chosen
from springtide.cli.options import parse_assignments
from springtide.cli.reloading import Reloading
from springtide.cli.results import Output, check_plot_path, draw, show
from springtide.cli.telling import StructuredLog, Teller, teller
from springtide.cli.watching import Lines, View
from springtide.errors import SpringtideError, nearest
from springtide.forecast.running.choosing import Models
from springtide.journal.steered import SteeredJournal
from springtide.live import LiveResult, LiveRun
from springtide.model.protocols import Recorder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAILED = 1
_SILENCE_S = 10.0  # after which the stream of an application that comes with Springtide has ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the user asked to be run. Policy, guards, objective and hosts may be left to the file `config`, and to defaults."""

    application: str
    options: list[str]
    policy: str | None
    parameters: list[str]
    guards: list[str]
    slo_s: float | None
    folder: str | None
    master: str | None
    hosts: str | None
    start_hosts: int | None
    cores: int
    memory_mb: int
    settings: list[str]
    scaling: str
    interval_s: float
    for_s: float | None
    until_drained: bool
    models: Models | None
    config: Path | None = None
    dashboard_port: int | None = None
    log_format: str = "text"


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
    leave(ended, teller(wishes.log_format))


def leave(ended: Ended, telling: Teller) -> None:
    """Say what was right and what was wrong; if anything was, the exit code says so too."""
    for name, why in ended.result.failures.items():
        telling.warn(f"operator {name!r} has stopped: {why}")
    for checked in ended.checked:
        if checked.wrong:
            telling.warn(str(checked))
        else:
            telling.say(f"{'Checked' if checked.exact else 'Beside it'}: {checked}.")
    if ended.result.failures or any(checked.wrong for checked in ended.checked):
        raise typer.Exit(FAILED)


def run_live(wishes: Wishes, journal: Path | None, *, quiet: bool) -> Ended:
    """Run an application, and let it check its answers, if it can, once its stream has been read to the end.

    Everything that can be refused is refused before Spark is started, which takes a while.
    """
    telling = teller(wishes.log_format)
    spark_settings = parse_assignments(wishes.settings, "--conf")
    given = _given(wishes)
    file = Configuration() if wishes.config is None else read_configuration(wishes.config)
    asked_for = _asked_for(wishes, settled(given, file))
    what = chosen(wishes.application, wishes.options, wishes.folder)
    reloading = None if wishes.config is None else Reloading(wishes.config, given, what.application.slo, telling)
    live = asked_for(what)
    if live.scaling is Scaling.DYNAMIC_ALLOCATION:
        spark_settings = dynamic_allocation(live.pool.min_hosts, live.pool.max_hosts) | spark_settings
    if journal is None and wishes.dashboard_port is not None:
        journal = _journal_in(what.folder)
    with ExitStack() as stack:
        writer = None if journal is None else stack.enter_context(live.open_journal(journal))
        live = _steered(dataclasses.replace(live, journal=journal), writer, reloading, telling)
        if journal is not None and wishes.dashboard_port is not None:
            stack.enter_context(dashboard_beside(dashboard_command(journal, wishes.dashboard_port), telling.say))
        _announce(wishes, live, what, telling)
        spark = stack.enter_context(
            session(
                live.application.name,
                master=wishes.master,
                executors=live.pool.max_hosts,
                cores=wishes.cores,
                memory_mb=wishes.memory_mb,
                settings=spark_settings,
            )
        )
        with _watching(live, telling, quiet=quiet) as watcher:
            result = live.run(
                spark,
                [watcher, *(recorder for recorder in (writer, reloading) if recorder is not None)],
                for_s=math.inf if wishes.for_s is None else wishes.for_s,
                until_drained=wishes.until_drained or what.shipped is not None,
                silence_s=_SILENCE_S if what.shipped is not None else 0.0,
                began=lambda backend: _stop_on_signals(backend.clock.stop, telling),
            )
        if writer is not None:
            writer.end(result.summary.duration_s, dataclasses.asdict(result.summary))
        return Ended(result=result, checked=_checked(spark, what, result, telling))


def _steered(live: LiveRun, writer: SteeredJournal | None, reloading: Reloading | None, telling: Teller) -> LiveRun:
    """The run, with what may change it from outside: people beside its journal, and the file of its configuration."""
    if writer is not None:
        writer.say = telling.say
        live = dataclasses.replace(live, steering=writer.steering)
    if reloading is not None:
        reloading.journal = writer
        live = dataclasses.replace(live, recharged=reloading.recharged)
    return live


def _journal_in(folder: str) -> Path:
    """A new journal in the run's folder, for a dashboard to read; a run that goes on in its folder begins another."""
    if "://" in folder:
        raise SpringtideError(
            f"--dashboard reads a journal on this machine, and {folder} is elsewhere: name one with --journal"
        )
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpringtideError(f"{folder}: cannot be made ({error.strerror}); name another with --folder") from None
    return Path(folder) / f"journal-{datetime.now(UTC):%Y%m%dT%H%M%S}.jsonl"


def _watching(live: LiveRun, telling: Teller, *, quiet: bool) -> AbstractContextManager[Recorder]:
    """A log says everything by itself; a view that stays in its place needs a terminal."""
    if isinstance(telling, StructuredLog):
        return nullcontext(telling)
    if quiet:
        return nullcontext(Silent())
    return View(live) if sys.stderr.isatty() else nullcontext(Lines(live))


def _announce(wishes: Wishes, live: LiveRun, what: Chosen, telling: Teller) -> None:
    if what.shipped is not None:
        telling.say(f"{what.shipped.name}: {what.data}")
    most = live.pool.max_hosts
    own = "one executor of this machine" if most == 1 else f"{most} executors of this machine"
    telling.say(f"Starting Spark on {wishes.master or own} ...")
    if wishes.master is None and ClassArchive().missing:
        telling.say("(20 s longer the first time on this machine: classes are archived, so that executors start faster.)")


def _checked(spark: SparkSession, what: Chosen, result: LiveResult, telling: Teller) -> tuple[Checked, ...]:
    if what.shipped is None or result.failures:
        return ()
    if not result.drained:
        telling.say(f"Not checked: the stream was not read to its end. The same command goes on from {what.folder}.")
        return ()
    telling.say("Checking every row of the answer ...")
    checked = tuple(what.shipped.check(spark, Path(what.folder)))
    RunFolder(Path(what.folder)).end()
    return checked


def _stop_on_signals(stop: Any, telling: Teller) -> None:
    """Ctrl-C and a polite kill end the run after the batches that run; a second Ctrl-C does not wait."""

    def handle(*_: object) -> None:
        telling.say("Stopping after the batches that run; press Ctrl-C again not to wait.")
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stop()

    signal.signal(signal.SIGINT, handle)
    signal.signal(signal.SIGTERM, handle)


def _given(wishes: Wishes) -> Configuration:
    """What the command line says of what a file might say, too."""
    if wishes.slo_s is not None and not (math.isfinite(wishes.slo_s) and wishes.slo_s > 0):
        raise SpringtideError(f"--slo must be above 0 s, not {wishes.slo_s:g}")
    fewest, most = (None, None) if wishes.hosts is None else _hosts(wishes.hosts)
    return Configuration(
        policy=wishes.policy,
        parameters=parse_assignments(wishes.parameters, "--set"),
        guards=tuple(wishes.guards) or None,
        slo_s=wishes.slo_s,
        min_hosts=fewest,
        max_hosts=most,
    )


def _asked_for(wishes: Wishes, settings: Settings) -> Callable[[Chosen], LiveRun]:
    """What was asked for, but for the application: what is wrong with it is said before anything is written."""
    scalings = [s.value for s in Scaling]
    if wishes.scaling not in scalings:
        raise SpringtideError(f"--scaling cannot be {wishes.scaling!r}; {nearest(wishes.scaling, scalings)}")
    fewest, most = settings.min_hosts, settings.max_hosts
    start = fewest if wishes.start_hosts is None else wishes.start_hosts
    if not fewest <= start <= most:
        raise SpringtideError(f"--start-hosts {start} is not between --hosts {fewest} and {most}")
    for option, seconds in (("--interval", wishes.interval_s), ("--for", wishes.for_s)):
        if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
            raise SpringtideError(f"{option} must be above 0 s, not {seconds:g}")
    policy = settings.make_policy()

    def live_run(what: Chosen) -> LiveRun:
        if settings.slo_s is not None:
            what.application.slo = dataclasses.replace(what.application.slo, latency_s=settings.slo_s)
        fused(what.application)  # what is wrong with it is said now
        return LiveRun(
            application=what.application,
            pool=pool_of(wishes.cores, wishes.memory_mb * 2**20, fewest, most),
            policy=policy,
            policy_name=settings.policy,
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
