"""What tide learns of late rows, and of sources that have their bursts together or each for itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from observations import INTERVAL_S, placed_on, view

from factories import application, latency, observation, operator
from springtide.model.application import SLO, Application, Edge, Grouping, Source
from springtide.model.protocols import Forecast, View
from springtide.plan.horizon.work import rising_cores
from springtide.plan.tide.bursts import Bursts
from springtide.plan.tide.learning import TideMemory
from springtide.plan.tide.spending import Late

NAMES = ("left", "right", "middle", "top")
APP = Application(
    name="several",
    operators=(operator("parse", grouping=Grouping.SHUFFLE),),
    sources=tuple(Source(name=name) for name in NAMES),
    edges=tuple(Edge(upstream=name, downstream="parse") for name in NAMES),
    slo=SLO(latency_s=5.0),
)
ONE = application(operator("parse", grouping=Grouping.SHUFFLE))


def with_rates(app: Application, rates_per_s: dict[str, float], foreseen_per_s: float) -> View:
    seen = view(app, placed_on(parse=(0,)), {"parse": 1.0})
    forecast = Forecast(
        interval_s=INTERVAL_S,
        model="told",
        mean={name: np.array([foreseen_per_s]) for name in rates_per_s},
        upper={name: np.array([1.2 * foreseen_per_s]) for name in rates_per_s},
    )
    rows = {name: rate * INTERVAL_S for name, rate in rates_per_s.items()}
    gains = {name: {"parse": 1.0} for name in rates_per_s}
    return replace(seen, observation=replace(seen.observation, source_rows=rows), gains=gains, forecast=forecast)


def together(errors: np.ndarray) -> float:
    """After so many intervals with these errors, one column for each source."""
    bursts = Bursts()
    for row in errors:
        rates = {name: 100.0 + float(error) for name, error in zip(NAMES, row, strict=False)}
        bursts = bursts.then(with_rates(APP if len(row) > 1 else ONE, rates, 100.0))
    return bursts.together


class TestBursts:
    def test_a_single_source_is_together(self) -> None:
        assert together(np.random.default_rng(0).normal(0, 9, (400, 1))) == 1.0

    def test_sources_that_err_alike_are_together(self) -> None:
        same = np.random.default_rng(0).normal(0, 9, (400, 1))
        assert together(np.repeat(same, 4, axis=1)) == pytest.approx(1.0)

    def test_of_sources_that_err_each_for_itself_less_adds_up(self) -> None:
        found = together(np.random.default_rng(0).normal(0, 9, (4000, 4)))
        assert found == pytest.approx(0.5, abs=0.1)  # 1 / sqrt(4)

    def test_little_has_been_learnt_of_few_errors(self) -> None:
        assert together(np.random.default_rng(0).normal(0, 9, (5, 4))) > 0.9

    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.lists(st.floats(-50, 50), min_size=3, max_size=3), min_size=1, max_size=30))
    def test_it_is_a_share(self, errors: list[list[float]]) -> None:
        assert 0.0 <= together(np.array(errors)) <= 1.0


class TestLate:
    def late(self, *latencies_s: float) -> Late:
        found = Late()
        for seconds in latencies_s:
            seen = replace(observation(application=ONE), latency=latency(1000.0, seconds, ONE.slo))
            found = found.then(seen, 0.01)
        return found

    def test_nothing_is_known_before_the_first_row(self) -> None:
        assert Late().dearness == 1.0

    def test_it_comes_down_while_nothing_is_late_and_not_to_nothing(self) -> None:
        first, later, last = (self.late(*[0.1] * intervals).dearness for intervals in (1, 100, 5000))
        assert 0.9 < first < 1.0
        assert last < later < first
        assert last == pytest.approx(0.1)

    def test_a_burst_brings_the_price_back_and_no_higher(self) -> None:
        assert self.late(*[0.1] * 200, *[60.0] * 10).dearness == 1.0


@pytest.mark.parametrize(
    ("recent", "rising", "surge"),
    [
        ((1.0, 1.0, 1.2), None, 0.0),
        ((1.0, 1.0, 2.0), None, 3.0),
        ((1.0, 2.0, 2.0), None, 0.0),
        ((1.0, 1.0, 1.2), 4.0, 4.0),
        ((1.0, 1.0, 2.0), 1.9, 0.0),
        ((0.0, 0.0, 2.0), 9.0, 0.0),
    ],
    ids=["as before", "half an interval of a step", "a step that is known", "seen at its end", "known better", "the beginning"],
)
def test_a_step_is_planned_for_by_what_is_known_of_its_height(
    recent: tuple[float, ...], rising: float | None, surge: float
) -> None:
    assert TideMemory(recent_cores=recent).surge_cores(rising) == pytest.approx(surge)


def test_a_source_that_rises_makes_as_much_work_as_it_may_bring_by_now() -> None:
    seen = with_rates(APP, dict.fromkeys(NAMES, 10.0), foreseen_per_s=10.0)
    rises = replace(seen, observation=replace(seen.observation, rising_rows_per_s={"left": 70.0}))
    calm = replace(seen, observation=replace(seen.observation, rising_rows_per_s={}))

    assert rising_cores(seen) is None
    assert rising_cores(rises) == pytest.approx(100 / 40 * rising_cores(calm))
