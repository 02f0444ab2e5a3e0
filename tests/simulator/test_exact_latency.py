"""Latency where it can be worked out on paper: queues that fill up and drain at constant rates.

With arrivals at rate a and capacity c < a, the row that comes at time t finds (a - c) t rows before it and leaves
(a/c - 1) t later, plus its own service time. The simulator must be right to within half a step, and a percentile to
within the 0.2 % of the histogram's bins.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from worlds import chain, one_operator, operator, phases, simulate, steady

from springtide.backends.simulator.settings import Activation, Delay
from springtide.model.action import SetReplicas
from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.model.application import Application, Edge, Grouping, Source
from springtide.model.observation import Latency

SHARES = {"p10_s": 0.1, "p50_s": 0.5, "p90_s": 0.9, "p99_s": 0.99}
SERVICE_S = 0.01
STEPS_S = (0.1, 0.5, 1.0, 2.0)
ONE_LANE = [
    {"grouping": Grouping.SHARED},
    {"grouping": Grouping.SHUFFLE},
    {"grouping": Grouping.LOAD_BALANCED},
    {"grouping": Grouping.KEY, "shards": 4},
]


def assert_latency(found: Latency, expected_s: NDArray[np.float64], *, within_s: float) -> None:
    """Mean, maximum and percentiles, beside equally heavy samples of what they should be."""
    assert found.mean_s == pytest.approx(expected_s.mean(), abs=within_s)
    assert found.max_s == pytest.approx(expected_s.max(), abs=within_s)
    for what, share in SHARES.items():
        assert getattr(found, what) == pytest.approx(np.quantile(expected_s, share), abs=within_s, rel=0.002), what


def every_row(
    waits_s: Callable[[NDArray[np.float64]], NDArray[np.float64]], rate: float, seconds: float
) -> NDArray[np.float64]:
    """The latency of each of the rows that come at a steady rate, from the time at which it comes."""
    return waits_s((np.arange(rate * seconds) + 0.5) / rate)


@pytest.mark.parametrize("step_s", STEPS_S)
@pytest.mark.parametrize("fields", ONE_LANE, ids=lambda f: str(f["grouping"]))
def test_a_queue_that_overflows_for_a_minute_and_drains(fields: dict[str, object], step_s: float) -> None:
    run = simulate(
        one_operator(**fields), phases((150, 60), (0, 60), step_s=step_s), step_s=step_s, interval_s=10.0, every_s=20.0
    )

    assert run.processed() == pytest.approx(9000)
    assert_latency(run.latency, every_row(lambda t: 0.5 * t + SERVICE_S, 150, 60), within_s=step_s / 2)


@pytest.mark.parametrize("step_s", STEPS_S)
def test_a_queue_that_drains_while_rows_still_come(step_s: float) -> None:
    run = simulate(one_operator(), phases((180, 50), (20, 100), step_s=step_s), step_s=step_s)

    filling = every_row(lambda t: 0.8 * t + SERVICE_S, 180, 50)
    draining = every_row(lambda t: np.maximum(0.0, 40 - 0.8 * t) + SERVICE_S, 20, 100)
    assert_latency(run.latency, np.concatenate([filling, draining]), within_s=step_s / 2)


@pytest.mark.parametrize(("replicas", "capacity"), [(2, 200), (4, 400), (5, 500)])
def test_replicas_share_the_work(replicas: int, capacity: int) -> None:
    for grouping in (Grouping.SHARED, Grouping.SHUFFLE, Grouping.LOAD_BALANCED):
        run = simulate(one_operator(grouping=grouping), phases((2 * capacity, 30), (0, 30)), replicas=replicas)

        assert_latency(run.latency, every_row(lambda t: t + SERVICE_S, 2 * capacity, 30), within_s=0.5)


@pytest.mark.parametrize("step_s", STEPS_S)
@pytest.mark.parametrize("first_capacity", [400, 125])
def test_a_pipeline_is_as_slow_as_its_second_stage(first_capacity: float, step_s: float) -> None:
    """Whether the first stage keeps up or not, what comes at t leaves the slower second one at t a/c."""
    application = chain(operator("parse", service_time_s=1 / first_capacity), operator("count", service_time_s=0.0125))
    run = simulate(application, phases((150, 60), (0, 90), step_s=step_s), step_s=step_s)

    own_s = 1 / first_capacity + 0.0125
    assert_latency(run.latency, every_row(lambda t: (150 / 80 - 1) * t + own_s, 150, 60), within_s=step_s / 2)


def test_a_pipeline_is_as_slow_as_its_first_stage() -> None:
    application = chain(operator("parse", service_time_s=0.0125), operator("count", service_time_s=0.002))
    run = simulate(application, phases((150, 60), (0, 90)))

    assert_latency(run.latency, every_row(lambda t: (150 / 80 - 1) * t + 0.0145, 150, 60), within_s=0.5)


def test_the_slowest_shard_sets_the_pace() -> None:
    """Two replicas, one of which serves three of four equal shards: a quarter of the rows never wait."""
    application = one_operator(grouping=Grouping.KEY, shards=4)
    start = Allocation(("host-0",), {"work": OperatorAllocation(("host-0", "host-0"), (0, 0, 0, 1))})
    run = simulate(application, phases((200, 60), (0, 60)), start=start)

    shares = run.last.operators["work"].shards.rows / run.last.operators["work"].offered_rows
    rates = [200 * shares[:3].sum(), 200 * shares[3]]
    waits = [every_row(lambda t, a=rate: max(0.0, a / 100 - 1) * t + SERVICE_S, rate, 60) for rate in rates]
    assert_latency(run.latency, np.concatenate(waits), within_s=0.5)


@pytest.mark.parametrize("step_s", [0.001, 0.02, 0.2, 1.0])
@pytest.mark.parametrize("service_time_s", [0.002, 0.05, 0.4])
def test_a_row_that_never_waits_takes_its_service_time(service_time_s: float, step_s: float) -> None:
    application = chain(operator("a", service_time_s=service_time_s), operator("b", service_time_s=service_time_s / 2))
    run = simulate(application, steady(2.0, seconds=20, step_s=step_s), step_s=step_s)

    for found in (run.latency.mean_s, run.latency.p10_s, run.latency.p99_s):
        assert found == pytest.approx(1.5 * service_time_s, rel=0.002)


@pytest.mark.parametrize("delay_s", [0.02, 0.3, 5.0])
def test_a_network_delay_is_added_exactly(delay_s: float) -> None:
    application = chain(operator("parse"), operator("count", service_time_s=0.0125))
    rows = phases((100, 60), (0, 30))
    near = simulate(application, rows, hosts=2)
    far = simulate(application, rows, hosts=2, network_delay_s=delay_s)

    assert far.latency.mean_s == pytest.approx(near.latency.mean_s + delay_s)
    assert far.latency.max_s == pytest.approx(near.latency.max_s + delay_s)
    for what in SHARES:
        assert getattr(far.latency, what) == pytest.approx(getattr(near.latency, what) + delay_s, rel=0.002)


def test_a_delay_may_be_that_of_one_pair_of_hosts() -> None:
    application = chain(operator("a"), operator("b"), operator("c"))  # on hosts 0, 1 and 2
    named = (Delay(between=("host-1", "host-0"), delay_s=2.0),)
    run = simulate(application, steady(10, seconds=30), hosts=3, network_delay_s=0.25, delays=named)

    assert run.latency.mean_s == pytest.approx(3 * SERVICE_S + 2.0 + 0.25)


def test_a_delay_counts_for_the_rows_that_go_to_another_host() -> None:
    """Two replicas here and two there: half of the rows change host between the operators."""
    application = chain(operator("a", grouping=Grouping.SHUFFLE), operator("b", grouping=Grouping.SHUFFLE))
    run = simulate(application, steady(10, seconds=30), hosts=2, replicas=2, network_delay_s=1.0)

    assert run.latency.mean_s == pytest.approx(2 * SERVICE_S + 0.5)


def test_smaller_steps_come_closer_to_the_truth() -> None:
    expected = every_row(lambda t: 0.5 * t + SERVICE_S, 150, 60)
    errors = []
    for step_s in (4.0, 2.0, 1.0, 0.5, 0.1):
        run = simulate(one_operator(), phases((150, 60), (0, 60), step_s=step_s), step_s=step_s, interval_s=20.0)
        found = [getattr(run.latency, what) for what in SHARES]
        errors.append(max(abs(f - np.quantile(expected, s)) for f, s in zip(found, SHARES.values(), strict=True)))

    assert errors[-1] < 0.06  # 0.2 % of 30 s
    assert all(error <= 0.5 * step_s + 0.06 for error, step_s in zip(errors, (4.0, 2.0, 1.0, 0.5, 0.1), strict=True))


def test_rows_of_two_sources_wait_in_the_same_queue() -> None:
    application = Application(
        name="two",
        sources=(Source(name="web"), Source(name="app")),
        operators=(operator(),),
        edges=(Edge(upstream="web", downstream="work"), Edge(upstream="app", downstream="work", selectivity=0.5)),
    )
    rows = np.concatenate([phases((100, 60), (0, 60)), phases((100, 60), (0, 60))])
    run = simulate(application, rows)

    assert run.processed() == pytest.approx(9000)
    assert_latency(run.latency, every_row(lambda t: 0.5 * t + SERVICE_S, 150, 60), within_s=0.5)


class TestBoundedQueue:
    @pytest.mark.parametrize("step_s", STEPS_S)
    @pytest.mark.parametrize("queue_rows", [20, 150, 1000])
    def test_once_full_it_drops_what_comes_beyond_the_capacity(self, queue_rows: float, step_s: float) -> None:
        """Also where a step brings more rows than the queue holds."""
        run = simulate(one_operator(queue_rows=queue_rows), steady(150, seconds=60, step_s=step_s), step_s=step_s, every_s=30.0)

        last = run.last.operators["work"]
        assert last.dropped_rows == pytest.approx(30 * (150 - 100))
        assert last.processed_rows == pytest.approx(30 * 100)
        assert last.backlog_rows == pytest.approx(queue_rows)
        assert run.dropped() == pytest.approx(60 * 50 - queue_rows)

    @pytest.mark.parametrize("step_s", STEPS_S)
    def test_no_row_waits_longer_than_a_full_queue_takes(self, step_s: float) -> None:
        run = simulate(one_operator(queue_rows=500), phases((150, 120), (0, 60), step_s=step_s), step_s=step_s)

        filling = every_row(lambda t: 0.5 * t + SERVICE_S, 150, 10)
        full = np.full(100 * 110, 5.0 + SERVICE_S)
        assert_latency(run.latency, np.concatenate([filling, full]), within_s=step_s / 2)

    def test_a_queue_that_is_never_full_drops_nothing(self) -> None:
        for grouping in Grouping:
            run = simulate(one_operator(grouping=grouping, queue_rows=30), steady(95, seconds=60), replicas=2)
            assert run.dropped() == 0
            assert run.processed() == pytest.approx(95 * 60)

    def test_a_full_second_stage_does_not_slow_down_the_first(self) -> None:
        application = chain(operator("parse"), operator("count", service_time_s=0.02, queue_rows=10))
        run = simulate(application, steady(80, seconds=100), every_s=50.0)

        assert run.last.operators["parse"].processed_rows == pytest.approx(50 * 80)
        assert run.last.operators["count"].processed_rows == pytest.approx(50 * 50)
        assert run.last.operators["count"].dropped_rows == pytest.approx(50 * 30)

    def test_the_bound_is_the_operators_not_a_replicas(self) -> None:
        run = simulate(one_operator(grouping=Grouping.SHUFFLE, queue_rows=60), steady(500, seconds=30), replicas=4)

        assert run.backlog() == pytest.approx(60)
        assert run.processed() == pytest.approx(30 * 400)
        assert run.last.operators["work"].shards.backlog_rows.tolist() == pytest.approx([15.0] * 4)


class TestTimeOut:
    @pytest.mark.parametrize("step_s", STEPS_S)
    @pytest.mark.parametrize("fields", ONE_LANE, ids=lambda f: str(f["grouping"]))
    def test_no_row_leaves_older_than_the_time_out(self, fields: dict[str, object], step_s: float) -> None:
        run = simulate(
            one_operator(timeout_s=6.0, **fields), phases((250, 60), (0, 60), step_s=step_s), step_s=step_s, every_s=10.0
        )

        assert run.latency.max_s <= 6.0 + step_s
        assert run.latency.p90_s >= 6.0 - 2 * step_s  # nor is a row dropped before its time
        assert run.dropped() > 0
        assert run.processed() + run.dropped() == pytest.approx(250 * 60)

    def test_in_a_lasting_overload_it_drops_what_comes_beyond_the_capacity(self) -> None:
        run = simulate(one_operator(timeout_s=6.0), steady(250, seconds=120), every_s=60.0)

        assert run.last.operators["work"].processed_rows == pytest.approx(60 * 100, rel=0.01)
        assert run.last.operators["work"].dropped_rows == pytest.approx(60 * 150, rel=0.01)
        assert run.backlog() == pytest.approx(6.0 * 250, rel=0.2)

    def test_the_time_in_earlier_stages_counts(self) -> None:
        """Rows are seven seconds old when they reach the second stage, and a second stage that waits makes them ten."""
        application = chain(operator("a", queue_rows=700), operator("b", service_time_s=0.0125), timeout_s=10.0)
        run = simulate(application, phases((150, 100), (0, 60)), every_s=10.0)

        assert run.dropped("b") > 0
        assert run.latency.max_s <= 10.0 + 1.0
        assert run.at(100).operators["a"].latency_s == pytest.approx(7.0, abs=0.5)
        assert run.offered("b") == pytest.approx(run.processed("b") + run.dropped("b"))

    def test_it_takes_nothing_from_a_queue_that_keeps_up(self) -> None:
        run = simulate(one_operator(timeout_s=0.5), steady(100, seconds=60))

        assert run.dropped() == 0
        assert run.processed() == pytest.approx(6000)

    def test_rows_that_wait_for_a_stopped_operator_grow_too_old_as_well(self) -> None:
        restart = {10.0: [SetReplicas("work", ("host-0", "host-0"), before=1)]}
        run = simulate(
            one_operator(timeout_s=6.0),
            steady(50, seconds=60),
            script=restart,
            activation=Activation.RESTART,
            restart_s=20.0,
        )
        assert run.dropped() == pytest.approx(50 * (20 - 6), abs=50)
        assert run.latency.max_s <= 7.0
        assert run.processed() + run.dropped() == pytest.approx(3000)
