"""The policy that knows the future: cheapest of all ways there are, and early enough."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from observations import INTERVAL_S, placed_on, shards, view

from factories import application, operator
from springtide.backends.simulator.settings import SimulatorSettings
from springtide.model.allocation import HostType, Pool
from springtide.model.application import SLO, Grouping
from springtide.model.protocols import FORESIGHT, Forecast, View
from springtide.plan.horizon.lateness import SUSTAINED_S, USUAL_PART, late_core_s, price_of_late_work
from springtide.plan.policies.oracle import Oracle
from springtide.plan.registry import make_policy
from springtide.report.summary import Point, RunSummary
from springtide.simulation import Simulation
from springtide.workload.traces import Trace

APP = application(
    operator("parse", grouping=Grouping.SHUFFLE, max_replicas=2), operator("count", shards=2), slo=SLO(latency_s=5.0)
)
PLACED = placed_on(parse=(0,), count=shards(0, 0))
POOL = Pool(host=HostType(cores=1, start_s=INTERVAL_S), min_hosts=1, max_hosts=3)


def foreseeing(cores: list[float]) -> View:
    """A view at one core of work for each operator, with the future as factors of that."""
    seen = view(APP, PLACED, {"parse": 1.0, "count": 1.0}, pool=POOL)
    rates = {source: rows / INTERVAL_S * np.array(cores) for source, rows in seen.observation.source_rows.items()}
    return replace(seen, forecast=Forecast(interval_s=INTERVAL_S, model=FORESIGHT, mean=rates, upper=rates))


def cost(way: tuple[tuple[int, int, int], ...], demand: list[float], oracle: Oracle) -> float:
    """Of hosts and replicas in each interval, added up as the cost model says: replicas cost nothing, cores are shared."""
    total, hosts_before = 0.0, 1
    host = POOL.host
    price = price_of_late_work(USUAL_PART * (1 - APP.slo.percentile))
    for (hosts, parse, count), work in zip(way, demand, strict=True):
        served = min(hosts * host.cores, parse + count) * oracle.utilisation
        late = float(late_core_s(np.array(2 * work), np.array(served), APP.slo.latency_s, SUSTAINED_S))
        total += hosts * host.cores * INTERVAL_S + price * late * INTERVAL_S / SUSTAINED_S
        more = hosts - hosts_before
        total += host.cores * (host.start_s * max(0, more) + host.release_s * max(0, -more) + oracle.change_s * (more != 0))
        hosts_before = hosts
    return total


@pytest.mark.parametrize("demand", [[0.3, 0.3, 1.4, 1.4], [1.4, 0.2, 0.2, 1.4], [0.4, 0.9, 1.4, 0.4], [1.5, 1.5, 0.1, 0.1]])
@pytest.mark.parametrize("change_s", [0.0, 30.0])
def test_no_combination_of_hosts_and_replicas_is_cheaper(demand: list[float], change_s: float) -> None:
    oracle = Oracle(change_s=change_s)
    _, memory = oracle.decide(foreseeing(demand), oracle.start())
    found = cost(tuple((hosts, 2, 2) for hosts in memory.hosts), demand, oracle)
    every = itertools.product(itertools.product((1, 2, 3), (1, 2), (1, 2)), repeat=len(demand))
    assert found == pytest.approx(min(cost(way, demand, oracle) for way in every))


def test_hosts_are_asked_for_so_early_that_they_run_when_they_are_needed() -> None:
    oracle = Oracle()
    memory = oracle.start()
    calm, memory = oracle.decide(foreseeing([0.3, 0.3, 1.4, 1.4, 1.4]), memory)
    assert len(calm.planned.hosts) == 1
    seen = foreseeing([0.3, 1.4, 1.4, 1.4])
    later = replace(seen, observation=replace(seen.observation, index=1, start_s=INTERVAL_S, end_s=2 * INTERVAL_S))
    early, _ = oracle.decide(later, memory)
    assert len(early.planned.hosts) == 3
    assert "the future" in early.reason


def test_without_a_forecast_the_present_is_all_there_is() -> None:
    oracle = Oracle()
    decision, _ = oracle.decide(view(APP, PLACED, {"parse": 1.4, "count": 1.4}, pool=POOL), oracle.start())
    assert len(decision.planned.hosts) == 3
    assert "the present" in decision.reason


def simulated(name: str) -> tuple[RunSummary, list[Point]]:
    app = application(operator("parse", grouping=Grouping.SHUFFLE), operator("count", shards=32))
    rows = np.concatenate([np.full(600, 500.0), np.full(600, 8000.0), np.full(1800, 500.0)])
    return Simulation(
        trace=Trace(name="jump", step_s=1.0, counts=rows),
        application=app,
        pool=Pool(host=HostType(cores=4), max_hosts=8),
        settings=SimulatorSettings(interval_s=30.0),
        policy=make_policy(name, {}),
        policy_name=name,
    ).run()


def test_a_jump_that_is_known_is_met_and_costs_less_than_when_it_is_not() -> None:
    oracle, _ = simulated("oracle")
    tide, _ = simulated("tide")
    assert oracle.slo_violation_share < 0.01 < tide.slo_violation_share
    assert oracle.core_hours < tide.core_hours
