"""Elasticutor's section 4.1: Eq. (1), and the greedy allocation of cores against every other one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.errors import InvalidValue
from springtide.model.application import SLO
from springtide.plan.sizing.jackson import Network, fewest_servers, network_sojourn_s
from springtide.plan.sizing.objective import mean_within
from springtide.plan.sizing.queueing import mean_sojourn_s

unhurried = settings(deadline=None, max_examples=120)
MOST = 7


def network(*loads: float, service: float = 1000.0, source: float = 1000.0, most: int = 99) -> Network:
    """Queues that are offered so many cores; a row takes 1 ms, as in the paper's section 5.1."""
    return Network(
        source_per_s=source,
        arrivals_per_s=[load * service for load in loads],
        service_per_s=[service] * len(loads),
        most_servers=[most] * len(loads),
    )


def every_allocation(queues: Network) -> Iterable[tuple[int, ...]]:
    """Each with which every queue is stable."""
    return itertools.product(*(range(least, MOST + 1) for least in queues.stable_servers))


small_networks = st.lists(st.tuples(st.floats(0, 3.5), st.sampled_from([10.0, 100.0, 1000.0])), min_size=1, max_size=3).map(
    lambda queues: Network(
        source_per_s=500.0,
        arrivals_per_s=[load * service for load, service in queues],
        service_per_s=[service for _, service in queues],
        most_servers=[MOST] * len(queues),
    )
)


def test_equation_1_weighs_each_queue_by_how_often_rows_pass_it() -> None:
    # 1,000 rows/s enter, and each makes two of the second operator: E[T] = E[T_1] + 2 E[T_2].
    queues = network(1.0, 2.0)
    by_hand_s = mean_sojourn_s(1000, 1000, 2) + 2 * mean_sojourn_s(2000, 1000, 4)
    assert network_sojourn_s(queues, [2, 4]) == pytest.approx(by_hand_s)
    assert network_sojourn_s(queues, [2, 4]) == pytest.approx(0.001 * (4 / 3) + 0.002 * (1 + (4 / 23) / 2))


def test_one_more_than_the_whole_cores_that_are_busy_makes_a_queue_stable() -> None:
    assert network(0.0, 0.4, 1.0, 2.999, 3.0).stable_servers == [1, 1, 2, 3, 4]
    assert fewest_servers(network(0.4, 2.5), 10.0, 99).servers == (1, 3)


def test_without_rows_everyone_has_one_core_and_nobody_waits() -> None:
    sizing = fewest_servers(network(0.0, 0.0, source=0.0), 0.001, 99)
    assert (sizing.servers, sizing.sojourn_s) == ((1, 1), 0.0)
    assert network_sojourn_s(network(0.0, source=0.0), [1]) == 0.0


@given(queues=small_networks, slack=st.floats(1.01, 4.0))
@unhurried
def test_no_allocation_with_fewer_cores_reaches_t_max(queues: Network, slack: float) -> None:
    service_s = sum(a / s for a, s in zip(queues.arrivals_per_s, queues.service_per_s, strict=True)) / queues.source_per_s
    t_max_s = slack * service_s
    sizing = fewest_servers(queues, t_max_s, 99)
    assert network_sojourn_s(queues, sizing.servers) == pytest.approx(sizing.sojourn_s)
    reaching = [k for k in every_allocation(queues) if network_sojourn_s(queues, k) <= t_max_s]
    if not reaching:
        assert sizing.sojourn_s > t_max_s
        return
    assert sizing.sojourn_s <= t_max_s
    fewest = min(map(sum, reaching))
    assert sum(sizing.servers) == fewest
    # And of those with as few cores it is one with the lowest E[T].
    lowest_s = min(network_sojourn_s(queues, k) for k in reaching if sum(k) == fewest)
    assert sizing.sojourn_s == pytest.approx(lowest_s)


@given(queues=small_networks, spare=st.integers(0, 5))
@unhurried
def test_when_t_max_cannot_be_reached_all_cores_are_given_away_as_well_as_can_be(queues: Network, spare: int) -> None:
    available = sum(queues.stable_servers) + spare
    sizing = fewest_servers(queues, 0.0, available)
    assert sum(sizing.servers) <= available
    others = [k for k in every_allocation(queues) if sum(k) <= available]
    assert sizing.sojourn_s <= min(network_sojourn_s(queues, k) for k in others) * (1 + 1e-6)


def test_cores_that_bring_nothing_are_not_taken() -> None:
    # Service alone takes 1 ms: 0.5 ms are out of reach, and after a few cores nobody waits any more.
    sizing = fewest_servers(network(1.0), 0.0005, 1000)
    assert sum(sizing.servers) < 20
    assert sizing.sojourn_s == pytest.approx(0.001, rel=1e-6)


@given(loads=st.lists(st.floats(0.1, 6), min_size=1, max_size=4), short=st.integers(1, 8))
@unhurried
def test_with_too_few_cores_the_busiest_queue_is_as_little_busy_as_can_be(loads: list[float], short: int) -> None:
    queues = network(*loads)
    available = max(len(loads), sum(queues.stable_servers) - short)
    if available >= sum(queues.stable_servers):
        return
    sizing = fewest_servers(queues, 1.0, available)
    assert sizing.sojourn_s == math.inf
    assert sum(sizing.servers) == available

    def busiest(servers: tuple[int, ...]) -> float:
        return max(load / k for load, k in zip(loads, servers, strict=True))

    others = (k for k in itertools.product(range(1, 8), repeat=len(loads)) if sum(k) == available)
    assert busiest(sizing.servers) <= min(map(busiest, others)) + 1e-12


def test_there_may_be_fewer_cores_than_queues() -> None:
    assert fewest_servers(network(0.5, 0.5, 2.5), 1.0, 2).servers == (1, 1, 1)


def test_a_queue_at_its_own_limit_is_left_out_and_said() -> None:
    queues = network(5.0, 0.5, most=4)
    sizing = fewest_servers(queues, 0.0011, 99)
    assert sizing.saturated == (0,)
    assert sizing.servers[0] == 4
    # The second queue alone: half of the rows pass it, for at least 1 ms each.
    assert sizing.sojourn_s == pytest.approx(0.5 * mean_sojourn_s(500, 1000, sizing.servers[1]))
    assert sizing.sojourn_s <= 0.0011


def test_figures_must_be_of_the_same_queues() -> None:
    with pytest.raises(InvalidValue, match="one figure of each kind per queue"):
        Network(source_per_s=1.0, arrivals_per_s=[1.0], service_per_s=[1.0, 2.0], most_servers=[1])


def test_an_slo_is_a_mean_if_latencies_are_exponential() -> None:
    assert mean_within(SLO(latency_s=5.0, percentile=0.9)) == pytest.approx(5.0 / math.log(10))
    # With one server they are: the percentile of the mean is the SLO's latency again.
    mean_s = mean_within(SLO(latency_s=1.0, percentile=0.99))
    assert -math.log(0.01) * mean_s == pytest.approx(1.0)
