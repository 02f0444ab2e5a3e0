"""More of anything never makes a row wait longer: replicas, cores, bandwidth."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from worlds import chain, one_operator, operator, phases, simulate

from springtide.backends.simulator.settings import ServiceModel
from springtide.model.application import Application, Grouping
from springtide.model.observation import Latency

# Percentiles are read off a histogram with bins of 0.2 %.
BIN = 1.002
RATES = st.just(0.0) | st.floats(0.1, 900)
LOADS = st.lists(st.tuples(RATES, st.sampled_from([5.0, 20.0, 60.0])), min_size=1, max_size=6)
Loads = list[tuple[float, float]]


def drained(loads: Loads, step_s: float = 1.0) -> NDArray[np.float64]:
    """Rates for some seconds each, and then silence for as long as one replica needs for what is left."""
    left_s = sum(rate * seconds for rate, seconds in loads) * 0.02
    return phases(*loads, (0.0, 10.0 + left_s), step_s=step_s)


def assert_each_not_worse_than_the_one_before(latencies: list[Latency], *, within_s: float = 0.0) -> None:
    """The mean to the last digit; percentiles, each known to half a step, to within `within_s`."""
    for few, many in itertools.pairwise(latencies):
        assert many.rows == pytest.approx(few.rows, rel=1e-9), "not the same rows"
        assert many.mean_s <= few.mean_s * (1 + 1e-9)
        for what in ("p10_s", "p50_s", "p90_s", "p99_s", "slo_s"):
            assert getattr(many, what) <= getattr(few, what) * BIN + within_s + 1e-9, what
        if within_s == 0:
            assert many.max_s <= few.max_s * (1 + 1e-9)


@pytest.mark.parametrize("grouping", [Grouping.SHARED, Grouping.SHUFFLE, Grouping.KEY])
@settings(max_examples=25)
@given(loads=LOADS)
def test_more_replicas_never_make_a_row_wait_longer(grouping: Grouping, loads: Loads) -> None:
    fields = {"grouping": grouping, "shards": 24, "max_replicas": 24}
    application = chain(operator("first", **fields), operator("second", service_time_s=0.004, **fields))
    # Each count divides the next, so that a replica's shards are shared out and never thrown together anew.
    latencies = [simulate(application, drained(loads), replicas=n).latency for n in (1, 2, 4, 8, 24)]

    assert_each_not_worse_than_the_one_before(latencies)


@pytest.mark.parametrize("step_s", [0.25, 1.0])
@settings(max_examples=15)
@given(loads=LOADS)
def test_more_replicas_anywhere_in_a_pipeline_never_make_a_row_wait_longer(step_s: float, loads: Loads) -> None:
    """The longest wait is left out: rows that come from one stage in one step are served by the next in no particular
    order, so the last of them may be put down as later than it is, by as long as that step's rows take."""
    rows = drained(loads, step_s)
    before = simulate(pipeline(), rows, step_s=step_s).latency
    for name in ("parse", "count", "store"):
        after = simulate(pipeline(), rows, replicas={name: 4}, step_s=step_s).latency
        assert_each_not_worse_than_the_one_before([before, after], within_s=step_s)


@settings(max_examples=25)
@given(loads=LOADS)
def test_more_cores_never_make_a_row_wait_longer(loads: Loads) -> None:
    latencies = [simulate(pipeline(), drained(loads), replicas=4, cores=cores).latency for cores in (1, 2, 3, 6, 12)]

    assert_each_not_worse_than_the_one_before(latencies)


@settings(max_examples=25)
@given(loads=LOADS)
def test_more_bandwidth_never_makes_a_row_wait_longer(loads: Loads) -> None:
    application = one_operator(row_bytes=10**6, service_time_s=0.001)
    hosts = [{"bandwidth_bytes_per_s": 1e6 * megabytes} for megabytes in (100, 200, 400, 800)]
    latencies = [simulate(application, drained(loads), host=host).latency for host in hosts]

    assert_each_not_worse_than_the_one_before(latencies)


def test_more_is_better_by_as_much_as_it_should_be() -> None:
    """The laws above would hold of a simulator in which nothing ever changes anything."""
    rows = drained([(250.0, 60.0)])
    few, enough = (simulate(one_operator(), rows, replicas=n).latency for n in (1, 3))

    assert few.max_s == pytest.approx(90.0, abs=0.5)
    assert enough.max_s == pytest.approx(0.01)


@settings(max_examples=15)
@given(loads=LOADS)
def test_more_replicas_make_micro_batches_shorter(loads: Loads) -> None:
    application = one_operator(grouping=Grouping.KEY, shards=8, service_time_s=0.002)
    means = [
        simulate(application, drained(loads), replicas=n, service=ServiceModel.MICRO_BATCH, step_s=0.5).latency.mean_s
        for n in (1, 2, 4, 8)
    ]
    assert all(many <= few * (1 + 1e-9) for few, many in itertools.pairwise(means))


def pipeline() -> Application:
    return chain(
        operator("parse", grouping=Grouping.SHUFFLE, service_time_s=0.006),
        operator("count", grouping=Grouping.KEY, shards=4),
        operator("store", grouping=Grouping.SHARED, service_time_s=0.003),
    )
