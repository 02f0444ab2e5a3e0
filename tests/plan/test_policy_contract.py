"""What holds for every policy, whatever it is given: run over all that are registered.

A policy added to the registry is tested here without a word; `EAGER` may name parameters that make it act sooner.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from observations import view

from factories import application, operator
from springtide.errors import SpringtideError
from springtide.model.allocation import Allocation, HostType, OperatorAllocation, Pool
from springtide.model.application import Grouping
from springtide.model.observation import HostState
from springtide.model.protocols import AnyPolicy, View
from springtide.plan.parameters import parameter_types
from springtide.plan.registry import cite, make_policy, policies

unhurried = settings(max_examples=25, deadline=None)

EAGER: Mapping[str, Mapping[str, object]] = {
    "static": {"replicas": 3, "hosts": 2},
    "local-thresholds": {"consecutive": 1, "grace_s": 0},
    "global-thresholds": {"consecutive": 1, "grace_s": 0},
    "sarsa": {"consecutive": 1, "grace_s": 0, "impact": 0.9},
    "hierarchical": {"capacity": 9, "tokens_per_minute": 60, "beta": 0, "seed": 3},
    "elastic-executors": {"executors": 3, "t_max_s": 0.002, "phi_bytes_per_s": 1000},
    "naive-ec": {"executors": 2, "t_max_s": 0.002, "theta": 1.0},
    "resource-centric": {"t_max_s": 0.002, "theta": 1.0},
    "ds2": {"metrics_window_s": 0, "stabilisation_interval_s": 0, "scale_down_interval_s": 0},
    "hpa": {"scale_down_window_s": 0},
    "spark-dynamic-allocation": {"executor_idle_timeout_s": 20},
    "dabs": {"window": 2, "upper": 0.6, "lower": 0.3},
    "cost-balance": {"horizon": 2, "window": 2, "reroute_price": 100_000},
}
BOTH = [(name, {}) for name in policies()] + [(name, parameters) for name, parameters in EAGER.items()]
every_policy = pytest.mark.parametrize("name", policies())
every_policy_both_ways = pytest.mark.parametrize(("name", "parameters"), BOTH, ids=lambda v: v if isinstance(v, str) else "")

APP = application(
    operator("parse", grouping=Grouping.SHUFFLE, max_replicas=5, state_bytes_per_shard=10),
    operator("count", shards=6, state_bytes_per_shard=20),
    operator("two", shards=4, max_replicas=2),
    operator("one", shards=3, max_replicas=1),
)


@dataclass(frozen=True)
class Scenario:
    """A start, a pool that allows it, and what each interval's load is, in cores per shard or replica."""

    start: Allocation
    pool: Pool
    loads: tuple[Mapping[str, float | list[float]], ...]
    state: HostState


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    count = draw(st.integers(1, 4))
    hosts = tuple(f"host-{i}" for i in range(count))
    pool = Pool(
        host=HostType(cores=draw(st.integers(1, 4)), memory_bytes=draw(st.sampled_from([100, 10_000]))),
        min_hosts=draw(st.integers(1, count)),
        max_hosts=count + draw(st.integers(0, 3)),
    )
    operators = {o.name: draw(_placed(hosts, o.shards if o.keyed else 0, o.replica_limit)) for o in APP.operators}
    total = st.sampled_from([0.0, 0.0, 0.1, 1.0, 3.0, 10.0])
    intervals = draw(st.integers(1, 4))
    loads = tuple(
        {o.name: draw(st.one_of(total, _skewed(o.shards) if o.keyed else total)) for o in APP.operators}
        for _ in range(intervals)
    )
    return Scenario(Allocation(hosts, operators), pool, loads, draw(st.sampled_from(HostState)))


def _placed(hosts: tuple[str, ...], shards: int, limit: int) -> st.SearchStrategy[OperatorAllocation]:
    """Any valid allocation, also one with replicas that serve nothing."""

    def routed(replica_hosts: list[str]) -> st.SearchStrategy[OperatorAllocation]:
        routes = st.lists(st.integers(0, len(replica_hosts) - 1), min_size=shards, max_size=shards)
        return routes.map(lambda found: OperatorAllocation(tuple(replica_hosts), tuple(found)))

    return st.lists(st.sampled_from(hosts), min_size=1, max_size=min(limit, 5)).flatmap(routed)


