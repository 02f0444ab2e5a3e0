"""The tuple model against closed forms: M/M/1, M/M/k and M/D/1 within 5 %."""

from __future__ import annotations

import math

import numpy as np
import pytest
from worlds import one_operator, simulate

from springtide.backends.simulator.settings import Arrivals, ServiceTimes
from springtide.model.observation import Latency

SERVICE_S = 0.1
STEP_S = SERVICE_S / 25


def erlang_c(servers: int, load: float) -> float:
    """The probability that a row has to wait, when `load` servers are busy on average."""
    waiting = load**servers / math.factorial(servers) / (1 - load / servers)
    return waiting / (sum(load**n / math.factorial(n) for n in range(servers)) + waiting)


def mean_sojourn_s(servers: int, utilisation: float) -> float:
    wait_s = erlang_c(servers, utilisation * servers) * SERVICE_S / (servers * (1 - utilisation))
    return wait_s + SERVICE_S


def simulated(
    servers: int, utilisation: float, rows: int, seed: int, service_times: ServiceTimes = ServiceTimes.EXPONENTIAL
) -> Latency:
    """The latency of a queue with Poisson arrivals, fed with about `rows` rows."""
    rate_per_s = utilisation * servers / SERVICE_S
    steps = round(rows / rate_per_s / STEP_S)
    return simulate(
        one_operator(service_time_s=SERVICE_S),
        np.full((1, steps), rate_per_s * STEP_S),
        replicas=servers,
        seed=seed,
        step_s=STEP_S,
        arrivals=Arrivals.POISSON,
        service_times=service_times,
    ).latency


@pytest.mark.parametrize(("utilisation", "rows"), [(0.5, 60_000), (0.8, 200_000), (0.9, 400_000)])
def test_m_m_1(utilisation, rows):
    latency = simulated(1, utilisation, rows, seed=1)
    expected_s = mean_sojourn_s(1, utilisation)
    assert latency.mean_s == pytest.approx(expected_s, rel=0.05)
    # The sojourn in M/M/1 is exponential, so every percentile is known.
    for share, measured_s in ((0.1, latency.p10_s), (0.5, latency.p50_s), (0.9, latency.p90_s), (0.99, latency.p99_s)):
        assert measured_s == pytest.approx(-math.log(1 - share) * expected_s, rel=0.08, abs=STEP_S), share


@pytest.mark.parametrize(("servers", "utilisation", "rows"), [(2, 0.7, 200_000), (4, 0.8, 300_000), (8, 0.9, 500_000)])
def test_m_m_k(servers, utilisation, rows):
    latency = simulated(servers, utilisation, rows, seed=2)
    assert latency.mean_s == pytest.approx(mean_sojourn_s(servers, utilisation), rel=0.05)


@pytest.mark.parametrize(("utilisation", "rows"), [(0.5, 60_000), (0.8, 200_000)])
def test_m_d_1(utilisation, rows):
    """With constant service a row waits half as long on average (Pollaczek and Khinchine)."""
    latency = simulated(1, utilisation, rows, seed=1, service_times=ServiceTimes.CONSTANT)
    assert latency.mean_s == pytest.approx(SERVICE_S * (1 + utilisation / (2 * (1 - utilisation))), rel=0.05)


def test_the_closed_form_itself():
    assert mean_sojourn_s(1, 0.5) == pytest.approx(2 * SERVICE_S)
    assert erlang_c(1, 0.8) == pytest.approx(0.8)
    assert erlang_c(2, 1.0) == pytest.approx(1 / 3)
