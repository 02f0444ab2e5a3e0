"""DS2 as in the Flink autoscaler: its formulas with the numbers of Flink's own tests, and stories in intervals of 20 s."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from observations import INTERVAL_S, POOL, view

from factories import allocation, application, operator
from springtide.errors import InvalidValue
from springtide.model.allocation import Allocation, Pool
from springtide.model.application import Application, Edge, Grouping, Operator
from springtide.model.decision import Decision
from springtide.model.observation import HostState
from springtide.model.protocols import View
from springtide.plan.policies.ds2 import Ds2, Ds2Memory, ScaledUp
from springtide.plan.true_rates.capacity import Capacity, aligned, catch_up_rates
from springtide.plan.true_rates.delay import DelayedScaleDown, Recommended
from springtide.plan.true_rates.window import BusyTime, averages, sample

MAP = application(operator("map", grouping=Grouping.SHUFFLE))
NOW = Ds2(metrics_window_s=0, stabilisation_interval_s=0, scale_down_interval_s=0, restart_time_s=0)


def lived(
    app: Application,
    placed: Allocation,
    cores: Mapping[str, float],
    *,
    backlog: Mapping[str, float] | None = None,
    **fields: Any,
) -> View:
    """An interval of operators that are offered so many cores of work, and do what their replicas can."""
    seen = view(app, placed, cores, **fields)
    operators = {}
    for o in app.operators:
        replicas = placed.operators[o.name].replicas
        done_cores = min(cores.get(o.name, 0.0), replicas)
        rows = done_cores / o.service_time_s * INTERVAL_S
        operators[o.name] = replace(
            seen.observation.operators[o.name],
            processed_rows=rows,
            emitted_rows=rows,
            backlog_rows=(backlog or {}).get(o.name, 0.0),
            utilisation=done_cores / replicas,
            replica_utilisation=np.full(replicas, done_cores / replicas),
        )
    return replace(seen, observation=replace(seen.observation, operators=operators))


def story(
    rules: Ds2, app: Application, placed: Allocation, loads: Sequence[Mapping[str, float]], pool: Pool = POOL
) -> list[Decision]:
    """Each plan is carried out at once, and seen in the next interval."""
    memory, told = rules.start(), []
    for index, cores in enumerate(loads):
        decision, memory = rules.decide(lived(app, placed, cores, index=index, pool=pool), memory)
        placed = decision.planned
        told.append(decision)
    return told


def replicas(decision: Decision) -> dict[str, int]:
    return {name: placed.replicas for name, placed in decision.planned.operators.items()}


def counts(decisions: Sequence[Decision], name: str = "map") -> list[int]:
    return [replicas(decision)[name] for decision in decisions]


# --- the capacity that a rate calls for -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("catch_up_per_s", "restart_s", "catch_up_s", "up", "down"),
    [(0, 1, 0, 778, 1000), (350, 1, 2, 1128, 1700), (0, 1, 2, 778, 1350), (350, 300, 60, 1128, 4850), (0, 300, 60, 778, 4500)],
)
def test_the_bounds_of_flinks_own_test(
    catch_up_per_s: float, restart_s: float, catch_up_s: float, up: float, down: float
) -> None:
    """`ScalingMetricEvaluatorTest`: 700 rows/s, utilisation between 0.7 and 0.9."""
    of = Capacity(rate_per_s=700, catch_up_per_s=catch_up_per_s, restart_s=restart_s, catch_up_s=catch_up_s)
    assert round(of.at(0.9, with_restart=False)) == up
    assert round(of.at(0.7)) == down


def test_while_a_backlog_is_worked_off_all_may_be_busy_and_nothing_is_too_idle() -> None:
    of = Capacity(rate_per_s=700, catch_up_per_s=350, restart_s=1, catch_up_s=2)
    assert of.at(1.0, with_restart=False) == 1050
    assert of.at(0.0) == math.inf


KEY_GROUPS = operator("keyed", shards=720, max_replicas=720)
FREE = operator("free", grouping=Grouping.SHUFFLE, max_replicas=720)


@pytest.mark.parametrize(
    ("target", "limits", "current", "rate", "true_rate", "wanted"),
    [
        (1.0, {}, 10, 50, 100, 5),
        (0.8, {}, 10, 50, 100, 8),
        (0.8, {}, 10, 80, 100, 10),
        (0.8, {}, 10, 60, 100, 8),
        (0.8, {}, 10, 59, 100, 8),
        (0.5, {}, 2, 100, 40, 10),
        (0.6, {}, 2, 100, 100, 4),
        (1.0, {"scale_down_max_factor": 0.5}, 10, 10, 100, 5),
        (1.0, {"scale_down_max_factor": 0.6}, 10, 10, 100, 4),
        (1.0, {"scale_up_max_factor": 0.5}, 10, 200, 10, 15),
        (1.0, {"scale_up_max_factor": 0.6}, 10, 200, 10, 16),
    ],
)
def test_the_parallelism_of_flinks_own_test(
    target: float, limits: Mapping[str, float], current: int, rate: float, true_rate: float, wanted: int
) -> None:
    """`JobVertexScalerTest.testParallelismScaling`: 720 key groups, no catch-up."""
    rules = Ds2(utilisation_target=target, catch_up_duration_s=0, **limits)  # type: ignore[arg-type]
    needed = Capacity(rate_per_s=rate, catch_up_per_s=0, restart_s=rules.restart_time_s, catch_up_s=0).at(target)
    assert rules.replicas(KEY_GROUPS, current, needed / true_rate) == wanted


@pytest.mark.parametrize(
    ("current", "factor", "wanted"), [(1, 0.0001, 1), (2, 0.1, 1), (6, 0.8, 5), (16, 1.5, 24), (200, 2, 400), (400, 2, 720)]
)
def test_a_factor_is_rounded_up_within_limits(current: int, factor: float, wanted: int) -> None:
    """`JobVertexScalerTest.testParallelismComputation`."""
    assert Ds2().replicas(FREE, current, factor) == wanted


@pytest.mark.parametrize(
    ("shards", "limit", "current", "wanted", "found"),
    [
        (128, 128, 16, 24, 26),  # 5 shards each become 4
        (128, 128, 16, 31, 32),
        (35, 30, 22, 25, 25),  # nothing better up to 30
        (12, 8, 5, 7, 7),
        (720, 720, 10, 7, 8),
        (12, 12, 11, 9, 9),  # 12 would be better, but that is no scale-down
        (12, 12, 12, 9, 12),
    ],
)
def test_shards_are_shared_well(shards: int, limit: int, current: int, wanted: int, found: int) -> None:
    """`AlignmentModeTest`, mode BALANCED."""
    assert aligned(operator("keyed", shards=shards, max_replicas=limit), current, wanted) == found


def test_without_shards_there_is_nothing_to_align() -> None:
    assert aligned(operator("free", grouping=Grouping.SHUFFLE), 16, 24) == 24


# --- rates ----------------------------------------------------------------------------------------------------------


def test_the_true_rate_is_what_was_processed_in_the_time_it_took() -> None:
    seen = lived(MAP, allocation(MAP, replicas={"map": 4}), {"map": 2.0})
    rates = averages([sample(seen, BusyTime.MAX)])
    assert rates.processed == pytest.approx([2000])
    assert rates.true_processing == pytest.approx([4000])


def test_under_skew_the_busiest_replica_says_what_an_operator_can_do() -> None:
    seen = lived(MAP, allocation(MAP, replicas={"map": 4}), {"map": 2.0})
    skewed = replace(seen.observation.operators["map"], replica_utilisation=np.array([1.0, 0.6, 0.2, 0.2]))
    seen = replace(seen, observation=replace(seen.observation, operators={"map": skewed}))
    assert averages([sample(seen, BusyTime.MAX)]).true_processing == pytest.approx([2000])
    assert averages([sample(seen, BusyTime.AVG)]).true_processing == pytest.approx([4000])


def test_rates_are_averages_over_the_window() -> None:
    """100 rows/s at 0.4, then 200 rows/s at 0.6: 150 at 0.5 (as in `ScalingMetricEvaluatorTest`), longer ones counting more."""
    first = sample(lived(MAP, allocation(MAP), {"map": 0.1}), BusyTime.AVG)
    samples = [replace(first, processed=(100.0,), busy=(0.4,)), replace(first, processed=(200.0,), busy=(0.6,))]
    assert averages(samples).true_processing == pytest.approx([300.0])
    longer = replace(samples[1], start_s=0.0, end_s=60.0)
    assert averages([samples[0], longer]).processed == pytest.approx([175.0])


def test_an_operator_that_did_nothing_could_do_anything() -> None:
    assert averages([sample(lived(MAP, allocation(MAP), {}), BusyTime.MAX)]).true_processing == [math.inf]


def test_what_waits_upstream_will_come_downstream() -> None:
    """1800 rows within 600 s are 3 rows/s; each makes 2 rows for `b`, which has 600 of its own waiting, and 2 * 0.5 for `c`."""
    app = application(
        *(operator(name, grouping=Grouping.SHUFFLE) for name in "abc"),
        edges=(Edge(upstream="a", downstream="b", selectivity=2.0), Edge(upstream="b", downstream="c", selectivity=0.25)),
    )
    seen = lived(app, allocation(app), dict.fromkeys("abc", 0.1), backlog={"a": 1800, "b": 600})
    operators = dict(seen.observation.operators)
    operators["a"] = replace(operators["a"], emitted_rows=2 * operators["a"].processed_rows)
    operators["b"] = replace(operators["b"], emitted_rows=0.5 * operators["b"].processed_rows)  # not 0.25, as measured
    seen = replace(seen, observation=replace(seen.observation, operators=operators))
    rates = averages([sample(seen, BusyTime.MAX)])
    assert catch_up_rates(seen, rates, 600.0) == pytest.approx([3.0, 7.0, 3.5])
    assert catch_up_rates(seen, rates, 0.0) == pytest.approx([0.0, 0.0, 0.0])


# --- decisions ------------------------------------------------------------------------------------------------------


def test_a_saturated_operator_gets_what_its_demand_takes_at_the_target() -> None:
    """5 cores of work, at 0.7 of the time: 7.14 replicas. 8 replicas fill two hosts."""
    decision = story(NOW, MAP, allocation(MAP, replicas={"map": 2}), [{"map": 5.0}])[0]
    assert replicas(decision) == {"map": 8}
    assert len(decision.planned.hosts) == 2
    assert decision.reason == "map 2 -> 8 replicas (7143 rows/s needed, 2000 possible)"
    assert decision.expected.utilisation == pytest.approx(5 / 8)


def test_what_will_wait_after_a_restart_is_provided_for() -> None:
    """300 s of 5000 rows/s within 1800 s are 833 rows/s more, and 900,000 rows that wait 500 more: 8.48 replicas."""
    rules = replace(NOW, restart_time_s=300)
    seen = lived(MAP, allocation(MAP, replicas={"map": 2}), {"map": 5.0}, backlog={"map": 900_000})
    decision, _ = rules.decide(seen, rules.start())
    assert decision.reason == "map 2 -> 9 replicas (8476 rows/s needed, 2000 possible)"


@pytest.mark.parametrize(("cores", "wanted"), [(4.0, 4), (4.01, 6), (1.6, 4), (1.59, 3)])
def test_nothing_changes_while_all_are_within_their_bounds(cores: float, wanted: int) -> None:
    """Of 4 replicas, between 0.4 and 1 may be busy."""
    assert counts(story(NOW, MAP, allocation(MAP, replicas={"map": 4}), [{"map": cores}])) == [wanted]


def test_once_one_operator_is_beyond_its_bounds_all_are_brought_to_the_target() -> None:
    app = application(*(operator(name, grouping=Grouping.SHUFFLE) for name in ("parse", "count")))
    placed = allocation(app, replicas={"parse": 4, "count": 2})
    calm = story(NOW, app, placed, [{"parse": 1.8, "count": 2.0}])[0]
    assert calm.planned is placed
    assert calm.reason == "hold: busiest count is offered 1.00 of its true rate, target 0.70 +/- 0.30"
    assert replicas(story(NOW, app, placed, [{"parse": 1.8, "count": 2.5}])[0]) == {"parse": 3, "count": 4}


def test_it_waits_for_a_stable_job_and_a_full_window() -> None:
    """Stable after 40 s, and then a window of 60 s: 100 s, the fifth interval; and again after the change."""
    rules = replace(NOW, stabilisation_interval_s=40, metrics_window_s=60)
    decisions = story(rules, MAP, allocation(MAP), [{"map": 2.0}] * 5 + [{"map": 6.0}] * 7)
    assert counts(decisions) == [1] * 4 + [3] * 6 + [9] * 2
    assert [d.reason for d in decisions[:4]] == [
        "hold: stable in 20 s, then 60 s of metrics",
        "hold: stable in 0 s, then 60 s of metrics",
        "hold: the metrics window is full in 40 s",
        "hold: the metrics window is full in 20 s",
    ]
    # Seen as changed at 120 s: stable at 160 s, decided at 220 s, the eleventh interval.
    assert decisions[5].reason == "hold: stable in 40 s, then 60 s of metrics"


def test_only_the_last_window_counts() -> None:
    rules = replace(NOW, metrics_window_s=60)
    decisions = story(rules, MAP, allocation(MAP, replicas={"map": 4}), [{"map": 2.0}] * 9 + [{"map": 4.8}] * 3)
    # With one and two of three samples at 4.8 the mean is 2.93 and 3.87; with all three it is beyond 4.
    assert counts(decisions) == [4] * 11 + [7]


def test_a_scale_down_waits_and_goes_to_the_most_that_was_recommended_meanwhile() -> None:
    """1 core of 8 replicas may become 4 (a factor of 0.4), 1.6 cores too, 2.5 cores ask for 4."""
    rules = replace(NOW, scale_down_interval_s=60)
    loads = [{"map": 1.0}, {"map": 3.0}, {"map": 1.0}, {"map": 1.0}]
    decisions = story(rules, MAP, allocation(MAP, hosts=2, replicas={"map": 8}), loads)
    assert counts(decisions) == [8, 8, 8, 5]
    (veto,) = decisions[2].why_not
    assert str(veto) == "ds2: not map 8 -> 4 replicas, because a scale-down has to wait for another 20 s"
    assert len(decisions[3].planned.hosts) == 2


def test_a_scale_down_that_is_not_wanted_any_more_waits_anew() -> None:
    rules = replace(NOW, scale_down_interval_s=60)
    loads = [{"map": 1.0}] * 3 + [{"map": 5.6}] + [{"map": 1.0}] * 4
    assert counts(story(rules, MAP, allocation(MAP, hosts=2, replicas={"map": 8}), loads)) == [8] * 7 + [4]


def test_the_most_that_was_recommended_is_forgotten_after_the_interval() -> None:
    down = DelayedScaleDown(first_s=0.0)
    for time_s, wanted in [(0, 6), (20, 4), (40, 5), (60, 3), (80, 2)]:
        down = down.then(Recommended(time_s=time_s, replicas=wanted, outside=True), 40.0)
    assert [(r.time_s, r.replicas) for r in down.recommended] == [(40, 5), (60, 3), (80, 2)]
    assert down.first_s == 0.0


def test_nothing_is_taken_away_while_a_backlog_is_worked_off() -> None:
    """1000 rows/s are processed; more than 300 s of them wait. What is needed to work it off may still be less."""
    placed = allocation(MAP, hosts=2, replicas={"map": 8})
    for backlog, wanted in ((300_000, 4), (300_001, 8)):
        decision, _ = NOW.decide(lived(MAP, placed, {"map": 1.0}, backlog={"map": backlog}), NOW.start())
        assert replicas(decision) == {"map": wanted}


@pytest.mark.parametrize(("came", "wanted"), [(199.0, 2), (200.0, 4)])
def test_a_scale_up_after_one_that_brought_nothing_is_blocked(came: float, wanted: int) -> None:
    """2 replicas should have brought 2000 rows/s more; a tenth of that is 200."""
    rules = replace(NOW, effectiveness_detection=True)
    before = ScaledUp(replicas=2, rate_per_s=2000.0 - came, expected_per_s=4000.0 - came)
    seen = lived(MAP, allocation(MAP, replicas={"map": 2}), {"map": 2.5})
    decision, _ = rules.decide(seen, Ds2Memory(scaled_up={"map": before}))
    assert replicas(decision) == {"map": wanted}
    if wanted == 2:
        assert str(decision.why_not[0]) == (
            "ds2: not map 2 -> 4 replicas, because the last scale-up brought 199 of 2000 rows/s"
        )
    assert replicas(NOW.decide(seen, Ds2Memory(scaled_up={"map": before}))[0]) == {"map": 4}


def test_a_scale_up_is_remembered_with_what_it_should_bring() -> None:
    rules = replace(NOW, effectiveness_detection=True)
    first, memory = rules.decide(lived(MAP, allocation(MAP, replicas={"map": 2}), {"map": 2.5}), rules.start())
    _, memory = rules.decide(lived(MAP, first.planned, {"map": 2.5}, index=1), memory)
    assert memory.scaled_up == {"map": ScaledUp(replicas=4, rate_per_s=2000.0, expected_per_s=4000.0)}


def test_a_plan_that_was_vetoed_is_made_again_in_the_next_interval() -> None:
    rules = replace(NOW, stabilisation_interval_s=0, metrics_window_s=40)
    placed = allocation(MAP)
    memory = rules.start()
    reasons = []
    for index in range(4):
        decision, memory = rules.decide(lived(MAP, placed, {"map": 2.0}, index=index), memory)
        reasons.append(decision.reason)
    assert [r.startswith("map 1 -> 3 replicas") for r in reasons] == [False, True, True, True]
    assert memory.scaled_up == {}


def test_hosts_that_are_still_to_come_delay_the_next_decision() -> None:
    placed = allocation(MAP, hosts=2, replicas={"map": 2})
    seen = lived(MAP, placed, {"map": 5.0}, states={"host-1": HostState.STARTING})
    decision, memory = NOW.decide(seen, NOW.start())
    assert decision.reason == "hold: stable in 0 s, then 0 s of metrics"
    assert replicas(NOW.decide(lived(MAP, placed, {"map": 5.0}, index=1), memory)[0]) == {"map": 8}


def test_a_lost_host_is_replaced_at_once() -> None:
    rules = Ds2()
    _, memory = rules.decide(lived(MAP, allocation(MAP, hosts=2, replicas={"map": 8}), {"map": 5.0}), rules.start())
    rest = lived(MAP, allocation(MAP, hosts=("host-0",), replicas={"map": 8}), {"map": 5.0}, index=1)
    decision, memory = rules.decide(rest, memory)
    assert len(decision.planned.hosts) == 2
    assert decision.reason == "1 host lost: replace what is missing"
    again, _ = rules.decide(lived(MAP, decision.planned, {"map": 5.0}, index=2), memory)
    assert again.planned is decision.planned


def test_when_the_pool_has_too_few_cores_replicas_share_them_and_it_is_said() -> None:
    (decision,) = story(NOW, MAP, allocation(MAP), [{"map": 9.0}], replace(POOL, max_hosts=2))
    assert replicas(decision) == {"map": 13}
    assert len(decision.planned.hosts) == 2
    assert str(decision.why_not[0]) == "ds2: not a core for each of 13 replicas, because the pool has no more than 8"


def test_a_chain_is_sized_in_one_step_whichever_operator_holds_it_up() -> None:
    """The second operator sees a tenth of what is coming, because the first one is saturated; it is sized for all of it."""
    app = application(operator("parse", grouping=Grouping.SHUFFLE), operator("count", shards=20))
    seen = lived(app, allocation(app), {"parse": 10.0, "count": 7.0})
    throttled = replace(
        seen.observation.operators["count"],
        processed_rows=700 * INTERVAL_S,
        utilisation=0.7,
        replica_utilisation=np.array([0.7]),
    )
    operators = {**seen.observation.operators, "count": throttled}
    decision, _ = NOW.decide(replace(seen, observation=replace(seen.observation, operators=operators)), NOW.start())
    assert replicas(decision) == {"parse": 15, "count": 10}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"utilisation_target": 0.0}, "ds2: utilisation_target must be above 0 and at most 1, not 0.0"),
        ({"scale_down_max_factor": 1.2}, "ds2: scale_down_max_factor must lie between 0 and 1, not 1.2"),
        ({"metrics_window_s": -1.0}, "ds2: metrics_window_s must be 0 or more, not -1.0"),
    ],
)
def test_parameters_that_cannot_be_are_refused(parameters: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidValue) as mistake:
        Ds2(**parameters)  # type: ignore[arg-type]
    assert str(mistake.value) == message


def test_operators_are_named() -> None:
    """Of many that change, the first three."""
    names = ("a", "b", "c", "d", "e")
    app = application(*(Operator(name=n, service_time_s=0.001, grouping=Grouping.SHUFFLE) for n in names))
    (decision,) = story(NOW, app, allocation(app), [dict.fromkeys(names, 2.0)])
    assert decision.reason.endswith("c 1 -> 3 replicas (2857 rows/s needed, 1000 possible), and 2 operators more")