def _skewed(shards: int) -> st.SearchStrategy[list[float]]:
    return st.lists(st.floats(0, 1), min_size=shards, max_size=shards)


def views(scenario: Scenario, policy: AnyPolicy) -> list[tuple[View, Any]]:
    """What the policy sees, interval by interval, with the memory it has then; each plan is seen a while later."""
    found = []
    memory = policy.start()
    placed, requested = scenario.start, scenario.start
    for index, load in enumerate(scenario.loads):
        states = {placed.hosts[-1]: scenario.state} if index == 0 else {}
        now = view(APP, placed, load, index=index, pool=scenario.pool, requested=requested, states=states)
        found.append((now, memory))
        decision, memory = policy.decide(now, memory)
        placed, requested = requested, decision.planned
    return found


def fingerprint(seen: View) -> object:
    """All of a view that could be changed by mistake."""
    observed = seen.observation
    arrays = [
        array.copy()
        for o in observed.operators.values()
        for array in (o.shards.busy_s, o.shards.rows, o.shards.state_bytes, o.shards.backlog_rows, o.replica_utilisation)
    ]
    return [a.tolist() for a in arrays], copy.deepcopy((observed.observed, observed.requested, observed.hosts, seen.pool))


@every_policy_both_ways
@unhurried
@given(scenario=scenarios())
def test_every_plan_is_valid_and_within_the_pool(name: str, parameters: Mapping[str, object], scenario: Scenario) -> None:
    policy = make_policy(name, parameters)
    for seen, memory in views(scenario, policy):
        decision, _ = policy.decide(seen, memory)
        decision.planned.check(APP)
        assert scenario.pool.min_hosts <= len(decision.planned.hosts) <= scenario.pool.max_hosts
        new = set(decision.planned.hosts) - set(seen.requested.hosts)
        assert not new & set(seen.observation.hosts)
        assert set(decision.planned.operators) == {o.name for o in APP.operators}


@every_policy_both_ways
@unhurried
@given(scenario=scenarios())
def test_a_policy_is_a_pure_function(name: str, parameters: Mapping[str, object], scenario: Scenario) -> None:
    policy = make_policy(name, parameters)
    for seen, memory in views(scenario, policy):
        view_before, memory_before = fingerprint(seen), copy.deepcopy(memory)
        first, second = policy.decide(seen, memory), policy.decide(seen, memory)
        assert first == second
        assert fingerprint(seen) == view_before
        assert memory == memory_before


@every_policy_both_ways
@unhurried
@given(scenario=scenarios())
def test_every_decision_says_why_and_what_it_expects(name: str, parameters: Mapping[str, object], scenario: Scenario) -> None:
    policy = make_policy(name, parameters)
    for seen, memory in views(scenario, policy):
        decision, _ = policy.decide(seen, memory)
        assert decision.reason.strip() == decision.reason != ""
        assert "\n" not in decision.reason
        assert decision.expected.utilisation is None or np.isfinite(decision.expected.utilisation)


@every_policy
def test_every_policy_cites_its_source_and_sums_itself_up(name: str) -> None:
    assert len(cite(name)) > 20
    assert policies()[name].summary
    assert policies()[name].__doc__


@every_policy
def test_parameters_survive_the_command_line(name: str) -> None:
    policy: Any = make_policy(name, EAGER.get(name, {}))
    as_text = {field.name: str(getattr(policy, field.name)) for field in dataclasses.fields(policy)}
    assert make_policy(name, as_text) == policy
    assert hash(policy) == hash(make_policy(name, as_text))


NUMBERS = [(name, p) for name, policy in policies().items() for p, t in parameter_types(policy).items() if t in (int, float)]


@pytest.mark.parametrize(("name", "parameter"), NUMBERS)
@pytest.mark.parametrize("value", [-1, "-7", "a few"])
def test_a_number_that_cannot_be_is_refused_by_name(name: str, parameter: str, value: object) -> None:
    with pytest.raises(SpringtideError) as mistake:
        make_policy(name, {parameter: value})
    assert name in str(mistake.value)
    assert parameter in str(mistake.value)
    assert str(value) in str(mistake.value)
    assert "\n" not in str(mistake.value)


@every_policy
def test_an_unknown_parameter_is_refused(name: str) -> None:
    with pytest.raises(SpringtideError, match="has no parameter 'bananas'"):
        make_policy(name, {"bananas": 1})
