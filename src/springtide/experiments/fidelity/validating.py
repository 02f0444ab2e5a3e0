"""Live and simulated, side by side: three figures of each pair, how far apart they are, and whether that is near enough.

    replicas   mean over the run
    backlog    rows, mean over the run
    latency    median of all rows

The simulator is given what the live run was offered, interval by interval, and what a short live run of the same application
has shown things to cost.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

import numpy as np
from pyspark.sql import SparkSession

from springtide.applications.shipped import ShippedApplication
from springtide.backends.simulator.settings import MicroBatch, Moves, ServiceModel, SimulatorSettings
from springtide.backends.spark.cluster.embedded import session
from springtide.backends.spark.fusion import described, fused, pool_of
from springtide.errors import SpringtideError, nearest, require
from springtide.experiments.fidelity.batches import Batches
from springtide.experiments.fidelity.calibration import Calibration, calibrated
from springtide.experiments.fidelity.pairs import PAIRS, Pair
from springtide.experiments.fidelity.script import Script
from springtide.live import LiveResult, LiveRun
from springtide.model.action import Action, AddHosts
from springtide.model.application import Application, Edge
from springtide.model.decision import Decision
from springtide.model.observation import FloatArray, HostState, Observation
from springtide.model.protocols import AnyPolicy
from springtide.plan.registry import make_policy
from springtide.report.summary import Point, RunSummary
from springtide.simulation import Simulation
from springtide.workload.traces import Trace

REPLICAS_BAR, LATENCY_BAR = 0.10, 0.25
_HOSTS, _CORES, _MEMORY_MB = 4, 1, 600
_INTERVAL_S = 2.0
_STEP_S = 0.1
_SCRIPT = Script(hosts=(1, 2, 4, 2, 3), hold_s=18.0)
_SILENCE_S = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    mean_replicas: float
    mean_backlog_rows: float
    median_latency_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Of the simulated figure, as a share of the live one."""

    replicas: float
    backlog: float
    latency: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated:
    pair: str
    application: str
    policy: str
    rows: float
    calibration: Calibration
    live: Figures
    simulated: Figures
    errors: Errors
    within_bars: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    load_before: float
    bars: dict[str, float]
    pairs: list[Validated]
    within_bars: bool


def validate(only: Sequence[str] = (), *, say: Callable[[str], None] = print) -> Report:
    """Every pair, or those that are named."""
    load = os.getloadavg()[0]
    names = [pair.name for pair in PAIRS]
    for name in only:
        require(name in names, f"--pair {name}: there is no such pair; {nearest(name, names)}")
    pairs = [pair for pair in PAIRS if not only or pair.name in only]
    with TemporaryDirectory(prefix="springtide-validate-", ignore_cleanup_errors=True) as folder:
        say(f"Starting Spark on {_HOSTS} executors of this machine ...")
        with session(
            "springtide-validate", executors=_HOSTS, cores=_CORES, memory_mb=_MEMORY_MB, settings=_kept_in(folder)
        ) as spark:
            found = [_validated(spark, pair, Path(folder), say) for pair in pairs]
    return Report(
        load_before=load,
        bars={"replicas": REPLICAS_BAR, "latency": LATENCY_BAR},
        pairs=found,
        within_bars=all(one.within_bars for one in found),
    )


def _kept_in(folder: str) -> dict[str, str]:
    return {"spark.local.dir": f"{folder}/local", "spark.sql.warehouse.dir": f"{folder}/warehouse"}


def _validated(spark: SparkSession, pair: Pair, folder: Path, say: Callable[[str], None]) -> Validated:
    say(f"{pair.name}: calibrating on a short run")
    learnt = _calibrated(spark, pair.shipped(calibrating=True), folder / f"{pair.name}-calibration")
    say(f"{pair.name}: live, {pair.policy}")
    shipped, policy = pair.shipped(calibrating=False), make_policy(pair.policy, dict(pair.parameters))
    offered = Offered()
    result, _ = _live(spark, shipped, policy, folder / pair.name, offered)
    say(f"{pair.name}: simulated, {pair.policy}")
    model = described(shipped.application(folder / "unused"), fused(shipped.application(folder / "unused")))
    trace = Trace(name=pair.name, step_s=_INTERVAL_S, counts=offered.counts())
    summary, points = simulated(model, learnt, trace, pair, policy)
    return judged(pair, learnt, (result.summary, result.points), (summary, points))


def _calibrated(spark: SparkSession, shipped: ShippedApplication, folder: Path) -> Calibration:
    starts = HostStarts()
    _, batches = _live(spark, shipped, _SCRIPT, folder, starts)
    return calibrated(batches.by_operator, starts.taken_s)


