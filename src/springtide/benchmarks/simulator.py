"""How fast the simulator is: two cases with a bar each, and how the cost grows with steps and with shards.

Every case runs in a process of its own, pinned to one core, after the kernel has been compiled: its peak memory is its
own, and its time is that of one core. Growth is given as time per step (or shard) relative to the smallest case of the
same run, so 1.0 throughout means linear.
"""

from __future__ import annotations

import itertools
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec
from rich.table import Table

from springtide.backends.simulator.settings import SimulatorSettings
from springtide.benchmarks.machine import machine
from springtide.model.allocation import HostType, Pool
from springtide.model.application import Application, Edge, KeyDistribution, Operator
from springtide.plan.registry import make_policy
from springtide.simulation import Simulation, compile_simulator
from springtide.workload.generators import day_cycle

DAY_BAR_S = 5.0
HOUR_BAR_S = 60.0
HOUR_BAR_BYTES = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Chains of `depth` operators, `operators` in all, on hosts of eight cores that are 60 % busy at the peak.

    With one replica per operator where it takes 1.4 cores at the peak, an operator is overloaded for hours.
    """

    name: str
    operators: int
    shards: int
    hosts: int
    steps: int
    depth: int
    policy: str
    interval_s: float = 30.0
    replicas: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    case: Case
    wall_s: float
    cpu_s: float
    peak_memory_bytes: int
    rows_processed: float
    lane_steps_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Time per step, or per shard, relative to the smallest case: 1.0 is linear."""

    by: str
    sizes: list[int]
    cpu_s: list[float]
    relative_cost: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    machine: str
    python: str
    compile_s: float
    results: list[Result]
    growth: list[Growth]
    bars: dict[str, float]
    within_bars: bool


def measure(*, quick: bool = False, say: Callable[[str], None] = print) -> Report:
    say("Compiling the kernel, or loading it from an earlier run")
    compile_s = _compile()
    results = [_timed(case, say) for case in (_day("static"), _day("local-thresholds"), _overloaded_day())]
    if not quick:
        results.append(_timed(_hour(), say))
    growth = [
        _growth("steps", [_steps_case(n) for n in (40_000, 80_000, 160_000, 320_000)], lambda c: c.steps, say),
        _growth("shards", [_shards_case(n) for n in (64, 128, 256, 512)], lambda c: c.shards, say),
    ]
    day = max(r.wall_s for r in results if r.case.name.startswith("day"))
    hours = [r for r in results if r.case.name.startswith("hour")]
    within = day <= DAY_BAR_S and all(r.wall_s <= HOUR_BAR_S and r.peak_memory_bytes <= HOUR_BAR_BYTES for r in hours)
    return Report(
        machine=machine(),
        python=platform.python_version(),
        compile_s=compile_s,
        results=results,
        growth=growth,
        bars={"day_wall_s": DAY_BAR_S, "hour_wall_s": HOUR_BAR_S, "hour_peak_memory_bytes": HOUR_BAR_BYTES},
        within_bars=within,
    )


def _day(policy: str) -> Case:
    name = f"day at 1 s steps, 35 operators, 10 hosts, {policy}"
    return Case(name=name, operators=35, shards=4, hosts=10, steps=86_400, depth=1, policy=policy, replicas=2)


def _overloaded_day() -> Case:
    return replace(_day("static"), name="day at 1 s steps, 35 operators, 10 hosts, static, overloaded", replicas=1)


def _hour() -> Case:
    name = "hour of 1,000 operators x 64 shards, 100 hosts, static"
    return Case(name=name, operators=1000, shards=64, hosts=100, steps=3600, depth=10, policy="static")


def _steps_case(steps: int) -> Case:
    return replace(_day("static"), name=f"{steps} steps", steps=steps, interval_s=60.0)


def _shards_case(shards: int) -> Case:
    return replace(_hour(), name=f"{shards} shards", operators=100, shards=shards, hosts=10, steps=1200, interval_s=300.0)


