"""What holds for all policies that give operators what they need: PSPS, DABS-Storm, SREA, SPEA and CBA."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from observations import placed_on, replicas, view

from factories import allocation, application, operator
from springtide.backends.simulator.settings import Failure, SimulatorSettings
from springtide.model.allocation import HostType, Pool
from springtide.model.application import Grouping
from springtide.model.observation import HostState
from springtide.model.protocols import Forecast, View
from springtide.plan.registry import make_policy
from springtide.simulation import Simulation
from springtide.workload.generators import constant

every_policy = pytest.mark.parametrize("name", ["predictive", "dabs", "reactive", "proactive", "cost-balance"])

APP = application(operator("a", grouping=Grouping.SHUFFLE, max_replicas=3), operator("b", shards=1), operator("c", shards=6))
POOL = Pool(host=HostType(cores=2), min_hosts=2, max_hosts=4)


def forecast(rates: list[float]) -> Forecast:
    return Forecast(interval_s=20.0, model="told", mean={"source": np.array(rates)}, upper={"source": np.array(rates)})


def waiting(seen: View, rows: float) -> View:
    operators = {name: replace(o, backlog_rows=rows) for name, o in seen.observation.operators.items()}
    return replace(seen, observation=replace(seen.observation, operators=operators))


@every_policy
@given(
    load=st.floats(0, 50),
    queued=st.floats(0, 1e7),
    told=st.one_of(st.none(), st.lists(st.floats(-1e6, 1e6) | st.just(np.nan), max_size=3).map(forecast)),
    state=st.sampled_from(HostState),
    hosts=st.integers(1, 4),
)
@settings(max_examples=50, deadline=None)
def test_whatever_waits_or_is_forecast_the_plan_is_valid(
    name: str, load: float, queued: float, told: Forecast | None, state: HostState, hosts: int
) -> None:
    policy = make_policy(name, {})
    placed = allocation(APP, hosts=hosts, replicas={"c": 4})
    states = {placed.hosts[-1]: state}
    memory = policy.start()
    for index in range(3):
        moment = view(APP, placed, dict.fromkeys("abc", load), index=index, pool=POOL, states=states, forecast=told)
        decision, memory = policy.decide(waiting(moment, queued), memory)
        decision.planned.check(APP)
        assert 2 <= len(decision.planned.hosts) <= 4
        assert 0 <= (decision.expected.utilisation or 0.0) <= 1
        placed, states = decision.planned, {}


@every_policy
def test_the_reason_names_the_first_operators_and_counts_the_others(name: str) -> None:
    app = application(*(operator(f"q{i}") for i in range(6)))
    policy = make_policy(name, {})
    busy = view(app, allocation(app), {o.name: 1.5 for o in app.operators})
    decision = policy.decide(busy, policy.start())[0]
    assert decision.reason.count("1 -> 2 replicas") == 3
    assert "; 3 operators more; 9.00 cores at 0.70: 1 -> 4 hosts" in decision.reason


@every_policy
def test_a_host_that_is_lost_is_replaced(name: str) -> None:
    """Three replicas of 0.9 cores each, on hosts of two cores."""
    simulation = Simulation(
        trace=constant(rate_per_s=270.0, duration_s=900.0),
        application=application(operator("parse", service_time_s=0.01, grouping=Grouping.SHARED)),
        pool=Pool(host=HostType(cores=2, start_s=20.0), max_hosts=4),
        settings=SimulatorSettings(failures=(Failure(at_s=400.0),)),
        policy=make_policy(name, {}),
        policy_name=name,
    )
    summary, points = simulation.run()
    hosts = {p.time_s: p.hosts for p in points}
    assert (hosts[390.0], hosts[870.0]) == (2, 2)
    assert 3 <= points[-1].replicas <= 5  # what waited may have left DABS with some that it has no reason to give away
    assert summary.rows.backlog == pytest.approx(0, abs=1)


@every_policy
def test_nothing_moves_while_the_numbers_stay_as_they_are(name: str) -> None:
    """One replica has nearly all the rows. Which shards are whose is not decided here."""
    app = application(operator("count", shards=8))
    policy = make_policy(name, {})
    skewed = [1.4, *[0.05] * 7]
    seen = view(app, allocation(app, hosts=1, replicas={"count": 2}), {"count": skewed})
    assert policy.decide(seen, policy.start())[0].planned is seen.requested


@every_policy
def test_replicas_of_a_host_that_goes_are_taken_up_by_the_others(name: str) -> None:
    app = application(operator("parse", grouping=Grouping.SHUFFLE))
    policy = make_policy(name, {})
    seen = view(app, placed_on(parse=replicas(0, 0, 1, 1)), {"parse": 1.8}, states={"host-1": HostState.STARTING})
    decision = policy.decide(seen, policy.start())[0]
    assert decision.planned.hosts == ("host-0",)
    assert decision.planned.operators["parse"].replica_hosts == ("host-0", "host-0")
