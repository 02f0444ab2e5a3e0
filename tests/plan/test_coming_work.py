"""From a forecast to cores of work, and what too few of them cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from observations import placed_on, shards, view

from factories import application, operator
from springtide.model.application import SLO, Grouping
from springtide.model.protocols import Forecast, View
from springtide.plan.horizon.lateness import late_core_s, late_while_draining_core_s, price_of_late_work
from springtide.plan.horizon.work import Work, coming_work, overdue_core_s, usable_cores

APP = application(operator("parse", grouping=Grouping.SHUFFLE), operator("count", shards=4), slo=SLO(latency_s=5.0))
PLACED = placed_on(parse=(0,), count=shards(0, 0, 0, 0))


def foreseen(seen: View, *factors: float) -> View:
    """The rates of now times these factors, one an interval; the upper ones are half as much again."""
    rates = {
        source: rows / seen.observation.interval_s * np.array(factors) for source, rows in seen.observation.source_rows.items()
    }
    upper = {source: 1.5 * values for source, values in rates.items()}
    return replace(seen, forecast=Forecast(interval_s=20.0, model="told", mean=rates, upper=upper))


def test_work_is_rates_through_the_dag_times_what_rows_take() -> None:
    work = coming_work(foreseen(view(APP, PLACED, {"parse": 0.5, "count": 2.0}), 1.0, 1.2), steps=9)
    assert work.now == pytest.approx(2.5)
    assert work.cores == pytest.approx(np.array([[2.5, 3.0], [3.75, 4.5]]))
    assert work.weights == pytest.approx([0.725, 0.275])


def test_only_as_many_intervals_as_are_asked_for() -> None:
    assert coming_work(foreseen(view(APP, PLACED, {"count": 1.0}), 1.0, 1.0, 1.0), steps=2).cores.shape == (2, 2)


def test_an_operator_has_no_more_work_than_it_can_use() -> None:
    skewed = view(APP, PLACED, {"count": [4.0, 2.0, 1.0, 1.0]})
    assert usable_cores(skewed)["count"] == pytest.approx(2.0)  # half of the rows are in one shard, which uses one core
    assert coming_work(foreseen(skewed, 1.0), steps=1).cores.max() == pytest.approx(2.0)


def test_without_a_forecast_the_present_may_be_a_little_more_or_less() -> None:
    work = coming_work(view(APP, PLACED, {"count": 2.0}), steps=5)
    assert work.cores[:, 0] == pytest.approx([1.8, 2.0, 2.4])


def test_what_is_wild_far_away_is_as_wild_as_it_is_soon() -> None:
    weights = np.array([0.5, 0.45, 0.05])
    work = Work(cores=np.array([[1.0, 1, 1], [2, 2, 4], [3, 3, 40]]), weights=weights, now=1.0)
    assert work.no_wilder_than_at(1).cores[:, 2] == pytest.approx([1, 4, 6])
    assert work.no_wilder_than_at(4).cores.shape == (3, 5)


def test_rows_that_wait_for_longer_than_allowed_are_overdue() -> None:
    seen = view(APP, PLACED, {"count": 1.0})  # 1000 rows a second
    waiting = replace(seen.observation.operators["count"], backlog_rows=4000.0)
    operators = {**seen.observation.operators, "count": waiting}
    late = replace(seen, observation=replace(seen.observation, operators=operators))
    assert overdue_core_s(seen, 0.5) == 0.0
    assert overdue_core_s(late, 0.5) == pytest.approx((4000 - 2500) * 0.001)


def test_late_work_against_a_queue_that_is_filled_row_by_row() -> None:
    """A second at a time: what comes, what is served, how long what has just come waits."""
    demand, capacity, latency_s, window = 12.0, 10.0, 5.0, 120
    backlog = late = 0.0
    for _ in range(window * 100):
        late += demand / 100 if backlog / capacity > latency_s else 0.0
        backlog += (demand - capacity) / 100
    assert late_core_s(np.array(demand), np.array(capacity), latency_s, window) == pytest.approx(late, rel=0.01)


def test_enough_capacity_is_never_late() -> None:
    assert late_core_s(np.array([0.0, 5.0, 10.0]), np.array(10.0), 5.0, 600.0).tolist() == [0.0, 0.0, 0.0]


def test_more_capacity_drains_faster() -> None:
    late = late_while_draining_core_s(100.0, 8.0, np.array([4.0, 10.0, 12.0, 28.0]))
    assert late == pytest.approx([8 * 600, 8 * 50, 8 * 25, 8 * 5])


def test_a_stricter_objective_makes_late_work_dearer() -> None:
    assert price_of_late_work(0.001) == pytest.approx(10 * price_of_late_work(0.01))
