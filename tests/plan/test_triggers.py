"""How often batches start: as seldom as the objective allows, without changing its mind at every interval."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_batch_sizing import calculator, simulated

from springtide.model.application import SLO
from springtide.plan.policies.tide import Tide
from springtide.plan.sizing.batches import BatchModel
from springtide.plan.sizing.triggers import Pace, choose_pace

LOOSE = SLO(latency_s=20.0, percentile=0.9)
TIGHT = SLO(latency_s=1.5, percentile=0.9)


def model(*names: str, rate: float = 40.0, trigger_s: float = 0.0) -> BatchModel:
    _, _, views = simulated([(rate, 90.0)], application=calculator(*names), policy=Tide(paces=False))
    found = BatchModel.of(views[-1])
    assert found is not None
    return replace(found, trigger_s=trigger_s)


def shortest_s(of: BatchModel, slots: float = 1.0) -> float:
    return float(of.shortest_s(np.array([slots]))[0])


def test_a_loose_objective_makes_batches_rare_and_half_of_it_is_kept_in_reserve() -> None:
    known = model()
    pace = choose_pace(known, LOOSE, slots=1.0)
    assert pace.trigger_s > 3 * shortest_s(known)
    latency_s = float(replace(known, trigger_s=pace.trigger_s).latency_s(0.9, np.array([1.0]))[0])
    assert latency_s == pytest.approx(10.0, rel=0.01)
    assert pace.saved_cores == pytest.approx(pace.shortest_fixed_cores * (1 - shortest_s(known) / pace.trigger_s), rel=0.01)


def test_a_tight_objective_has_batches_at_once() -> None:
    assert choose_pace(model(), TIGHT, slots=1.0) == Pace(trigger_s=0.0)


def test_through_several_levels_the_next_batch_waits_until_the_last_is_through() -> None:
    known = model("a", "b", rate=10.0)
    pace = choose_pace(known, LOOSE, slots=1.0)
    assert pace.trigger_s > shortest_s(known) > shortest_s(model("a", rate=10.0))
    assert pace.saved_cores > 0
    assert choose_pace(known, TIGHT, slots=1.0) == Pace(trigger_s=0.0)


def test_the_latency_of_batches_that_are_kept_apart_is_predicted() -> None:
    application = replace(calculator("a", "b"), slo=LOOSE)
    _, _, views = simulated([(10, 400)], interval_s=10.0, application=application)
    found = BatchModel.of(views[-1])
    assert found is not None
    assert found.trigger_s > 0
    predicted_s = float(found.latency_s(0.9, np.array([1.0]))[0])
    assert predicted_s == pytest.approx(views[-1].observation.latency.p90_s, rel=0.2)


def test_the_users_interval_is_the_least_and_nobody_waits_longer_than_is_said() -> None:
    known = replace(model(), bounds_s=(4.0, np.inf))
    assert choose_pace(known, TIGHT, slots=1.0).trigger_s == 4.0
    assert choose_pace(model(), LOOSE, slots=1.0, most_s=5.0).trigger_s == 5.0
    thirds = replace(model(), bounds_s=(3.0, np.inf))
    assert choose_pace(thirds, LOOSE, slots=1.0).trigger_s == 6.0, "a multiple of it"
    assert choose_pace(replace(known, bounds_s=(0.0, 0.0)), LOOSE, slots=1.0).trigger_s == 0.0


@pytest.mark.parametrize("off", [0.75, 1.0, 1.1])
def test_an_interval_that_is_nearly_right_stays(off: float) -> None:
    known = model()
    best_s = choose_pace(known, LOOSE, slots=1.0).trigger_s
    assert choose_pace(replace(known, trigger_s=off * best_s), LOOSE, slots=1.0).trigger_s == off * best_s
    assert choose_pace(replace(known, trigger_s=2 * best_s), LOOSE, slots=1.0).trigger_s == pytest.approx(best_s)


def test_a_demand_that_nobody_can_keep_up_with_has_batches_at_once() -> None:
    assert choose_pace(model(), LOOSE, slots=1.0, factor=50.0) == Pace(trigger_s=0.0)


class TestTide:
    def test_batches_become_rare_where_the_objective_allows_it_and_slots_are_less_busy(self) -> None:
        application = replace(calculator(), slo=LOOSE)
        busy = {}
        for paces in (True, False):
            summary, _, views = simulated([(20, 600)], interval_s=10.0, application=application, policy=Tide(paces=paces))
            assert summary.slo_kept
            busy[paces] = views[-1].observation.operators["calculator"].busy_share
            assert (views[-1].observation.trigger_s != {}) is paces
        assert busy[True] < 0.6 * busy[False]

    def test_the_interval_changes_seldom_at_a_constant_load(self) -> None:
        application = replace(calculator(), slo=LOOSE)
        _, _, views = simulated([(20, 900)], interval_s=10.0, application=application)
        seen = [view.observation.operators["calculator"].trigger_s for view in views[30:]]
        assert len(set(seen)) <= 2

    def test_a_backlog_ends_the_waiting(self) -> None:
        application = replace(calculator(), slo=LOOSE)
        _, _, views = simulated([(20, 300), (300, 60), (20, 30)], interval_s=10.0, application=application)
        burst = [view.observation.operators["calculator"].trigger_s for view in views[33:36]]
        assert burst == [0.0, 0.0, 0.0]

    def test_a_trigger_interval_of_the_user_is_kept(self) -> None:
        _, _, views = simulated([(20, 120)], micro_batch_trigger_s=2.0)
        assert {view.observation.operators["calculator"].trigger_s for view in views} == {2.0}
