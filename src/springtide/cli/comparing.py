"""What `springtide compare` does: load traces and make them comparable, run every policy on each, say how they stand."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer
from rich.console import Console

from springtide.applications.simulated.visits import visits
from springtide.backends.simulator.calibration import settings_for
from springtide.backends.simulator.settings import ServiceModel, SimulatorSettings
from springtide.cli.options import guarded, parameters_for, parse_duration_s
from springtide.cli.progress import counting
from springtide.cli.results import check_plot_path
from springtide.cli.simulating import compile_once
from springtide.comparison.preparing import scaled_to_load, with_peak
from springtide.comparison.standing import Comparison, compared
from springtide.comparison.sweep import Load, Outcome, Sweep, World, attempt
from springtide.comparison.tables import explanation, overall_table, trace_tables
from springtide.config import build, read_application
from springtide.errors import SpringtideError
from springtide.model.protocols import AnyPolicy
from springtide.plan.registry import make_policy, policies
from springtide.sweeping.in_turn import run_in_turn
from springtide.workload.loading import load
from springtide.workload.traces import Trace

if TYPE_CHECKING:
    from springtide.workload.recordings import Recording

FAILED = 1
# In batches, fixed costs take a part of the cores, and all wait for the busiest: hosts for the peak have to keep the objective.
PEAK_LOAD = {ServiceModel.TUPLE: 0.7, ServiceModel.MICRO_BATCH: 0.5}

# A row passes four operators one after the other, and waits for a batch of each of them.
_LATENCY_S = {ServiceModel.TUPLE: 5.0, ServiceModel.MICRO_BATCH: 20.0}
_ALL = "all"
_DATA = "data"
_PROVISIONED = "static"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the user asked to be compared."""

    traces: list[str]
    policies: str
    parameters: list[str]
    guards: list[str]
    application: Path | None
    seeds: list[int]
    longest: str
    peak_load: float | None
    peak_rows_per_s: float | None
    scale: float | None
    as_they_are: bool
    late_cost: float
    interval_s: float | None
    step_s: float | None
    service: ServiceModel
    workers: int | None


def compare(wishes: Wishes, *, as_json: bool, plot: Path | None) -> None:
    """Everything that can be refused is refused before anything is run."""
    if plot is not None:
        check_plot_path(plot)
    sweep = _sweep(wishes)
    comparison = compared(sweep, _run(sweep, wishes.workers))
    if plot is not None and comparison.runs:
        from springtide.comparison.plot import plot_comparison  # matplotlib takes a second to import

        plot_comparison(comparison, plot)
    _show(comparison, as_json)
    for failure in comparison.failures:
        typer.echo(f"springtide: {failure}", err=True)
    if comparison.failures:
        raise typer.Exit(FAILED)


def _sweep(wishes: Wishes) -> Sweep:
    _check(wishes)
    world = _world(wishes)
    return Sweep(
        loads=_loads(wishes, world),
        policies=_policies(wishes, world),
        world=world,
        late_cost=wishes.late_cost,
    )


def _check(wishes: Wishes) -> None:
    ways = {
        "--peak-load": wishes.peak_load is not None,
        "--peak": wishes.peak_rows_per_s is not None,
        "--scale": wishes.scale is not None,
        "--no-scale": wishes.as_they_are,
    }
    given = [option for option, is_given in ways.items() if is_given]
    if len(given) > 1:
        raise SpringtideError(f"{' and '.join(given)}: each of them says how to scale a trace; give one")
    if wishes.workers is not None and wishes.workers < 1:
        raise SpringtideError(f"--workers must be at least 1, not {wishes.workers}")
    if len(set(wishes.seeds)) < len(wishes.seeds):
        raise SpringtideError(f"--seed: a seed is given twice ({', '.join(map(str, wishes.seeds))})")


def _world(wishes: Wishes) -> World:
    if wishes.application is None:
        world = World(application=visits(_LATENCY_S[wishes.service]), settings=settings_for(wishes.service))
    else:
        described = read_application(wishes.application)
        settings = build(SimulatorSettings, described.simulator, f"{wishes.application}: [simulator]")
        if "service" not in described.simulator:
            usual = settings_for(wishes.service)
            costs = settings.micro_batch if "micro_batch" in described.simulator else usual.micro_batch
            settings = dataclasses.replace(settings, service=usual.service, micro_batch=costs)
        world = World(
            application=described.application,
            pool=described.pool,
            settings=settings,
            sized_start=not {"initial_hosts", "initial_replicas"} & described.simulator.keys(),
        )
    settings = dataclasses.replace(
        world.settings,
        interval_s=world.settings.interval_s if wishes.interval_s is None else wishes.interval_s,
        step_s=world.settings.step_s if wishes.step_s is None else wishes.step_s,
    )
    settings.check(world.pool)
    return dataclasses.replace(world, settings=settings)


