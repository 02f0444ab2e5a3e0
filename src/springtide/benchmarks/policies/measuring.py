"""How long one decision of every policy takes, and how that grows with hosts and with shards.

The size is that of Elasticutor's evaluation (Wang et al. 2019, section 5: 32 nodes of 8 cores, 12 operators), whose scheduler
took 5.7 ms on average (table 3). Every policy that is registered is measured, with its defaults; each in a process of its own,
pinned to one core. Growth is given as time per host (or shard) relative to the smallest case of the same run, so 1.0 throughout
means linear.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table

from springtide.benchmarks.machine import machine
from springtide.benchmarks.policies.running import Case, Result
from springtide.benchmarks.policies.world import Drift, Size
from springtide.errors import SpringtideError, nearest
from springtide.plan.registry import policies

BAR_MS = 5.0
LARGE_BAR_MS = 100.0
HOLDING_BAR_MS = 50.0
FULL = Drift(busy=0.95)  # of all cores: what Elasticutor's model keeps busy
STEADY = Drift(busy=0.5, step=0.0, jump_chance=0.0, shuffle_chance=0.0)
SETTLED = 12  # decisions, after which a policy has found what suits a load that does not change
EXECUTORS = {"executors": "32"}  # per operator, as in the paper
HOSTS = (8, 32, 128)
SHARDS = (256, 1024, 4096)
NORMAL = Size(hosts=32)
LARGE = Size(hosts=1000, replicas=1000, shards=8000)
MANY_OPERATORS = Size(hosts=50, operators=400, replicas=1, shards=64, cores=4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Mean time of a decision at each size, and per host or shard relative to the smallest: 1.0 is linear."""

    policy: str
    by: str
    sizes: list[int]
    mean_ms: list[float]
    relative_cost: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """`load` is the machine's mean number of running processes before the run: above 0, others were at work too."""

    machine: str
    python: str
    load: float
    quick: bool
    results: list[Result]
    growth: list[Growth]
    bars: dict[str, float]
    within_bars: bool


def measure(names: Sequence[str] = (), *, quick: bool = False, say: Callable[[str], None] = print) -> Report:
    """The policies of these names, or all that are registered."""
    for name in names:
        if name not in policies():
            raise SpringtideError(f"there is no policy {name!r}; {nearest(name, policies())}")
    load = os.getloadavg()[0]
    results: list[Result] = []
    growth: list[Growth] = []
    for name in names or policies():
        say(f"Measuring: {name}")
        cases = _cases(name, quick=quick)
        by_hosts, by_shards = ([], []) if quick else (_host_cases(name), _shard_cases(name))
        found = _in_own_process([*cases, *by_hosts, *by_shards])
        results += found[: len(cases)]
        if not quick:
            small, large = found[len(cases) : len(cases) + len(by_hosts)], found[len(cases) + len(by_hosts) :]
            growth += [_growth("hosts", HOSTS, small), _growth("shards", SHARDS, large)]
    return Report(
        machine=machine(),
        python=platform.python_version(),
        load=load,
        quick=quick,
        results=results,
        growth=growth,
        bars={"p95_ms": BAR_MS, "large_p95_ms": LARGE_BAR_MS, "holding_p95_ms": HOLDING_BAR_MS},
        within_bars=all(result.met is not False for result in results),
    )


def _cases(name: str, *, quick: bool) -> list[Case]:
    """What has a bar: every policy at the size of the paper, and with nothing to do for 400 operators.

    Elasticutor's also with all hosts in use, and with many more of them.
    """
    decisions = 50 if quick else 200
    found = [Case(name=name, policy=name, size=NORMAL, decisions=decisions, bar_ms=BAR_MS)]
    if not quick:
        holding = Case(name=f"{name}, holding", policy=name, size=MANY_OPERATORS, decisions=5, bar_ms=HOLDING_BAR_MS)
        found.append(replace(holding, drift=STEADY, settling=SETTLED))
    if name == "elastic-executors" and not quick:
        full = Case(name=f"{name}, full", policy=name, size=NORMAL, decisions=decisions, drift=FULL, bar_ms=BAR_MS)
        found += [
            full,
            replace(full, name=f"{name}, 32 executors", parameters=EXECUTORS),
            replace(full, name=f"{name}, 1,000 hosts", size=LARGE, decisions=50, bar_ms=LARGE_BAR_MS),
        ]
    return found


def _host_cases(name: str) -> list[Case]:
    sizes = [Size(hosts=hosts, replicas=hosts) for hosts in HOSTS]
    return [Case(name=f"{size.hosts} hosts", policy=name, size=size, decisions=50) for size in sizes]


def _shard_cases(name: str) -> list[Case]:
    sizes = [Size(hosts=32, shards=shards) for shards in SHARDS]
    return [Case(name=f"{size.shards} shards", policy=name, size=size, decisions=50) for size in sizes]


def _growth(by: str, sizes: Sequence[int], results: Sequence[Result]) -> Growth:
    cost = [result.mean_ms / size for result, size in zip(results, sizes, strict=True)]
    return Growth(
        policy=results[0].case.policy,
        by=by,
        sizes=list(sizes),
        mean_ms=[result.mean_ms for result in results],
        relative_cost=[c / cost[0] for c in cost],
    )


def _in_own_process(cases: Sequence[Case]) -> list[Result]:
    command = [sys.executable, "-m", "springtide.benchmarks.policies.running"]
    done = subprocess.run(command, input=msgspec.json.encode(list(cases)), stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=list[Result])


def table(report: Report) -> Group:
    """One row for each case, and the growth of each policy below."""
    size = f"{NORMAL.hosts} hosts x {NORMAL.cores} cores, {NORMAL.operators} operators"
    each = f"{NORMAL.replicas} replicas and {NORMAL.shards} shards each"
    times = Table(title=f"One decision: {size} with {each}, on one core of {report.machine}", box=SIMPLE_HEAD, pad_edge=False)
    for column in ("policy", "median", "95 %", "bar, ms", "changed", "hosts"):
        times.add_column(column, justify="left" if column == "policy" else "right", no_wrap=True)
    for r in report.results:
        bar = "" if r.case.bar_ms is None else f"{r.case.bar_ms:g} {'met' if r.met else 'missed'}"
        times.add_row(r.case.name, f"{r.median_ms:.2f}", f"{r.p95_ms:.2f}", bar, f"{r.changing:.0%}", f"{r.hosts:,.0f}")
    return Group(times, *([_growth_table(report.growth)] if report.growth else ()))


def _growth_table(growth: Sequence[Growth]) -> Table:
    found = Table(title="Time per host, and per shard, relative to the smallest: 1.00 is linear", box=SIMPLE_HEAD)
    for column in ("policy", "by", "relative time"):
        found.add_column(column)
    for g in growth:
        costs = ", ".join(f"{size:,}: {cost:.2f}" for size, cost in zip(g.sizes, g.relative_cost, strict=True))
        found.add_row(g.policy, g.by, costs)
    return found
