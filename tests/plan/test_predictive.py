"""PSPS (Wladdimiro et al. 2022): equations 1 to 4 with the paper's numbers, and stories of replicas that follow a prediction.

The theta of equations 2b and 2c are tested in `tests/test_analyze.py`, equation 5 and Algorithm 1 in
`tests/simulator/test_load_balanced_grouping.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from factories import allocation, application, observation, operator
from springtide.analyze.demand import Flow, Flows, gains
from springtide.backends.simulator.backend import SimulatorBackend
from springtide.backends.simulator.settings import SimulatorSettings
from springtide.loop import ControlLoop, no_forecast
from springtide.model.allocation import Allocation, HostType, Pool
from springtide.model.application import Application, Edge, Grouping, Operator
from springtide.model.decision import Decision
from springtide.model.observation import FloatArray, Observation
from springtide.model.protocols import Forecast, View
from springtide.plan.policies.predictive import Predictive, predict, replicas_needed
from springtide.report.summary import Point, RunTotals

POLICY = Predictive()


def replicated(name: str, execution_time_s: float, **fields: object) -> Operator:
    """A stateless operator whose rows go to the least loaded replica."""
    return operator(name, service_time_s=execution_time_s, grouping=Grouping.LOAD_BALANCED, **fields)


def seen(
    app: Application,
    placed: Allocation,
    *,
    rows: float,
    queued: Mapping[str, float] | None = None,
    flows: Flows | None = None,
    forecast: Forecast | None = None,
    pool: Pool | None = None,
    interval_s: float = 1.0,
) -> View:
    """An interval in which the source offered `rows`, and `queued` rows were left at its end."""
    observed = observation(
        application=app, allocation=placed, rows=rows, backlog_rows=queued or {}, interval_s=interval_s, index=3
    )
    thetas = gains(app, flows)
    rate = rows / interval_s
    demand = {name: rate * theta for name, theta in thetas["source"].items()}
    return View(
        application=app,
        pool=pool or Pool(host=HostType(cores=4), max_hosts=10),
        observation=observed,
        demand_rows_per_s=demand,
        gains=thetas,
        forecast=forecast,
    )


def forecast(*rates: float, interval_s: float = 1.0) -> Forecast:
    mean = np.array(rates)
    return Forecast(interval_s=interval_s, model="told", mean={"source": mean}, upper={"source": mean})


def counts(decision: Decision) -> dict[str, int]:
    return {name: placed.replicas for name, placed in decision.planned.operators.items()}


def decide(view: View, policy: Predictive = POLICY) -> Decision:
    return policy.decide(view, policy.start())[0]


# --- the paper's numbers ----------------------------------------------------------------------------------------------

TABLE_2 = application(replicated("O1", 0.0166), replicated("O2", 0.025), replicated("O3", 0.1))
MEASURED = Flows({"O1": Flow(140, 117), "O2": Flow(120, 90)})  # mu_1, lambda_2, mu_2, lambda_3 of Table II (a)
QUEUES = {"O1": 0.0, "O2": 7.0, "O3": 20.0}


def table_2(**fields: object) -> View:
    placed = allocation(TABLE_2, hosts=4, replicas={"O1": 2, "O2": 2, "O3": 2})
    return seen(TABLE_2, placed, rows=100.0, queued=QUEUES, flows=MEASURED, **fields)  # type: ignore[arg-type]


def test_the_rows_predicted_in_table_2() -> None:
    predicted = predict(table_2(), {"source": 100.0})
    assert [math.ceil(p.received) for p in predicted.values()] == [100, 84, 63]  # Eq. (2a)
    assert [p.queued for p in predicted.values()] == [0, 7, 20]  # Eq. (3)
    assert [math.ceil(p.rows) for p in predicted.values()] == [100, 91, 83]  # Eq. (4)


def test_the_rows_predicted_in_table_2_with_the_thetas_printed_there() -> None:
    """The table has 0.833 and 0.625 where its own counts make 0.836 and 0.627. That changes no number of the table."""
    printed = replace(table_2(), gains={"source": {"O1": 1.0, "O2": 0.833, "O3": 0.625}})
    assert [math.ceil(p.rows) for p in predict(printed, {"source": 100.0}).values()] == [100, 91, 83]


@pytest.mark.parametrize(("rows", "execution_time_s", "replicas"), [(100, 0.0166, 2), (91, 0.025, 3), (83, 0.1, 9)])
def test_the_replicas_of_table_2(rows: float, execution_time_s: float, replicas: int) -> None:
    assert replicas_needed(rows, execution_time_s, 1.0) == replicas  # Eq. (1)


def test_the_decision_of_table_2() -> None:
    decision = decide(table_2())
    assert counts(decision) == {"O1": 2, "O2": 3, "O3": 9}
    # (100 x 16.6 + 90.6 x 25 + 82.7 x 100) ms of work in a second are 12.19 cores: 5 hosts of 4 at 0.7.
    assert len(decision.planned.hosts) == 5
    assert decision.reason == (
        "O2 will have 84 + 7 rows of 25 ms in 1 s: 2 -> 3 replicas; "
        "O3 will have 63 + 20 rows of 100 ms in 1 s: 2 -> 9 replicas; 12.19 cores at 0.70: 4 -> 5 hosts"
    )


def test_figure_3_the_same_rows_need_the_more_replicas_the_longer_they_take() -> None:
    """2, 1 and 4 replicas within 1000 ms; the figure's own execution times are not in the text."""
    assert [replicas_needed(20, et, 1.0) for et in (0.1, 0.05, 0.2)] == [2, 1, 4]