def run_case(case: Case) -> Result:
    """Simulate one case in this process."""
    compile_simulator()
    names = [[f"o{chain}-{j}" for j in range(case.depth)] for chain in range(case.operators // case.depth)]
    keys = KeyDistribution(keys=10_000, zipf=0.5)
    cores = 8
    trace = day_cycle(0, mean_per_s=100.0, days=case.steps / 86_400, step_s=1.0)
    service_s = 0.6 * case.hosts * cores / (case.operators * trace.peak_rate_per_s)
    application = Application(
        name=case.name,
        operators=tuple(
            Operator(name=n, service_time_s=service_s, shards=case.shards, keys=keys) for chain in names for n in chain
        ),
        edges=tuple(Edge(upstream=a, downstream=b) for chain in names for a, b in itertools.pairwise(chain)),
    )
    simulation = Simulation(
        trace=trace,
        application=application,
        pool=Pool(host=HostType(cores=cores), min_hosts=1, max_hosts=case.hosts),
        settings=SimulatorSettings(interval_s=case.interval_s, initial_hosts=case.hosts, initial_replicas=case.replicas),
        policy=make_policy(case.policy, {}),
        policy_name=case.policy,
    )
    cpu_s = time.process_time()
    summary, _ = simulation.run()
    cpu_s = time.process_time() - cpu_s
    return Result(
        case=case,
        wall_s=summary.wall_s,
        cpu_s=cpu_s,
        peak_memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        rows_processed=summary.rows.processed,
        lane_steps_per_s=case.operators * case.shards * case.steps / cpu_s,
    )


def _compile() -> float:
    began_s = time.perf_counter()
    _in_own_process(_steps_case(100))
    return time.perf_counter() - began_s


def _timed(case: Case, say: Callable[[str], None]) -> Result:
    say(f"Measuring: {case.name}")
    return _in_own_process(case)


def _growth(by: str, cases: list[Case], size: Callable[[Case], int], say: Callable[[str], None]) -> Growth:
    # Each case is measured twice and the faster run counts: this is about the program, not about the neighbours.
    cpu_s = [min(_timed(case, say).cpu_s, _in_own_process(case).cpu_s) for case in cases]
    sizes = [size(case) for case in cases]
    cost = [seconds / n for seconds, n in zip(cpu_s, sizes, strict=True)]
    return Growth(by=by, sizes=sizes, cpu_s=cpu_s, relative_cost=[c / cost[0] for c in cost])


def _in_own_process(case: Case) -> Result:
    command = [sys.executable, "-m", "springtide.benchmarks.simulator"]
    done = subprocess.run(command, input=msgspec.json.encode(case), stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=Result)


def table(report: Report) -> Table:
    found = Table(title=f"Simulator on one core of {report.machine}")
    for column in ("case", "wall time", "peak memory", "bar"):
        found.add_column(column, justify="left" if column == "case" else "right")
    for r in report.results:
        bar = f"{HOUR_BAR_S:.0f} s, {HOUR_BAR_BYTES / 1e9:.0f} GB" if r.case.name.startswith("hour") else f"{DAY_BAR_S:.0f} s"
        found.add_row(r.case.name, f"{r.wall_s:.2f} s", f"{r.peak_memory_bytes / 1e6:.0f} MB", bar)
    for g in report.growth:
        costs = ", ".join(f"{size}: {cost:.2f}" for size, cost in zip(g.sizes, g.relative_cost, strict=True))
        found.add_row(f"cost per {g.by[:-1]}, relative (1.00 is linear): {costs}", "", "", "")
    found.add_row("compiling the kernel, or loading it", f"{report.compile_s:.1f} s", "", "")
    return found


if __name__ == "__main__":
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    wanted = msgspec.json.decode(sys.stdin.buffer.read(), type=Case)
    sys.stdout.buffer.write(msgspec.json.encode(run_case(wanted)))