def _policies(wishes: Wishes, world: World) -> dict[str, AnyPolicy]:
    names = list(policies()) if wishes.policies == _ALL else [name.strip() for name in wishes.policies.split(",")]
    if not all(names):
        raise SpringtideError(f"--policies {wishes.policies!r}: write names with commas between them, or {_ALL}")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SpringtideError(f"--policies {wishes.policies}: {twice} is given twice")
    return {name: guarded(_policy(name, names, wishes, world), wishes.guards) for name in names}


def _policy(name: str, names: list[str], wishes: Wishes, world: World) -> AnyPolicy:
    parameters: dict[str, object] = dict(parameters_for(name, names, wishes.parameters))
    if name == _PROVISIONED and not parameters:
        # It keeps what it is given; compared with elastic ones, that is hosts for the peak.
        parameters = {"hosts": world.pool.max_hosts, "replicas": _provisioned_replicas(world)}
    return make_policy(name, parameters)


def _provisioned_replicas(world: World) -> int:
    """One for every core; in batches, where each costs something, twice an operator's even part of the cores."""
    cores = world.pool.max_hosts * world.pool.host.cores
    if world.settings.service is ServiceModel.TUPLE:
        return cores
    return min(cores, math.ceil(2 * cores / len(world.application.operators)))


def _loads(wishes: Wishes, world: World) -> tuple[Load, ...]:
    longest_s = parse_duration_s(wishes.longest, "--longest")
    found: dict[str, Load] = {}
    readers: dict[str, Callable[[int], Trace]] = {}
    for spec in wishes.traces:
        for written, read in _readers(spec).items():
            if written in readers:
                raise SpringtideError(f"{written}: the trace is given twice")
            readers[written] = read
    for written, read in readers.items():
        by_seed = {seed: _scaled(with_peak(read(seed), longest_s), wishes, world) for seed in wishes.seeds}
        own_name = by_seed[wishes.seeds[0]].name
        name = written if own_name in found else own_name
        found[name] = Load(name=name, by_seed=by_seed)
    return tuple(found.values())


def _readers(spec: str) -> dict[str, Callable[[int], Trace]]:
    """How each trace that `spec` stands for is read, by what a user would write for it alone."""
    is_folder = Path(spec).is_dir()
    if not is_folder and spec != _DATA and not spec.startswith(f"{_DATA}:"):
        return {spec: lambda seed: load(spec, seed=seed)}
    # Arrow takes a quarter of a second to import, which a generator does not need.
    from springtide.workload.recordings import data_folder, recording_in, recordings_in

    folder = Path(spec) if is_folder else data_folder()
    one = not is_folder and spec != _DATA
    chosen = [recording_in(folder, spec.removeprefix(f"{_DATA}:"))] if one else recordings_in(folder)
    place = spec.rstrip("/") if is_folder else _DATA
    return {f"{place}:{recording.name}": partial(_read, recording, folder) for recording in chosen}


def _read(recording: Recording, folder: Path, seed: int) -> Trace:  # noqa: ARG001 - what was recorded leaves nothing to chance
    return recording.read(folder)


def _scaled(trace: Trace, wishes: Wishes, world: World) -> Trace:
    if wishes.as_they_are:
        return trace
    if wishes.scale is not None:
        return trace.scaled(wishes.scale)
    if wishes.peak_rows_per_s is not None:
        return trace.scaled_to_peak(wishes.peak_rows_per_s)
    load_at_peak = PEAK_LOAD[world.settings.service] if wishes.peak_load is None else wishes.peak_load
    return scaled_to_load(trace, world.application, world.pool, load_at_peak)


def _run(sweep: Sweep, workers: int | None) -> list[Outcome]:
    compile_once()
    typer.echo(f"Runs: {len(sweep.cases)} ({len(sweep.policies)} x policy, {len(sweep.loads)} x trace)", err=True)
    with counting("Comparing", len(sweep.cases)) as note:
        if workers == 1:
            return run_in_turn(sweep.cases, partial(attempt, sweep), note)
        from springtide.backends.spark.cluster.local import local_session
        from springtide.sweeping.on_spark import run_on_spark

        typer.echo(f"Starting Spark on {workers or 'all'} cores of this machine ...", err=True)
        with local_session("springtide-compare", workers, without_java=", or use --no-spark") as spark:
            return run_on_spark(sweep.cases, partial(attempt, sweep), spark, note)


def _show(comparison: Comparison, as_json: bool) -> None:
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(comparison), indent=2).decode())
        return
    console = Console()
    for table in trace_tables(comparison):
        console.print(table)
    if len(comparison.traces) > 1:
        console.print(overall_table(comparison))
    console.print(explanation(comparison), style="dim", highlight=False)
