"""Latency percentiles come from cumulative curves: where a closed form exists, they agree with it."""

from __future__ import annotations

import numpy as np
import pytest
from worlds import chain, one_operator, operator, phases, simulate, steady

from springtide.model.application import Grouping

SERVICE_S = 0.01
CAPACITY_PER_S = 1 / SERVICE_S


def overload_latencies_s(rate_per_s: float, overload_s: float) -> np.ndarray:
    """Latency of each row of `overload_s` seconds at `rate_per_s`, served at the capacity: (rate / capacity - 1) t."""
    arrived_s = np.linspace(0, overload_s, 200_001)
    return (rate_per_s / CAPACITY_PER_S - 1) * arrived_s


@pytest.mark.parametrize("rate_per_s", [120.0, 200.0, 500.0])
@pytest.mark.parametrize("grouping", [Grouping.SHARED, Grouping.SHUFFLE, Grouping.KEY])
def test_an_overload_that_drains(rate_per_s, grouping):
    step_s, overload_s = 1.0, 100.0
    rows = phases((rate_per_s, overload_s), (0.0, 600.0))
    run = simulate(one_operator(service_time_s=SERVICE_S, grouping=grouping), rows)
    exact = overload_latencies_s(rate_per_s, overload_s)
    latency = run.latency
    assert run.backlog() == pytest.approx(0, abs=1e-6)
    assert latency.rows == pytest.approx(rate_per_s * overload_s)
    assert latency.mean_s == pytest.approx(exact.mean(), abs=0.5 * step_s)
    for share, measured_s in ((0.1, latency.p10_s), (0.5, latency.p50_s), (0.9, latency.p90_s), (0.99, latency.p99_s)):
        assert measured_s == pytest.approx(np.quantile(exact, share), abs=0.5 * step_s, rel=0.002), share
    assert latency.max_s == pytest.approx(exact.max(), abs=step_s)


def test_smaller_steps_come_closer_to_the_closed_form():
    exact = overload_latencies_s(170.0, 60.0)
    for step_s in (2.0, 0.5, 0.1):
        rows = phases((170.0, 60.0), (0.0, 120.0), step_s=step_s)
        measured = simulate(one_operator(service_time_s=SERVICE_S), rows, step_s=step_s, interval_s=30.0).latency
        assert measured.p50_s == pytest.approx(np.quantile(exact, 0.5), abs=0.5 * step_s + SERVICE_S, rel=0.002)


def test_the_second_of_two_operators_is_the_bottleneck():
    app = chain(operator("fast", service_time_s=0.001), operator("slow", service_time_s=SERVICE_S))
    latency = simulate(app, phases((200.0, 100.0), (0.0, 300.0))).latency
    exact = overload_latencies_s(200.0, 100.0)
    assert latency.mean_s == pytest.approx(exact.mean(), abs=0.5)
    assert latency.p90_s == pytest.approx(np.quantile(exact, 0.9), abs=0.5, rel=0.002)


def test_rows_filtered_by_the_first_operator_do_not_load_the_second():
    app = chain(operator("fast", service_time_s=0.001), operator("slow", service_time_s=SERVICE_S))
    run = simulate(app, steady(90.0, seconds=60))
    assert run.latency.p99_s < 0.1


def test_a_row_in_an_idle_application_takes_its_service_time():
    app = chain(operator("a", service_time_s=0.02), operator("b", service_time_s=0.03))
    latency = simulate(app, steady(5.0, seconds=60)).latency
    assert latency.p50_s == pytest.approx(0.05, rel=0.03)


def test_a_full_queue_drops_what_exceeds_the_capacity_and_bounds_the_latency():
    bound = 500
    run = simulate(one_operator(service_time_s=SERVICE_S, queue_rows=bound), steady(150.0, seconds=200))
    assert run.offered() == pytest.approx(run.processed() + run.dropped() + run.backlog())
    # It takes 10 s to fill the queue; from then on 50 rows a second are too many.
    assert run.dropped() == pytest.approx(50 * 190, rel=0.02)
    assert run.latency.max_s <= bound / CAPACITY_PER_S + 1.0


def test_no_row_leaves_later_than_its_time_out():
    timeout_s = 7.0
    run = simulate(one_operator(service_time_s=SERVICE_S, timeout_s=timeout_s), phases((300.0, 100.0), (0.0, 60.0)))
    assert run.latency.max_s <= timeout_s + 1.0
    assert run.dropped() > 0
    assert run.offered() == pytest.approx(run.processed() + run.dropped())
