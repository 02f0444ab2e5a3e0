"""Streaks, grace periods, and which hosts are judged at all."""

import pytest
from observations import INTERVAL_S, placed_on, shards, view

from factories import application, operator
from springtide.errors import InvalidValue
from springtide.model.allocation import OperatorAllocation
from springtide.model.observation import HostState
from springtide.plan.policies.local_thresholds import LocalThresholds
from springtide.plan.thresholds.judging import AVERAGE, ThresholdMemory, after_change, counted, judged_hosts

APP = application(operator("count", shards=4))
HALVES = placed_on(hosts=3, count=shards(0, 0, 1, 1))
MOVED = placed_on(hosts=3, count=shards(0, 0, 0, 1))


def test_streaks_count_in_both_directions_and_start_anew_when_it_turns() -> None:
    streaks: dict[str, int] = {}
    for verdict in (1, 1, -1, -1, -1):
        streaks = counted(streaks, {"host-0": verdict})
    assert streaks == {"host-0": -3}
    assert counted(streaks, {"host-0": 0}) == {}
    assert counted(streaks, {}) == {}


@pytest.mark.parametrize(("utilisation", "verdict"), [(0.81, 1), (0.8, 0), (0.5, 0), (0.3, 0), (0.29, -1)])
def test_a_threshold_is_violated_beyond_it_not_at_it(utilisation: float, verdict: int) -> None:
    assert LocalThresholds().verdict(utilisation) == verdict


def test_a_finding_says_how_far_it_has_come() -> None:
    rules = LocalThresholds(consecutive=3)
    assert rules.finding("host-2", 0.91, 2) == "host-2 at 0.91 > 0.80 for 2 of 3 intervals"
    assert rules.finding("host-2", 0.91, 3) == "host-2 at 0.91 > 0.80 for 3 intervals"
    assert rules.finding("host-2", 0.1, -4) == "host-2 at 0.10 < 0.30 for 4 intervals"
    assert LocalThresholds(consecutive=1).finding("host-2", 0.91, 1) == "host-2 at 0.91 > 0.80 for 1 interval"


@pytest.mark.parametrize(
    "parameters",
    [
        {"upper": 1.1},
        {"upper": float("nan")},
        {"lower": -0.1},
        {"lower": 0.9},
        {"target": 0.2},
        {"target": 0.9},
        {"consecutive": 0},
        {"grace_s": -1.0},
        {"grace_s": float("inf")},
    ],
)
def test_thresholds_that_make_no_sense_are_refused(parameters: dict[str, float]) -> None:
    with pytest.raises(InvalidValue, match=r"local-thresholds: \w+ must"):
        LocalThresholds(**parameters)


def test_hosts_that_gave_rest_from_the_decision_on_and_whoever_took_part_counts_anew() -> None:
    before = ThresholdMemory(
        requested=HALVES, decided_s=INTERVAL_S, streaks={"host-0": 3, "host-1": 2, "host-2": -1, AVERAGE: 3}
    )
    memory = after_change(view(APP, MOVED, {}, index=1), before, grace_s=60.0)
    assert memory.grace_until_s == {"host-1": INTERVAL_S + 60}
    assert memory.streaks == {"host-2": -1}


def test_a_plan_that_was_vetoed_starts_no_grace_period() -> None:
    before = ThresholdMemory(requested=HALVES, decided_s=INTERVAL_S, streaks={"host-0": 3})
    memory = after_change(view(APP, HALVES, {}, index=1), before, grace_s=60.0)
    assert memory.grace_until_s == {}
    assert memory.streaks == {"host-0": 3}


def test_regrouping_inside_a_host_starts_no_grace_period_but_the_operator_counts_anew() -> None:
    regrouped = placed_on(hosts=3, count=OperatorAllocation(("host-0", "host-1", "host-0"), (0, 2, 1, 1)))
    before = ThresholdMemory(requested=HALVES, streaks={"host-0": 3}, operator_streaks={"count": 2})
    memory = after_change(view(APP, regrouped, {}), before, grace_s=60.0)
    assert memory.grace_until_s == {}
    assert memory.streaks == {"host-0": 3}
    assert memory.operator_streaks == {}


def test_grace_ends() -> None:
    before = ThresholdMemory(requested=HALVES, grace_until_s={"host-0": 41.0, "host-1": 40.0, "gone": 99.0})
    assert after_change(view(APP, HALVES, {}, index=1), before, grace_s=60.0).grace_until_s == {"host-0": 41.0}


def test_only_hosts_that_ran_for_the_whole_interval_are_judged() -> None:
    seen = view(APP, HALVES, {"count": 2.0}, states={"host-1": HostState.STARTING, "old": HostState.RELEASING})
    assert set(judged_hosts(seen, ThresholdMemory())) == {"host-0", "host-2"}
    assert set(judged_hosts(seen, ThresholdMemory(running=frozenset({"host-0"})))) == {"host-0"}
