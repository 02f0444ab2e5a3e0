"""M/M/k: known values, other ways to the same figures, and what must hold of any queue."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special

from springtide.plan.sizing.queueing import erlang_b, erlang_c, mean_sojourn_s, sojourn_percentile_s, sojourn_tail

unhurried = settings(deadline=None, max_examples=150)
queues = st.tuples(st.floats(0.001, 0.999), st.integers(1, 60), st.floats(0.1, 5000.0))  # utilisation, servers, mu


def by_factorials(load: Fraction, servers: int) -> float:
    """Erlang's second formula as it is written in textbooks, exactly."""
    waiting = load**servers / math.factorial(servers) / (1 - load / servers)
    return float(waiting / (sum(load**n / math.factorial(n) for n in range(servers)) + waiting))


@pytest.mark.parametrize(
    ("offered", "servers", "blocking"), [(1.0, 1, 0.5), (2.0, 2, 0.4), (5.0, 10, 0.018385), (10.0, 10, 0.214582)]
)
def test_erlangs_loss_formula_has_the_values_of_the_tables(offered: float, servers: int, blocking: float) -> None:
    assert erlang_b(offered, servers) == pytest.approx(blocking, rel=1e-4)


@pytest.mark.parametrize("servers", [1, 2, 3, 8, 20, 50])
@pytest.mark.parametrize("utilisation", [Fraction(1, 10), Fraction(1, 2), Fraction(99, 100)])
def test_the_probability_of_waiting_is_the_textbooks(servers: int, utilisation: Fraction) -> None:
    load = utilisation * servers
    assert erlang_c(float(load), servers) == pytest.approx(by_factorials(load, servers), rel=1e-12)


@pytest.mark.parametrize(("offered", "servers"), [(990.0, 1000), (4000.0, 4100), (7990.0, 8000), (1.0, 2000)])
def test_thousands_of_servers_are_no_trouble(offered: float, servers: int) -> None:
    # B is a Poisson probability over a Poisson distribution, which scipy has in logarithms.
    log_poisson = servers * math.log(offered) - offered - special.gammaln(servers + 1)
    assert erlang_b(offered, servers) == pytest.approx(
        math.exp(log_poisson) / special.gammaincc(servers + 1, offered), rel=1e-8
    )
    assert math.isfinite(mean_sojourn_s(offered, 1.0, servers))


@given(utilisation=st.floats(0.01, 0.99), service=st.floats(0.1, 5000))
def test_one_server_is_m_m_1(utilisation: float, service: float) -> None:
    mean_s = 1 / (service - utilisation * service)
    assert mean_sojourn_s(utilisation * service, service, 1) == pytest.approx(mean_s)
    assert sojourn_percentile_s(utilisation * service, service, 1, 0.9) == pytest.approx(math.log(10) * mean_s)


def test_two_servers_by_hand() -> None:
    # a = 1, C = 1/3, and the wait of those who wait is 1 / (2 - 1) of a service time.
    assert mean_sojourn_s(1000.0, 1000.0, 2) == pytest.approx(0.001 * (1 + 1 / 3))


@given(queue=queues)
@unhurried
def test_the_mean_is_what_the_distribution_adds_up_to(queue: tuple[float, int, float]) -> None:
    utilisation, servers, service = queue
    arrivals = utilisation * servers * service
    slowest_per_s = min(service, servers * service - arrivals)
    area, _ = integrate.quad(
        lambda t: sojourn_tail(t, arrivals, service, servers), 0, 60 / slowest_per_s, limit=400, points=[1 / service]
    )
    assert area == pytest.approx(mean_sojourn_s(arrivals, service, servers), rel=1e-5)


@given(queue=queues, percentile=st.floats(0.01, 0.9999))
@unhurried
def test_a_percentile_is_the_time_that_so_many_rows_exceed(queue: tuple[float, int, float], percentile: float) -> None:
    utilisation, servers, service = queue
    time_s = sojourn_percentile_s(utilisation * servers * service, service, servers, percentile)
    assert sojourn_tail(time_s, utilisation * servers * service, service, servers) == pytest.approx(1 - percentile, rel=1e-6)


@pytest.mark.parametrize("nearly", [0.0, 1e-13, -1e-13, 1e-9, -1e-9])
def test_waiting_and_service_may_end_at_the_same_rate(nearly: float) -> None:
    # With a = k - 1 the general formula divides by zero; the limit is e^-t (1 + C t).
    delayed = erlang_c(2.0, 3)
    assert sojourn_tail(1.5, 2.0 + nearly, 1.0, 3) == pytest.approx(math.exp(-1.5) * (1 + delayed * 1.5), rel=1e-6)


def test_the_far_end_of_the_distribution_does_not_overflow() -> None:
    assert sojourn_tail(1e6, 1.9, 1.0, 2) == 0.0
    assert 0 < sojourn_tail(5000.0, 1.9, 1.0, 2) < 1e-200


@given(queue=queues)
@unhurried
def test_each_server_more_brings_less(queue: tuple[float, int, float]) -> None:
    """E[T] is convex in k, on which the greedy allocation of cores rests."""
    utilisation, servers, service = queue
    arrivals = utilisation * servers * service
    times_s = [mean_sojourn_s(arrivals, service, servers + more) for more in range(6)]
    gains = [a - b for a, b in pairwise(times_s)]
    rounding = 1e-12 * times_s[0]
    assert all(gain >= -rounding for gain in gains)
    assert all(a >= b - rounding for a, b in pairwise(gains))


def test_what_cannot_keep_up_takes_for_ever() -> None:
    assert mean_sojourn_s(3.0, 1.0, 3) == math.inf
    assert sojourn_percentile_s(3.1, 1.0, 3, 0.5) == math.inf
    assert sojourn_tail(1000.0, 3.0, 1.0, 3) == 1.0


def test_an_idle_queue_takes_as_long_as_service() -> None:
    assert mean_sojourn_s(0.0, 250.0, 4) == pytest.approx(0.004)
    assert sojourn_percentile_s(0.0, 250.0, 4, 0.5) == pytest.approx(0.004 * math.log(2))
