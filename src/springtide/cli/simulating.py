"""What `springtide simulate` does: load traces, run policies on them."""

from __future__ import annotations

import dataclasses
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from springtide.applications.simulated.pipeline import pipeline
from springtide.backends.simulator.compiling import is_compiled
from springtide.backends.simulator.settings import SimulatorSettings
from springtide.cli.options import guarded, parameters_for
from springtide.cli.results import Output, check_plot_path, draw, show
from springtide.config import ApplicationFile, build, read_application
from springtide.errors import SpringtideError
from springtide.forecast.running.choosing import Models
from springtide.journal.writing import JournalWriter
from springtide.model.allocation import Pool
from springtide.model.observation import Observation
from springtide.model.protocols import Recorder
from springtide.plan.registry import make_policy
from springtide.report.summary import Point, RunSummary
from springtide.report.units import count
from springtide.simulation import Simulation, compile_simulator
from springtide.workload.loading import load
from springtide.workload.traces import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the user asked to be run."""

    traces: list[str]
    policies: list[str]
    parameters: list[str]
    guards: list[str]
    application: Path | None
    interval_s: float | None
    step_s: float | None
    seed: int
    scale: float
    peak_rows_per_s: float | None
    start_s: float
    end_s: float | None
    time_column: str | None
    count_column: str | None
    rate_column: str | None
    models: Models | None


def simulate(wishes: Wishes, output: Output) -> None:
    if output.plot is not None:
        check_plot_path(output.plot)
    described = read_application(wishes.application) if wishes.application else None
    simulations = [
        _simulation(trace, described, policy, wishes)
        for trace in [_trace(spec, wishes) for spec in wishes.traces]
        for policy in wishes.policies
    ]
    if output.journal is not None and len(simulations) > 1:
        raise SpringtideError("--journal keeps one run: give one trace and one policy with it")
    if described is None:
        _say_default(simulations[0])
    results = run_all(simulations, output.journal)
    if output.plot is not None:
        draw(results, output.plot)
    show([summary for summary, _ in results], output.as_json)


def _trace(spec: str, wishes: Wishes) -> Trace:
    trace = load(
        spec,
        seed=wishes.seed,
        time_column=wishes.time_column,
        count_column=wishes.count_column,
        rate_column=wishes.rate_column,
    )
    if wishes.start_s > 0 or wishes.end_s is not None:
        trace = trace.cut(wishes.start_s, trace.duration_s if wishes.end_s is None else wishes.end_s)
    if wishes.scale != 1.0:
        trace = trace.scaled(wishes.scale)
    return trace if wishes.peak_rows_per_s is None else trace.scaled_to_peak(wishes.peak_rows_per_s)


def _simulation(trace: Trace, described: ApplicationFile | None, policy_name: str, wishes: Wishes) -> Simulation:
    policy = make_policy(policy_name, parameters_for(policy_name, wishes.policies, wishes.parameters))
    if described is None:
        application, pool, settings = pipeline(_busiest_minute_per_s(trace)), Pool(), SimulatorSettings()
    else:
        application, pool = described.application, described.pool
        settings = build(SimulatorSettings, described.simulator, f"{wishes.application}: [simulator]")
    settings = dataclasses.replace(
        settings,
        interval_s=settings.interval_s if wishes.interval_s is None else wishes.interval_s,
        step_s=settings.step_s if wishes.step_s is None else wishes.step_s,
    )
    return Simulation(
        trace=trace,
        application=application,
        pool=pool,
        settings=settings,
        policy=guarded(policy, wishes.guards),
        policy_name=policy_name,
        seed=wishes.seed,
        models=wishes.models,
    )


def _busiest_minute_per_s(trace: Trace) -> float:
    return trace.peak_rate_over(60.0)


def _say_default(simulation: Simulation) -> None:

    typer.echo(
        "No --application given: using a pipeline of three operators that needs 8 cores in the trace's busiest minute"
        f" ({count(_busiest_minute_per_s(simulation.trace))} rows/s).",
        err=True,
    )


def run_all(simulations: list[Simulation], journal: Path | None = None) -> list[tuple[RunSummary, list[Point]]]:
    """Run one simulation after the other, with a progress bar."""

    compile_once()
    results = []
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        for simulation in simulations:
            with ExitStack() as stack:
                recorders: list[Recorder] = [_Bar(progress, simulation)]
                writer = None
                if journal is not None:
                    writer = stack.enter_context(JournalWriter(journal, simulation.record(datetime.now(UTC))))
                    recorders.append(writer)
                summary, points = simulation.run(recorders)
                if writer is not None:
                    writer.end(summary.duration_s, dataclasses.asdict(summary))
            results.append((summary, points))
    return results


def compile_once() -> None:
    """Compile the simulator if no earlier run has, and say so."""
    if not is_compiled():
        typer.echo("Compiling the simulator: this happens once and takes 15 to 25 s.", err=True)
        compile_simulator()


class _Bar:
    """A recorder that moves a progress bar along the simulated time."""

    def __init__(self, progress: Progress, simulation: Simulation) -> None:
        self._progress = progress
        self._task = progress.add_task(
            f"{simulation.policy_name} on {simulation.trace.name}", total=simulation.trace.duration_s
        )

    def observation(self, observation: Observation) -> None:
        self._progress.update(self._task, completed=observation.end_s)

    def decision(self, *_: object) -> None:
        pass

    def outcome(self, *_: object) -> None:
        pass