def test_figure_5_every_operator_is_sized_by_its_part_of_the_input() -> None:
    """theta is 1, 0.7, 0.3 and 0.58; 100 rows of 100 ms each in a second."""
    streams = [("O1", "O2", 0.7), ("O1", "O3", 0.3), ("O2", "O4", 0.4), ("O3", "O4", 1.0)]
    app = application(
        *(replicated(f"O{i}", 0.1) for i in (1, 2, 3, 4)),
        edges=tuple(Edge(upstream=a, downstream=b, selectivity=s) for a, b, s in streams),
    )
    decision = decide(seen(app, allocation(app), rows=100.0))
    assert counts(decision) == {"O1": 10, "O2": 7, "O3": 3, "O4": 6}


def test_figure_4_an_operator_is_ready_for_what_the_one_before_it_will_send_once_it_has_more_replicas() -> None:
    """O1 has processed 5 of 10 rows. That O2 has received only 5 does not count: it will have all 10."""
    app = application(replicated("O1", 0.2), replicated("O2", 0.2))
    view = seen(app, allocation(app), rows=10.0, queued={"O1": 5.0}, flows=Flows({"O1": Flow(5, 5)}))
    assert counts(decide(view)) == {"O1": 3, "O2": 2}


# --- what it looks at -------------------------------------------------------------------------------------------------


def test_a_forecast_takes_the_place_of_the_last_input() -> None:
    assert counts(decide(table_2(forecast=forecast(300.0, 1.0)))) == {"O1": 5, "O2": 7, "O3": 21}


def test_the_step_of_a_forecast_that_covers_the_next_interval_is_taken() -> None:
    by_minute = forecast(60.0, 900.0, interval_s=60.0)
    by_half_second = forecast(1.0, 60.0, 900.0, interval_s=0.5)
    for told in (by_minute, by_half_second):
        assert counts(decide(table_2(forecast=told))) == counts(decide(table_2(forecast=forecast(60.0))))


@pytest.mark.parametrize(
    "useless",
    [
        forecast(math.nan),
        forecast(math.inf),
        Forecast(interval_s=1.0, model="none", mean={}, upper={}),
        Forecast(interval_s=1.0, model="empty", mean={"source": np.array([])}, upper={}),
    ],
    ids=["nan", "inf", "another source", "empty"],
)
def test_a_forecast_that_says_no_number_is_not_looked_at(useless: Forecast) -> None:
    assert counts(decide(table_2(forecast=useless))) == {"O1": 2, "O2": 3, "O3": 9}


def test_a_forecast_below_zero_is_zero() -> None:
    assert counts(decide(table_2(forecast=forecast(-50.0)))) == {"O1": 1, "O2": 1, "O3": 2}  # what waits remains


def test_replicas_end_where_the_pool_of_them_does() -> None:
    app = application(replicated("O1", 0.1, max_replicas=5))
    decision = decide(seen(app, allocation(app), rows=90.0))
    assert counts(decision) == {"O1": 5}
    assert len(decision.planned.hosts) == 2  # 5 cores at 0.7, not 9
    (veto,) = decision.why_not
    assert str(veto) == (
        "predictive: not 9 replicas (O1 will have 90 + 0 rows of 100 ms in 1 s), because O1 may have no more than 5"
    )


def test_hosts_end_where_the_pool_does() -> None:
    view = table_2(pool=Pool(host=HostType(cores=4), min_hosts=4, max_hosts=4))
    decision = decide(view)
    assert len(decision.planned.hosts) == 4
    assert [(v.what, v.why) for v in decision.why_not] == [("5 hosts", "the pool has only 4 hosts")]
    idle = decide(replace(view, demand_rows_per_s={}, gains={}))
    assert idle.why_not[0].why == "the pool keeps at least 4 hosts"


def test_nothing_to_do_is_one_replica_of_each_operator() -> None:
    view = seen(TABLE_2, allocation(TABLE_2, hosts=2, replicas={"O3": 4}), rows=0.0)
    decision = decide(view)
    assert counts(decision) == {"O1": 1, "O2": 1, "O3": 1}
    assert len(decision.planned.hosts) == 1
    assert decision.expected.utilisation == 0.0


def test_what_is_enough_stays_as_it_is() -> None:
    first = decide(table_2())
    again = decide(seen(TABLE_2, first.planned, rows=100.0, queued=QUEUES, flows=MEASURED))
    assert again.planned is first.planned
    assert again.reason == "hold: 14 replicas on 5 hosts do for 12.19 cores at 0.70"
    assert again.expected.utilisation == pytest.approx(12.19 / 20, abs=0.1)


