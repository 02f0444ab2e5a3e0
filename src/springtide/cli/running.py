"""What `springtide run` and `springtide reshard` do."""

from __future__ import annotations

import dataclasses
import importlib.util
import math
import signal
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from springtide.backends.spark.application import Application
from springtide.backends.spark.cluster.embedded import dynamic_allocation, session
from springtide.backends.spark.fusion import fused, pool_of
from springtide.backends.spark.resharding import reshard as reshard_operator
from springtide.backends.spark.scaling import Scaling
from springtide.cli.options import guarded, parse_assignments
from springtide.cli.results import Output, check_plot_path, draw, show
from springtide.errors import SpringtideError, nearest
from springtide.forecast.running.choosing import Models
from springtide.live import LiveRun
from springtide.model.observation import Observation
from springtide.model.protocols import Recorder
from springtide.plan.registry import make_policy
from springtide.report.units import count

FAILED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the user asked to be run."""

    application: Path
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


def run(wishes: Wishes, output: Output) -> None:
    """Everything that can be refused is refused before Spark is started, which takes a while."""
    if output.plot is not None:
        check_plot_path(output.plot)
    live = dataclasses.replace(_live_run(wishes), journal=output.journal)
    settings = parse_assignments(wishes.settings, "--conf")
    if live.scaling is Scaling.DYNAMIC_ALLOCATION:
        settings = dynamic_allocation(live.pool.min_hosts, live.pool.max_hosts) | settings
    with ExitStack() as stack:
        recorders: list[Recorder] = [] if output.as_json else [_Line(live)]
        writer = None if output.journal is None else stack.enter_context(live.open_journal(output.journal))
        if writer is not None:
            recorders.append(writer)
        typer.echo(f"Starting Spark on {wishes.master or f'{live.pool.max_hosts} executors of this machine'} ...", err=True)
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
        summary, points, failures = live.run(
            spark,
            recorders,
            for_s=math.inf if wishes.for_s is None else wishes.for_s,
            until_drained=wishes.until_drained,
            began=lambda backend: _stop_on_signals(backend.clock.stop),
        )
        if writer is not None:
            writer.end(summary.duration_s, dataclasses.asdict(summary))
    if output.plot is not None:
        draw([(summary, points)], output.plot)
    show([summary], output.as_json)
    for name, why in failures.items():
        typer.echo(f"springtide: operator {name!r} has stopped: {why}", err=True)
    if failures:
        raise typer.Exit(FAILED)


def _stop_on_signals(stop: Any) -> None:
    """Ctrl-C and a polite kill end the run after the batches that run; a second Ctrl-C does not wait."""

    def handle(*_: object) -> None:
        typer.echo("Stopping after the batches that run; press Ctrl-C again not to wait.", err=True)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stop()

    signal.signal(signal.SIGINT, handle)
    signal.signal(signal.SIGTERM, handle)


def _live_run(wishes: Wishes) -> LiveRun:
    application = load_application(wishes.application)
    if wishes.slo_s is not None:
        application.slo = dataclasses.replace(application.slo, latency_s=wishes.slo_s)
    fewest, most = _hosts(wishes.hosts)
    scalings = [s.value for s in Scaling]
    if wishes.scaling not in scalings:
        raise SpringtideError(f"--scaling cannot be {wishes.scaling!r}; {nearest(wishes.scaling, scalings)}")
    start = fewest if wishes.start_hosts is None else wishes.start_hosts
    if not fewest <= start <= most:
        raise SpringtideError(f"--start-hosts {start} is not between --hosts {fewest} and {most}")
    for option, seconds in (("--interval", wishes.interval_s), ("--for", wishes.for_s)):
        if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
            raise SpringtideError(f"{option} must be above 0 s, not {seconds:g}")
    policy = make_policy(wishes.policy, parse_assignments(wishes.parameters, "--set"))
    fused(application)  # what is wrong with it is said now
    return LiveRun(
        application=application,
        pool=pool_of(wishes.cores, wishes.memory_mb * 2**20, fewest, most),
        policy=guarded(policy, wishes.guards),
        policy_name=wishes.policy,
        folder=wishes.folder or f"springtide-{application.name}",
        hosts=start,
        interval_s=wishes.interval_s,
        scaling=Scaling(wishes.scaling),
        models=wishes.models,
    )


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


def load_application(path: Path) -> Application:
    """The application that a Python file makes: in `app`, or the only one there is."""
    if not path.is_file():
        raise SpringtideError(f"{path}: there is no such file")
    spec = importlib.util.spec_from_file_location(path.stem.replace("-", "_"), path)
    if spec is None or spec.loader is None:
        raise SpringtideError(f"{path}: this is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent.absolute()))
    try:
        spec.loader.exec_module(module)
    except SpringtideError:
        raise
    except Exception as error:
        raise SpringtideError(f"{path}: it cannot be loaded: {type(error).__name__}: {error}") from error
    from pyspark.cloudpickle import register_pickle_by_value  # the file is not there for executors to import

    register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    found = [value for value in vars(module).values() if isinstance(value, Application)]
    named = getattr(module, "app", None)
    if isinstance(named, Application):
        return named
    if len(found) != 1:
        raise SpringtideError(f"{path}: it makes {len(found)} applications: put the one to run into the variable `app`")
    return found[0]


class _Line:
    """A recorder that says in one line what each interval was like, and in another what was decided."""

    def __init__(self, live: LiveRun) -> None:
        self._slo_s = live.application.slo.latency_s
        self._policy = live.policy_name

    def observation(self, observation: Observation) -> None:
        replicas = ", ".join(f"{name} {placed.replicas}" for name, placed in observation.observed.operators.items())
        typer.echo(
            f"{observation.end_s:7.1f} s  {count(observation.offered_rows / observation.interval_s):>6} rows/s"
            f"  backlog {count(observation.backlog_rows)} rows  p90 {observation.latency.p90_s:.1f} of {self._slo_s:g} s"
            f"  hosts {len(observation.running_hosts)}  replicas {replicas}",
            err=True,
        )
        for event in observation.events:
            typer.echo(f"{'':11}{event}", err=True)

    def decision(self, _: Observation, decision: Any, actions: Any) -> None:
        if actions:
            guards = (str(veto) for veto in decision.why_not if veto.who != self._policy)  # the policy's own are many
            why = "; ".join([decision.reason, *guards])
            typer.echo(f"{'':11}{why}: {'; '.join(str(a) for a in actions)}", err=True)

    def outcome(self, *_: object) -> None: ...


def reshard(folder: str, shards: int) -> None:
    before = reshard_operator(folder, shards)
    typer.echo(f"{folder}: {before} shards are {shards} now. Write shards={shards} in the code, and start the application.")
