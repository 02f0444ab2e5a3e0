"""What is compared: every policy on every trace, in the same world. Pure description, and how one case of it is run.

Nothing here knows where cases run, or in which order: a case depends on nothing but the sweep.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial

from springtide.backends.simulator.settings import SimulatorSettings
from springtide.comparison.preparing import core_s_per_row, first_allocation, peak_cores
from springtide.errors import require
from springtide.model.allocation import Pool
from springtide.model.application import Application
from springtide.model.protocols import AnyPolicy
from springtide.report.oscillation import WINDOW_S, oscillations
from springtide.report.summary import Point, RunSummary
from springtide.simulation import Simulation
from springtide.sweeping.attempting import Failure, attempted
from springtide.workload.traces import Trace

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What traces are fed to. Without `sized_start`, runs begin as the settings say."""

    application: Application
    pool: Pool = field(default_factory=Pool)
    settings: SimulatorSettings = field(default_factory=SimulatorSettings)
    sized_start: bool = True


@dataclass(frozen=True, slots=True, order=True)
class Case:
    """One run, by the names of what it is made of."""

    trace: str
    policy: str
    seed: int

    def __str__(self) -> str:
        return f"{self.policy} on {self.trace}" + (f", seed {self.seed}" if self.seed else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A trace under the name it has in the comparison, which no other has. Chance may give it other rows for each seed."""

    name: str
    by_seed: Mapping[int, Trace]


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """All cases. A late row costs as much as the core time of `late_cost` rows."""

    loads: tuple[Load, ...]
    policies: Mapping[str, AnyPolicy]
    world: World
    late_cost: float = 10.0

    def __post_init__(self) -> None:
        require(bool(self.loads), "there is no trace to compare policies on")
        require(bool(self.policies), "there is no policy to compare")
        require(self.late_cost >= 0, f"the cost of a late row must be 0 or more, not {self.late_cost:g}")
        names = [load.name for load in self.loads]
        twice = next((name for name in names if names.count(name) > 1), None)
        require(twice is None, f"two traces are called {twice!r}")

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """The longest traces first, so that no core is left alone with one at the end."""
        by_length = sorted(self.loads, key=lambda load: -max(trace.duration_s for trace in load.by_seed.values()))
        return tuple(Case(load.name, policy, seed) for load in by_length for seed in load.by_seed for policy in self.policies)

    def trace(self, case: Case) -> Trace:
        return next(load for load in self.loads if load.name == case.trace).by_seed[case.seed]

    def simulation(self, case: Case) -> Simulation:
        trace, world = self.trace(case), self.world
        return Simulation(
            trace=trace,
            application=world.application,
            pool=world.pool,
            settings=world.settings,
            policy=self.policies[case.policy],
            policy_name=case.policy,
            seed=case.seed,
            start=first_allocation(trace, world.application, world.pool) if world.sized_start else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of a case. `cost_core_hours` is what it used, and what its late rows cost."""

    trace: str
    policy: str
    seed: int
    duration_s: float
    rows: float
    peak_cores: float
    gaps_filled: int
    core_hours: float
    core_hours_per_day: float
    slo_violation_share: float
    slo_kept: bool
    latency_p99_s: float
    reconfigurations_per_day: float
    shards_moved_per_day: float
    oscillations_per_day: float
    downtime_s: float
    mean_hosts: float
    max_hosts: int
    cost_core_hours: float
    cost_core_hours_per_day: float
    wall_s: float = field(compare=False)


Outcome = Result | Failure[Case]


def run_case(sweep: Sweep, case: Case) -> Result:
    """Simulate the case."""
    summary, points = sweep.simulation(case).run()
    return _result(sweep, case, summary, points)


def attempt(sweep: Sweep, case: Case) -> Outcome:
    """Simulate the case; a policy that raises spoils its own case only."""
    return attempted(partial(run_case, sweep), case)


def _result(sweep: Sweep, case: Case, summary: RunSummary, points: list[Point]) -> Result:
    trace, application = sweep.trace(case), sweep.world.application
    work_core_hours = trace.rows * core_s_per_row(application) / 3600
    days = summary.duration_s / _DAY_S
    cost_core_hours = summary.core_hours + sweep.late_cost * summary.slo_violation_share * work_core_hours
    return Result(
        trace=case.trace,
        policy=case.policy,
        seed=case.seed,
        duration_s=summary.duration_s,
        rows=trace.rows,
        peak_cores=peak_cores(trace, application),
        gaps_filled=trace.gaps,
        core_hours=summary.core_hours,
        core_hours_per_day=summary.core_hours / days,
        slo_violation_share=summary.slo_violation_share,
        slo_kept=summary.slo_kept,
        latency_p99_s=summary.latency.p99_s,
        reconfigurations_per_day=summary.decisions_with_change / days,
        shards_moved_per_day=summary.reconfigurations.get("shards_moved", 0) / days,
        oscillations_per_day=oscillations(points, WINDOW_S) / days,
        downtime_s=summary.downtime_s,
        mean_hosts=summary.mean_hosts,
        max_hosts=summary.max_hosts,
        cost_core_hours=cost_core_hours,
        cost_core_hours_per_day=cost_core_hours / days,
        wall_s=summary.wall_s,
    )