def test_hosts_are_as_busy_as_they_are_to_be() -> None:
    few, many = (decide(table_2(), Predictive(host_utilisation=u)) for u in (1.0, 0.4))
    assert (len(few.planned.hosts), len(many.planned.hosts)) == (4, 8)
    assert counts(few) == counts(many)
    assert few.expected.utilisation is not None
    assert many.expected.utilisation is not None
    assert few.expected.utilisation > many.expected.utilisation


def test_an_operator_of_which_nothing_was_seen_is_sized_by_what_the_application_says() -> None:
    view = table_2()
    without = {name: seen for name, seen in view.observation.operators.items() if name != "O3"}
    unseen = replace(view, observation=replace(view.observation, operators=without))
    assert counts(decide(unseen))["O3"] == 7  # 63 rows of 100 ms, and no queue


# --- stories in the simulator -----------------------------------------------------------------------------------------

CHAIN = application(replicated("parse", 0.004), operator("count", service_time_s=0.008, shards=64))
RAMP = np.concatenate([np.full(300, 100.0), np.linspace(100.0, 900.0, 600), np.full(600, 900.0), np.full(600, 100.0)])
PEAK_S = 900.0  # when the ramp ends


def run(told: Callable[[Observation], Forecast | None] = no_forecast, rows: FloatArray = RAMP) -> list[Point]:
    pool = Pool(host=HostType(cores=4, start_s=30.0), max_hosts=8)
    backend = SimulatorBackend(CHAIN, pool, SimulatorSettings(), rows[np.newaxis])
    totals = RunTotals()
    loop = ControlLoop(application=CHAIN, pool=pool, policy=POLICY, interval_s=30.0, forecast=told)
    loop.run(backend, totals, backend.duration_s)
    return totals.points


def knows(rows: FloatArray, factor: Callable[[float], float] = lambda _: 1.0) -> Callable[[Observation], Forecast]:
    """A forecast of the next interval's mean rate that is off by a factor of the time."""

    def told(seen: Observation) -> Forecast:
        start = int(seen.end_s)
        ahead = rows[start : start + 30]
        rate = float(ahead.mean()) if len(ahead) else float(rows[-1])
        return forecast(rate * factor(seen.end_s), interval_s=30.0)

    return told


def replicas_at(points: list[Point], time_s: float) -> int:
    return next(p.replicas for p in points if p.time_s >= time_s)


def test_replicas_grow_all_along_a_ramp_and_are_there_at_its_peak() -> None:
    points = run()
    climb = [replicas_at(points, t) for t in (300, 450, 600, 750, PEAK_S)]
    assert climb == sorted(set(climb))
    # 900 rows/s of 4 and of 8 ms are 3.6 and 7.2 cores: 4 and 8 replicas, and one more of each at most for what waits.
    assert 12 <= replicas_at(points, PEAK_S + 60) <= 14
    assert points[-1].replicas == 2
    assert points[-1].backlog_rows == pytest.approx(0, abs=1)


def test_with_a_forecast_they_grow_earlier_and_less_waits() -> None:
    without = run()
    with_one = run(knows(RAMP))
    climbing = [(a.replicas, b.replicas) for a, b in zip(without, with_one, strict=True) if 300 < a.time_s <= PEAK_S]
    assert all(late <= early + 1 for late, early in climbing)
    assert sum(early for _, early in climbing) > sum(late for late, _ in climbing)
    assert sum(p.backlog_rows for p in with_one) < 0.8 * sum(p.backlog_rows for p in without)


@pytest.mark.parametrize("factor", [0.0, 0.3, 20.0], ids=["none", "too low", "too high"])
def test_after_a_wrong_forecast_it_recovers(factor: float) -> None:
    """Wrong from the middle of the ramp until five minutes after its peak: what waits is in the queue, and is counted."""
    points = run(knows(RAMP, lambda time_s: factor if 600 <= time_s < 1200 else 1.0))
    assert max(p.hosts for p in points) <= 8
    assert max(p.backlog_rows for p in points if p.time_s >= 1410) < 900  # one second's rows
    assert replicas_at(points, 1440) == replicas_at(run(knows(RAMP)), 1440) == 12


def test_what_a_forecast_denies_is_still_worked_off_from_the_queue() -> None:
    """Told for ever that nothing comes, it processes in each interval what came in the last."""
    points = run(knows(RAMP, lambda _: 0.0))
    assert max(p.backlog_rows for p in points) < 4 * 900 * 30
    assert points[-1].backlog_rows < 2 * 100 * 30


def test_it_recovers_from_too_few_replicas_and_a_full_queue() -> None:
    burst = np.concatenate([np.full(60, 100.0), np.full(120, 2000.0), np.full(600, 100.0)])
    points = run(rows=burst)
    assert max(p.backlog_rows for p in points) > 10_000
    assert points[-1].backlog_rows == pytest.approx(0, abs=1)
    assert points[-1].replicas == 2
