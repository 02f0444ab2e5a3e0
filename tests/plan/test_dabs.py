"""DABS-Storm as PSPS describes it (Wladdimiro et al. 2022, sections III and V.F): a regression, and an activity level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from observations import placed_on, replicas, shards, view

from factories import application, operator
from springtide.backends.simulator.settings import Activation, SimulatorSettings
from springtide.errors import InvalidValue
from springtide.model.allocation import HostType, Pool
from springtide.model.application import Grouping
from springtide.model.decision import Decision
from springtide.model.protocols import AnyPolicy, Forecast
from springtide.plan.policies.dabs import Dabs
from springtide.plan.policies.predictive import Predictive
from springtide.plan.prediction.rates import RecentRates, on_line
from springtide.report.summary import RunSummary
from springtide.simulation import Simulation
from springtide.workload.generators import steps

POLICY = Dabs()
APP = application(operator("parse", grouping=Grouping.SHUFFLE))


def decide(cores: float, *, now: int, before: Sequence[float] = (), policy: Dabs = POLICY) -> Decision:
    """One interval with so many cores of work, after intervals that had others; the source offers 300 rows/s now."""
    seen = view(APP, placed_on(parse=replicas(*[0] * now)), {"parse": cores})
    memory = RecentRates({"source": tuple(300.0 * c / cores for c in before)})
    return policy.decide(seen, memory)[0]


def counts(decision: Decision) -> int:
    return decision.planned.operators["parse"].replicas


# --- the regression ---------------------------------------------------------------------------------------------------


def test_a_line_goes_on() -> None:
    assert on_line([100.0, 120.0, 140.0], 1) == pytest.approx(160)
    assert on_line([100.0, 120.0, 140.0], 4) == pytest.approx(220)


def test_a_line_evens_out_what_is_by_chance() -> None:
    assert on_line([100.0, 140.0, 100.0, 140.0, 120.0], 1) == pytest.approx(132)


def test_one_rate_makes_no_trend_and_no_rate_is_below_zero() -> None:
    assert on_line([70.0], 5) == 70
    assert on_line([70.0, 30.0], 1) == 0


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=12), st.integers(1, 8))
def test_it_is_the_line_of_least_squares(rates: list[float], ahead: int) -> None:
    slope, offset = np.polyfit(np.arange(len(rates)), rates, 1)
    assert on_line(rates, ahead) == pytest.approx(max(0.0, offset + slope * (len(rates) - 1 + ahead)), rel=1e-6, abs=1e-3)


def test_only_the_last_rates_are_remembered() -> None:
    memory = POLICY.start()
    for index in range(9):
        memory = POLICY.decide(view(APP, placed_on(parse=(0,)), {"parse": 0.5}, index=index), memory)[1]
    assert memory.of == {"source": (300.0,) * 6}


# --- the activity level -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cores", "now", "after"),
    [
        (0.9, 1, 1),  # between the thresholds
        (1.0, 1, 1),
        (1.1, 1, 2),  # more than one replica can do
        (5.3, 2, 6),
        (2.1, 4, 4),  # three would do, but it is not below one half
        (1.9, 4, 2),
        (0.0, 4, 1),
    ],
)
def test_replicas_change_when_the_activity_leaves_its_bounds(cores: float, now: int, after: int) -> None:
    assert counts(decide(cores, now=now)) == after


def test_the_activity_is_that_of_the_next_interval() -> None:
    """0.6, 0.7, 0.8 and now 0.9 cores: 1.0 next, and 1.06 if it rises a little faster."""
    assert counts(decide(0.9, now=1, before=(0.6, 0.7, 0.8))) == 1
    rising = decide(0.9, now=1, before=(0.42, 0.58, 0.74))
    assert counts(rising) == 2
    assert rising.reason.startswith("parse will have an activity of 1.06 > 1.00: 1 -> 2 replicas")
    assert counts(decide(2.4, now=4, before=(3.6, 3.2, 2.8))) == 4  # 2.0 next: exactly one half
    falling = decide(2.4, now=4, before=(3.9, 3.4, 2.9))
    assert falling.reason.startswith("parse will have an activity of 0.48 < 0.50: 4 -> 2 replicas")


def test_pending_rows_are_activity() -> None:
    seen = view(APP, placed_on(parse=(0,)), {"parse": 0.8})
    waiting = replace(seen.observation.operators["parse"], backlog_rows=24_000.0)  # 24 s of one core, in 20 s
    seen = replace(seen, observation=replace(seen.observation, operators={"parse": waiting}))
    decision = POLICY.decide(seen, POLICY.start())[0]
    assert counts(decision) == 2
    assert "activity of 2.00 > 1.00" in decision.reason


def test_thresholds_are_parameters() -> None:
    careful = Dabs(upper=0.6, lower=0.2)
    assert counts(decide(0.9, now=1, policy=careful)) == 2
    assert counts(decide(1.0, now=4, policy=careful)) == 4
    with pytest.raises(InvalidValue, match=r"lower must be 0 or more and below upper, not 0\.6"):
        Dabs(upper=0.6, lower=0.6)


def test_it_has_a_forecast_of_its_own() -> None:
    rates = np.array([9000.0])
    told = Forecast(interval_s=20.0, model="other", mean={"source": rates}, upper={"source": rates})
    seen = view(APP, placed_on(parse=(0,)), {"parse": 0.9}, forecast=told)
    assert POLICY.decide(seen, POLICY.start())[0].planned is seen.requested


def test_keyed_operators_regroup_their_shards() -> None:
    keyed = application(operator("count", shards=16))
    decision = POLICY.decide(view(keyed, placed_on(count=shards(*[0] * 16)), {"count": 3.5}), POLICY.start())[0]
    placed = decision.planned.operators["count"]
    assert placed.replicas == 4
    assert sorted(np.bincount(placed.shard_replicas)) == [4, 4, 4, 4]


# --- beside PSPS ------------------------------------------------------------------------------------------------------


def run(policy: AnyPolicy, name: str, settings: SimulatorSettings) -> RunSummary:
    """Section V.F in small: what comes doubles, doubles again, and falls."""
    app = application(
        *(operator(n, grouping=Grouping.LOAD_BALANCED, service_time_s=t) for n, t in (("parse", 0.004), ("rank", 0.01)))
    )
    simulation = Simulation(
        trace=steps(levels=(60.0, 120.0, 240.0, 50.0), hold_s=300.0),
        application=app,
        pool=Pool(host=HostType(cores=4, start_s=20.0), min_hosts=2, max_hosts=4),
        settings=settings,
        policy=policy,
        policy_name=name,
    )
    return simulation.run()[0]


def test_what_restarts_cost_and_a_pool_of_replicas_does_not() -> None:
    """Table X: DABS loses rows with every reconfiguration, PSPS has no downtime and processes more of them."""
    restarting = SimulatorSettings(activation=Activation.RESTART, restart_s=10.0, restart_drops_queue=True)
    dabs, psps = run(POLICY, "dabs", restarting), run(Predictive(), "predictive", SimulatorSettings())
    assert dabs.downtime_s >= 30
    assert psps.downtime_s == 0
    assert dabs.rows.dropped > 0
    assert psps.rows.dropped == 0
    assert dabs.rows.delivered / dabs.rows.source < psps.rows.delivered / psps.rows.source
    assert dabs.decisions_with_change >= 3


def test_without_restarts_it_follows_the_input_as_well() -> None:
    summary = run(POLICY, "dabs", SimulatorSettings())
    assert summary.rows.backlog == pytest.approx(0, abs=1)
    assert summary.downtime_s == 0
    assert 2 < summary.mean_replicas < 4
