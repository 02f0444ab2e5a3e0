"""How policies stand to one another: on each trace, and over all of them.

    cost = core-hours + late cost x share of late rows x core-hours that the rows themselves take
    regret = (cost - the oracle's cost) / the oracle's cost

A policy is dominated by another that uses no more core-hours and has no more late rows, and has less of one of them. The
oracle knows the future: it dominates nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from springtide.comparison.sweep import Case, Outcome, Result, Sweep
from springtide.report.oscillation import WINDOW_S
from springtide.sweeping.attempting import Failure

ORACLE = "oracle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A policy's figures: means over seeds on one trace, or means over the traces of those.

    In figures per day, and in what follows from them, each trace counts the same however long it is. `regret` and
    `core_hours_to_oracle` are absent where the oracle has not run. On `slo_kept_on` of `traces` no more rows were late than
    the SLO allows.
    """

    policy: str
    core_hours: float
    core_hours_per_day: float
    slo_violation_share: float
    latency_p99_s: float
    reconfigurations_per_day: float
    shards_moved_per_day: float
    oscillations_per_day: float
    downtime_s: float
    cost_core_hours: float
    cost_core_hours_per_day: float
    traces: int
    slo_kept_on: int
    regret: float | None = None
    core_hours_to_oracle: float | None = None
    dominated_by: tuple[str, ...] = ()


_MEANS = (
    "core_hours",
    "core_hours_per_day",
    "slo_violation_share",
    "latency_p99_s",
    "reconfigurations_per_day",
    "shards_moved_per_day",
    "oscillations_per_day",
    "downtime_s",
    "cost_core_hours",
    "cost_core_hours_per_day",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStandings:
    """All policies on one trace. What varies with the seed is the mean over seeds."""

    trace: str
    duration_s: float
    rows: float
    peak_cores: float
    gaps_filled: int
    policies: tuple[Standing, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything that the command prints. Policies are ordered by their cost."""

    application: str
    service: str
    slo_latency_s: float
    slo_percentile: float
    cores_per_host: int
    max_hosts: int
    interval_s: float
    step_s: float
    late_cost: float
    oscillation_window_s: float
    traces: tuple[TraceStandings, ...]
    overall: tuple[Standing, ...]
    runs: tuple[Result, ...]
    failures: tuple[Failure[Case], ...]


def compared(sweep: Sweep, outcomes: Sequence[Outcome]) -> Comparison:
    """The comparison that the outcomes make, in whatever order they came."""
    place = {case: number for number, case in enumerate(_in_order(sweep))}
    ordered = sorted(outcomes, key=lambda outcome: place[_case_of(outcome)])
    runs = [o for o in ordered if isinstance(o, Result)]
    traces = tuple(
        trace_standings(load.name, mine) for load in sweep.loads if (mine := [r for r in runs if r.trace == load.name])
    )
    world = sweep.world
    return Comparison(
        application=world.application.name,
        service=world.settings.service.value,
        slo_latency_s=world.application.slo.latency_s,
        slo_percentile=world.application.slo.percentile,
        cores_per_host=world.pool.host.cores,
        max_hosts=world.pool.max_hosts,
        interval_s=world.settings.interval_s,
        step_s=world.settings.step_s,
        late_cost=sweep.late_cost,
        oscillation_window_s=WINDOW_S,
        traces=traces,
        overall=overall(traces),
        runs=tuple(runs),
        failures=tuple(o for o in ordered if isinstance(o, Failure)),
    )


def _in_order(sweep: Sweep) -> list[Case]:
    """Cases as the user named them, whatever order they are run in."""
    return [Case(load.name, policy, seed) for load in sweep.loads for policy in sweep.policies for seed in load.by_seed]


def _case_of(outcome: Outcome) -> Case:
    return outcome.case if isinstance(outcome, Failure) else Case(outcome.trace, outcome.policy, outcome.seed)


def trace_standings(trace: str, runs: Sequence[Result]) -> TraceStandings:
    """The policies that have run on a trace."""
    by_policy: dict[str, list[Result]] = {}
    for run in runs:
        by_policy.setdefault(run.policy, []).append(run)
    standings = [
        Standing(policy=policy, traces=1, slo_kept_on=int(all(r.slo_kept for r in mine)), **_means(mine))
        for policy, mine in by_policy.items()
    ]
    return TraceStandings(
        trace=trace,
        duration_s=fmean(r.duration_s for r in runs),
        rows=fmean(r.rows for r in runs),
        peak_cores=fmean(r.peak_cores for r in runs),
        gaps_filled=max(r.gaps_filled for r in runs),
        policies=judged(_beside_oracle(standings)),
    )


def overall(traces: Sequence[TraceStandings]) -> tuple[Standing, ...]:
    """Every policy's means over the traces it has run on."""
    by_policy: dict[str, list[Standing]] = {}
    for standing in (s for trace in traces for s in trace.policies):
        by_policy.setdefault(standing.policy, []).append(standing)
    return judged(
        [
            Standing(
                policy=policy,
                traces=len(mine),
                slo_kept_on=sum(s.slo_kept_on for s in mine),
                regret=_mean([s.regret for s in mine]),
                core_hours_to_oracle=_mean([s.core_hours_to_oracle for s in mine]),
                **_means(mine),
            )
            for policy, mine in by_policy.items()
        ]
    )


def judged(standings: Sequence[Standing]) -> tuple[Standing, ...]:
    """By cost, and each with those that dominate it, the cheapest first."""
    by_cost = sorted(standings, key=lambda s: (s.cost_core_hours_per_day, s.policy))
    return tuple(
        replace(s, dominated_by=tuple(o.policy for o in by_cost if o.policy != ORACLE and dominates(o, s))) for s in by_cost
    )


def dominates(one: Standing, other: Standing) -> bool:
    """Whether `one` is nowhere worse than `other`, and somewhere better."""
    mine = (one.core_hours_per_day, one.slo_violation_share)
    others = (other.core_hours_per_day, other.slo_violation_share)
    return mine != others and all(a <= b for a, b in zip(mine, others, strict=True))


def _beside_oracle(standings: Sequence[Standing]) -> list[Standing]:
    oracle = next((s for s in standings if s.policy == ORACLE), None)
    if oracle is None:
        return list(standings)
    return [
        replace(
            s,
            regret=(s.cost_core_hours - oracle.cost_core_hours) / oracle.cost_core_hours,
            core_hours_to_oracle=s.core_hours / oracle.core_hours,
        )
        for s in standings
    ]


def _means(figures: Sequence[Result] | Sequence[Standing]) -> dict[str, Any]:
    return {name: fmean(getattr(each, name) for each in figures) for name in _MEANS}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
