"""Policies compared: what a sweep is, what its figures mean, and that it matters neither where nor in which order cases run."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

from factories import application, operator
from springtide.applications.simulated.visits import visits
from springtide.backends.simulator.settings import SimulatorSettings
from springtide.comparison.preparing import (
    core_s_per_row,
    cores_of,
    first_allocation,
    peak_cores,
    scaled_to_load,
    with_peak,
)
from springtide.comparison.standing import Standing, compared, dominates, judged, overall, trace_standings
from springtide.comparison.sweep import Case, Load, Outcome, Result, Sweep, World, attempt, run_case
from springtide.errors import InvalidValue
from springtide.model.allocation import HostType, Pool
from springtide.model.application import Edge, Source
from springtide.plan.registry import make_policy, policies
from springtide.report.oscillation import oscillations
from springtide.report.summary import Point
from springtide.sweeping.attempting import Failure
from springtide.sweeping.in_turn import run_in_turn
from springtide.workload.generators import constant, steps
from springtide.workload.traces import Trace

DAY_S = 86_400.0


def trace(*counts: float, step_s: float = 60.0, name: str = "load") -> Trace:
    return Trace(name=name, step_s=step_s, counts=np.array(counts, dtype=float))


def in_turn(sweep: Sweep, note: Callable[[str], None] = lambda _: None) -> list[Outcome]:
    return run_in_turn(sweep.cases, partial(attempt, sweep), note)


def small_sweep(**fields: Any) -> Sweep:
    loads = (
        Load(name="steps", by_seed={0: steps(levels=(500.0, 3000.0, 500.0), hold_s=300.0)}),
        Load(name="constant", by_seed={0: constant(rate_per_s=2000.0, duration_s=1200.0)}),
    )
    policies = {name: make_policy(name, {}) for name in ("static", "local-thresholds")}
    return Sweep(**{"loads": loads, "policies": policies, "world": World(application=visits()), **fields})


# Oscillations


def hosts(*counts: int, interval_s: float = 60.0) -> list[Point]:
    nothing = {f.name: 0.0 for f in dataclasses.fields(Point)}
    return [
        Point(**{**nothing, "time_s": (i + 1) * interval_s, "hosts": count, "replicas": 1, "changed": False})
        for i, count in enumerate(counts)
    ]


@pytest.mark.parametrize(("counts", "turns"), [
    ((), 0),
    ((3,), 0),
    ((3, 4, 5, 6), 0),  # ever up
    ((3, 4, 3), 1),
    ((3, 4, 3, 4), 2),  # each is compared with the one before
    ((3, 2, 3), 1),  # down and up
    ((3, 5, 4, 3), 1),  # two steps down are one turn
    ((3, 4, 4, 4, 3), 1),
    ((1, *[2] * 10, 1), 1),  # ten minutes later, which is within the window
    ((1, *[2] * 11, 1), 0),  # eleven are not
])  # fmt: skip
def test_oscillations_by_hand(counts, turns):
    assert oscillations(hosts(*counts), window_s=600.0) == turns


# Traces made comparable


def test_the_core_time_of_a_row_is_that_of_all_operators_it_comes_to():
    split = application(
        operator("parse", service_time_s=0.001),
        operator("count", service_time_s=0.002),
        operator("join", service_time_s=0.004),
        edges=(
            Edge(upstream="clicks", downstream="parse"),
            Edge(upstream="orders", downstream="join"),
            Edge(upstream="parse", downstream="count", selectivity=0.5),
            Edge(upstream="count", downstream="join", selectivity=0.25),
        ),
        sources=(Source(name="clicks", share=0.8), Source(name="orders", share=0.2)),
    )
    # Of 10 rows 8 are clicks (8 at parse, 4 at count, 1 at join) and 2 orders (2 at join).
    assert cores_of(split, 10.0) == pytest.approx({"parse": 8 * 0.001, "count": 4 * 0.002, "join": 3 * 0.004})
    assert core_s_per_row(split) == pytest.approx(0.0028)


def test_the_default_application_takes_what_it_says():
    assert core_s_per_row(visits()) == pytest.approx(0.00108)


def test_a_trace_is_scaled_by_its_busiest_minute():
    application_, pool = visits(), Pool(host=HostType(cores=4), max_hosts=10)
    spiky = Trace(name="spiky", step_s=1.0, counts=np.concatenate([np.ones(60), [600.0], np.zeros(59), np.ones(60)]))
    scaled = scaled_to_load(spiky, application_, pool, 0.7)
    assert peak_cores(scaled, application_) == pytest.approx(28.0)
    assert scaled.peak_rate_over(60.0) == pytest.approx(28.0 / 0.00108)
    assert scaled.peak_rate_per_s == pytest.approx(60 * 28.0 / 0.00108)  # a single second's is far above


def test_a_trace_without_rows_cannot_be_scaled():
    with pytest.raises(InvalidValue, match="no rows"):
        scaled_to_load(trace(0.0, 0.0), visits(), Pool(), 0.7)


def test_a_load_of_nothing_is_refused():
    with pytest.raises(InvalidValue, match="above 0"):
        scaled_to_load(trace(1.0, 2.0), visits(), Pool(), 0.0)


def days(count: int, peak_at_s: float, step_s: float = 3600.0) -> Trace:
    counts = np.ones(int(count * DAY_S / step_s))
    counts[int(peak_at_s / step_s)] = 100.0
    return Trace(name="days", step_s=step_s, counts=counts, start="2024-05-01T00:00:00")


def test_a_short_trace_is_taken_whole():
    whole = days(3, 0.0)
    assert with_peak(whole, 7 * DAY_S) is whole


@pytest.mark.parametrize(("peak_day", "starts"), [(0, 1), (5, 1), (6, 1), (8, 3), (19, 14)])
def test_a_long_trace_ends_with_the_day_of_its_peak(peak_day, starts):
    kept = with_peak(days(20, peak_day * DAY_S + 5 * 3600), 7 * DAY_S)
    assert kept.duration_s == 7 * DAY_S
    assert kept.counts.max() == 100.0
    assert kept.start == f"2024-05-{starts:02d}T00:00:00"


def test_less_than_a_day_is_the_window_with_the_peak():
    kept = with_peak(days(2, 29 * 3600.0), 4 * 3600.0)
    assert (kept.start, kept.duration_s) == ("2024-05-02T04:00:00", 4 * 3600.0)


def test_the_last_day_may_be_a_part_of_one():
    whole = days(3, 2.4 * DAY_S).cut(0.0, 2.5 * DAY_S)
    kept = with_peak(whole, 2 * DAY_S)
    assert (kept.start, kept.duration_s) == ("2024-05-02T00:00:00", 1.5 * DAY_S)


def test_a_run_begins_with_what_its_first_minute_needs():
    busy = Trace(name="busy", step_s=30.0, counts=np.array([30.0, 30.0, 9000.0]) * 10_000)
    start = first_allocation(busy, visits(), Pool(max_hosts=10))
    # 10,000 rows/s: parse 3, count 5, join 0.4 x 4 = 1.6, write 1.2; 10.8 cores at 0.7 are 15.4, so 4 hosts of 4.
    assert len(start.hosts) == 4
    assert {name: placed.replicas for name, placed in start.operators.items()} == {
        "parse": 5,
        "count": 8,
        "join": 3,
        "write": 2,
    }
    start.check(visits())


@pytest.mark.parametrize(("rows_per_s", "wanted"), [(0.0, 2), (1e9, 3)])
def test_a_run_begins_within_the_limits_of_the_pool(rows_per_s, wanted):
    start = first_allocation(constant(rate_per_s=rows_per_s, duration_s=10.0), visits(), Pool(min_hosts=2, max_hosts=3))
    assert len(start.hosts) == wanted
    start.check(visits())


# The sweep


def test_a_sweep_is_every_policy_on_every_trace_for_every_seed():
    load = constant(duration_s=60.0)
    sweep = small_sweep(loads=(Load(name="a", by_seed={0: load, 1: load}), Load(name="b", by_seed={0: load, 1: load})))
    assert len(sweep.cases) == len(set(sweep.cases)) == 2 * 2 * 2
    assert Case("b", "local-thresholds", 1) in sweep.cases


def test_the_longest_traces_are_run_first():
    assert [case.trace for case in small_sweep().cases] == ["constant"] * 2 + ["steps"] * 2


@pytest.mark.parametrize(("fields", "why"), [
    ({"loads": ()}, "no trace"),
    ({"policies": {}}, "no policy"),
    ({"late_cost": -1.0}, "-1"),
    ({"loads": (Load(name="a", by_seed={}), Load(name="a", by_seed={}))}, "two traces are called 'a'"),
])  # fmt: skip
def test_a_sweep_that_means_nothing_is_refused(fields, why):
    with pytest.raises(InvalidValue, match=why):
        small_sweep(**fields)


def test_a_sweep_can_be_sent_elsewhere():
    sweep = small_sweep()
    sent = pickle.loads(pickle.dumps(sweep))
    assert sent.cases == sweep.cases
    assert run_case(sent, sweep.cases[0]) == run_case(sweep, sweep.cases[0])


def test_every_policy_can_be_sent_elsewhere():
    every = {name: make_policy(name, {}) for name in policies()}
    assert pickle.loads(pickle.dumps(every)) == every


def test_a_result_says_what_the_run_came_to():
    sweep = small_sweep(late_cost=3.0)
    case = Case("steps", "local-thresholds", 0)
    summary, points = sweep.simulation(case).run()
    result = run_case(sweep, case)
    in_a_day = DAY_S / 900.0
    assert result.duration_s == 900.0
    assert result.core_hours == summary.core_hours
    assert result.core_hours_per_day == pytest.approx(summary.core_hours * in_a_day)
    assert result.slo_violation_share == summary.slo_violation_share > 0
    assert result.latency_p99_s == summary.latency.p99_s
    assert result.reconfigurations_per_day == pytest.approx(summary.decisions_with_change * in_a_day)
    assert result.oscillations_per_day == pytest.approx(oscillations(points) * in_a_day)
    # 500, 3000 and 500 rows/s for 300 s each are 1.2 million rows of 1.08 ms, which are 0.36 core-hours.
    late = 3.0 * summary.slo_violation_share * 0.36
    assert result.cost_core_hours == pytest.approx(summary.core_hours + late)
    assert result.cost_core_hours_per_day == pytest.approx(result.cost_core_hours * in_a_day)
    assert result.peak_cores == pytest.approx(3.24)


def test_without_a_sized_start_runs_begin_as_the_settings_say():
    settings = SimulatorSettings(initial_hosts=2)
    sweep = small_sweep(world=World(application=visits(), settings=settings, sized_start=False))
    assert sweep.simulation(sweep.cases[0]).start is None


@dataclass(frozen=True)
class Broken:
    """A policy with a defect."""

    def start(self) -> None:
        return None

    def decide(self, view: object, memory: None) -> Any:
        raise ZeroDivisionError("a\nb")


def test_a_policy_that_raises_spoils_its_own_case_only():
    sweep = small_sweep(policies={"broken": Broken(), "static": make_policy("static", {})})
    comparison = compared(sweep, in_turn(sweep))
    assert [str(f) for f in comparison.failures] == [
        "broken on steps failed: ZeroDivisionError: a b",
        "broken on constant failed: ZeroDivisionError: a b",
    ]
    assert "Traceback" in comparison.failures[0].traceback
    assert [(run.trace, run.policy) for run in comparison.runs] == [("steps", "static"), ("constant", "static")]
    assert [s.policy for s in comparison.overall] == ["static"]


def test_a_failure_names_its_seed():
    sweep = small_sweep(policies={"broken": Broken()}, loads=(Load(name="a", by_seed={7: constant(duration_s=60.0)}),))
    failure = attempt(sweep, sweep.cases[0])
    assert isinstance(failure, Failure)
    assert failure.case == sweep.cases[0]
    assert str(failure).startswith("broken on a, seed 7 failed:")


def test_a_failure_can_be_sent_back():
    sweep = small_sweep(policies={"broken": Broken()})
    failure = attempt(sweep, sweep.cases[0])
    assert pickle.loads(pickle.dumps(failure)) == failure


# How policies stand


def standing(policy: str, core_hours: float, late: float, cost: float | None = None) -> Standing:
    cost = core_hours if cost is None else cost
    nothing = {f.name: 0.0 for f in dataclasses.fields(Standing) if f.type == "float"}
    figures = {"core_hours": core_hours, "core_hours_per_day": core_hours, "slo_violation_share": late}
    costs = {"cost_core_hours": cost, "cost_core_hours_per_day": cost}
    return Standing(**{**nothing, **figures, **costs, "policy": policy, "traces": 1, "slo_kept_on": 1})


@pytest.mark.parametrize(("one", "other", "better"), [
    ((10.0, 0.1), (10.0, 0.1), False),  # the same
    ((10.0, 0.1), (10.0, 0.2), True),  # as cheap, less late
    ((9.0, 0.1), (10.0, 0.1), True),  # cheaper, as late
    ((9.0, 0.05), (10.0, 0.1), True),
    ((9.0, 0.2), (10.0, 0.1), False),  # cheaper, but later
    ((11.0, 0.05), (10.0, 0.1), False),
])  # fmt: skip
def test_dominance_by_hand(one, other, better):
    assert dominates(standing("one", *one), standing("other", *other)) is better


def test_the_oracle_dominates_nobody_and_may_be_dominated():
    found = judged([
        standing("oracle", 5.0, 0.0),
        standing("a", 10.0, 0.1),
        standing("b", 12.0, 0.05),
        standing("c", 12.0, 0.1),
        standing("d", 13.0, 0.2),
    ])  # fmt: skip
    by = {s.policy: s.dominated_by for s in found}
    assert by == {"oracle": (), "a": (), "b": (), "c": ("a", "b"), "d": ("a", "b", "c")}
    worse = judged([standing("oracle", 5.0, 0.3), standing("a", 5.0, 0.1)])
    assert {s.policy: s.dominated_by for s in worse} == {"oracle": ("a",), "a": ()}


def test_policies_are_ordered_by_cost():
    found = judged([standing("dear", 1.0, 0.0, cost=9.0), standing("b", 2.0, 0.0, cost=3.0), standing("a", 2.0, 0.0, cost=3.0)])
    assert [s.policy for s in found] == ["a", "b", "dear"]


def result(trace: str, policy: str, seed: int = 0, **figures: Any) -> Result:
    nothing = {f.name: 0.0 for f in dataclasses.fields(Result)}
    values = {"trace": trace, "policy": policy, "seed": seed, "slo_kept": True, "duration_s": DAY_S, "gaps_filled": 0}
    figures = {"core_hours_per_day": figures.get("core_hours", 0.0), **figures}
    figures = {"cost_core_hours_per_day": figures.get("cost_core_hours", 0.0), **figures}
    return Result(**{**nothing, **values, **figures})


def test_regret_by_hand():
    found = trace_standings("t", [
        result("t", "a", core_hours=30.0, cost_core_hours=33.0),
        result("t", "oracle", core_hours=20.0, cost_core_hours=22.0),
    ])  # fmt: skip
    by = {s.policy: s for s in found.policies}
    assert by["a"].regret == pytest.approx((33 - 22) / 22)
    assert by["a"].core_hours_to_oracle == pytest.approx(1.5)
    assert by["oracle"].regret == 0.0


def test_without_an_oracle_there_is_no_regret():
    (found,) = trace_standings("t", [result("t", "a", core_hours=30.0, cost_core_hours=33.0)]).policies
    assert found.regret is None
    assert found.core_hours_to_oracle is None


def test_figures_of_a_trace_are_means_over_seeds():
    runs = [
        result("t", "a", 0, core_hours=10.0, slo_violation_share=0.1, slo_kept=True),
        result("t", "a", 1, core_hours=20.0, slo_violation_share=0.3, slo_kept=False),
    ]
    (found,) = trace_standings("t", runs).policies
    assert (found.core_hours, found.slo_violation_share) == (15.0, pytest.approx(0.2))
    assert (found.traces, found.slo_kept_on) == (1, 0)  # it is kept if it is kept with every seed


def test_each_trace_counts_the_same_however_long():
    day = trace_standings("day", [
        result("day", "a", core_hours=24.0, cost_core_hours=24.0, slo_violation_share=0.0),
        result("day", "oracle", core_hours=12.0, cost_core_hours=12.0),
    ])  # fmt: skip
    hour = trace_standings("hour", [
        result("hour", "a", core_hours=4.0, core_hours_per_day=96.0, cost_core_hours=4.0, cost_core_hours_per_day=96.0,
               duration_s=3600.0, slo_violation_share=0.2, slo_kept=False),
        result("hour", "oracle", core_hours=1.0, core_hours_per_day=24.0, cost_core_hours=1.0, duration_s=3600.0),
    ])  # fmt: skip
    by = {s.policy: s for s in overall([day, hour])}
    assert by["a"].core_hours_per_day == pytest.approx(60.0)
    assert by["a"].core_hours == pytest.approx(14.0)
    assert by["a"].slo_violation_share == pytest.approx(0.1)
    assert by["a"].regret == pytest.approx((1.0 + 3.0) / 2)
    assert by["a"].core_hours_to_oracle == pytest.approx((2.0 + 4.0) / 2)
    assert (by["a"].traces, by["a"].slo_kept_on) == (2, 1)


def test_the_order_in_which_cases_end_does_not_matter():
    sweep = small_sweep()
    outcomes = in_turn(sweep)
    comparison = compared(sweep, outcomes)
    assert comparison == compared(sweep, outcomes[::-1])
    assert [t.trace for t in comparison.traces] == ["steps", "constant"]  # as the user named them
    assert [(r.trace, r.policy) for r in comparison.runs][:2] == [("steps", "static"), ("steps", "local-thresholds")]


def test_every_case_is_noted():
    noted: list[str] = []
    in_turn(small_sweep(), noted.append)
    assert sorted(noted) == [
        "local-thresholds on constant", "local-thresholds on steps", "static on constant", "static on steps",
    ]  # fmt: skip


@pytest.mark.spark
def test_on_spark_it_is_the_same(spark):
    from springtide.sweeping.on_spark import run_on_spark  # noqa: PLC0415 - pyspark takes a second to import

    sweep = small_sweep()
    noted: list[str] = []
    on_spark = run_on_spark(sweep.cases, partial(attempt, sweep), spark, noted.append)
    assert compared(sweep, on_spark) == compared(sweep, in_turn(sweep))
    assert len(noted) == len(sweep.cases)