def _live(
    spark: SparkSession, shipped: ShippedApplication, policy: AnyPolicy, folder: Path, recorder: HostStarts | Offered
) -> tuple[LiveResult, Batches]:
    batches = Batches()
    run = LiveRun(
        application=shipped.application(folder),
        pool=pool_of(_CORES, _MEMORY_MB * 2**20, 1, _HOSTS),
        policy=policy,
        policy_name=getattr(policy, "name", type(policy).__name__),
        folder=str(folder),
        interval_s=_INTERVAL_S,
    )
    result = run.run(
        spark,
        [recorder],
        until_drained=True,
        silence_s=_SILENCE_S,
        began=lambda backend: setattr(backend, "told_of_batch", batches.note),
    )
    for name, why in result.failures.items():
        raise SpringtideError(f"{shipped.name}: operator {name!r} has stopped: {why}")
    return result, batches


def simulated(
    model: Application, learnt: Calibration, trace: Trace, pair: Pair, policy: AnyPolicy
) -> tuple[RunSummary, list[Point]]:
    """The same in a simulator that has learnt what things cost."""
    pool = pool_of(_CORES, _MEMORY_MB * 2**20, 1, _HOSTS)
    pool = replace(pool, host=replace(pool.host, start_s=_steps(learnt.host_start_s)))
    settings = SimulatorSettings(
        service=ServiceModel.MICRO_BATCH,
        step_s=_STEP_S,
        interval_s=_INTERVAL_S,
        initial_hosts=1,
        moves=Moves(synchronisation_s=learnt.move_s),
        micro_batch=MicroBatch(
            overhead_s=learnt.fixed_s,
            stage_overhead_s=0.0,
            stages=1,
            task_overhead_s=learnt.task_s,
            shard_overhead_s=learnt.shard_s,
            max_rows=float(pair.max_rows_per_batch),
        ),
    )
    return Simulation(
        trace=trace,
        application=learnt_model(model, learnt),
        pool=pool,
        settings=settings,
        policy=policy,
        policy_name=pair.policy,
    ).run()


def learnt_model(model: Application, learnt: Calibration) -> Application:
    """The application with the service times and selectivities that were measured."""
    operators = tuple(replace(o, service_time_s=max(1e-9, learnt.service_s[o.name])) for o in model.operators)
    edges = tuple(
        Edge(upstream=e.upstream, downstream=e.downstream, selectivity=learnt.selectivity.get(e.upstream, 1.0))
        for e in model.edges
    )
    return replace(model, operators=operators, edges=edges)


def judged(
    pair: Pair, learnt: Calibration, live: tuple[RunSummary, list[Point]], simulated: tuple[RunSummary, list[Point]]
) -> Validated:
    one, other = figures(*live), figures(*simulated)
    errors = Errors(
        replicas=_error(other.mean_replicas, one.mean_replicas),
        backlog=_error(other.mean_backlog_rows, one.mean_backlog_rows),
        latency=_error(other.median_latency_s, one.median_latency_s),
    )
    return Validated(
        pair=pair.name,
        application=pair.application,
        policy=pair.policy,
        rows=live[0].rows.source,
        calibration=learnt,
        live=one,
        simulated=other,
        errors=errors,
        within_bars=errors.replicas <= REPLICAS_BAR and errors.latency <= LATENCY_BAR,
    )


def figures(summary: RunSummary, points: Sequence[Point]) -> Figures:
    return Figures(
        mean_replicas=summary.mean_replicas,
        mean_backlog_rows=fmean(point.backlog_rows for point in points),
        median_latency_s=summary.latency.p50_s,
    )


def _error(found: float, true: float) -> float:
    return abs(found - true) / true if true > 0 else math.inf if found > 0 else 0.0


def _steps(time_s: float) -> float:
    return round(time_s / _STEP_S) * _STEP_S


class Offered:
    """A recorder of the rows that came in each interval."""

    def __init__(self) -> None:
        self._counts: list[float] = []

    def counts(self) -> FloatArray:
        return np.array(self._counts)

    def observation(self, observation: Observation) -> None:
        self._counts.append(observation.offered_rows)

    def decision(self, *_: object) -> None: ...

    def outcome(self, *_: object) -> None: ...


class HostStarts:
    """A recorder of how long hosts took from the moment they were asked for until they ran."""

    def __init__(self) -> None:
        self._asked_s: dict[str, float] = {}
        self.taken_s: list[float] = []

    def observation(self, observation: Observation) -> None:
        for name, host in observation.hosts.items():
            if host.state is HostState.RUNNING and name in self._asked_s:
                # It was not there at the beginning of the interval, and was at its end.
                self.taken_s.append((observation.start_s + observation.end_s) / 2 - self._asked_s.pop(name))

    def decision(self, observation: Observation, _: Decision, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, AddHosts):
                self._asked_s.update(dict.fromkeys(action.hosts, observation.end_s))

    def outcome(self, *_: object) -> None: ...
