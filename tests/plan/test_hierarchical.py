"""Stories of operators that ask and an application that grants (Cardellini et al. 2017, EDF), on hosts of 4 cores."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from observations import INTERVAL_S, POOL, Cores, placed_on, play, replicas, shards, view

from factories import application, latency, operator
from springtide.backends.simulator.settings import Activation, Failure, SimulatorSettings
from springtide.model.allocation import Allocation, HostType, OperatorAllocation, Pool
from springtide.model.application import SLO, Application, Grouping
from springtide.model.decision import Decision
from springtide.model.protocols import AnyPolicy, View
from springtide.plan.guards.gain_cost import GainCost
from springtide.plan.hierarchy.nearness import by_nearness
from springtide.plan.policies.hierarchical import Hierarchical, HierarchicalMemory
from springtide.report.summary import Point
from springtide.simulation import Simulation
from springtide.workload.generators import constant, steps
from springtide.workload.traces import Trace

EVERYTHING = Hierarchical(capacity=99, tokens_per_minute=999.0, beta=0.0)  # the paper's baseline: all requests are accepted
PARSE = application(operator("parse", grouping=Grouping.SHUFFLE))
COUNT = application(operator("count"))
FIVE = application(*(operator(f"q{i}", grouping=Grouping.SHUFFLE) for i in range(5)))


def decide(policy: Hierarchical, seen: View, decisions: int = 0) -> Decision:
    return policy.decide(seen, HierarchicalMemory(tokens=policy.capacity, decisions=decisions))[0]


def counts(app: Application, placed: Allocation, load: Cores, policy: Hierarchical = EVERYTHING) -> dict[str, int]:
    planned = decide(policy, view(app, placed, load)).planned
    return {name: operator.replicas for name, operator in planned.operators.items()}


def test_the_closer_a_host_the_likelier_it_is_asked_first() -> None:
    first = Counter(by_nearness({"a": 1.0, "b": 2.0, "c": 4.0}, np.random.default_rng((7, i)))[0] for i in range(3000))
    for host, share in {"a": 4 / 7, "b": 2 / 7, "c": 1 / 7}.items():
        assert first[host] / 3000 == pytest.approx(share, abs=0.03)


def test_every_host_is_asked_once_and_one_at_no_delay_first() -> None:
    orders = {by_nearness({"a": 1.0, "b": 1.0, "c": 0.0}, np.random.default_rng(i)) for i in range(20)}
    assert orders == {("c", "a", "b"), ("c", "b", "a")}


@pytest.mark.parametrize(("cores", "after"), [([0.70, 0.4], 2), ([0.71, 0.4], 3), ([0.9, 0.9], 3)])
def test_one_more_replica_above_the_scale_out_threshold(cores: Sequence[float], after: int) -> None:
    assert counts(PARSE, placed_on(parse=(0, 0)), {"parse": cores}) == {"parse": after}


@pytest.mark.parametrize(("cores", "after"), [(1.04, 2), (1.06, 3)])  # 0.52 and 0.53 each in one fewer; 0.75 x 0.7 is 0.525
def test_one_replica_fewer_when_the_others_would_be_far_below_the_threshold(cores: float, after: int) -> None:
    assert counts(PARSE, placed_on(parse=(0, 0, 0)), {"parse": cores}) == {"parse": after}


def test_an_only_replica_stays() -> None:
    assert counts(PARSE, placed_on(parse=(0,)), {"parse": 0.0}) == {"parse": 1}


def test_the_replica_that_goes_is_one_of_the_two_busiest() -> None:
    seen = view(PARSE, placed_on(parse=(0, 1, 2, 3)), {"parse": [0.1, 0.3, 0.35, 0.05]})
    gone = Counter()
    for turn in range(40):
        planned = decide(EVERYTHING, seen, turn).planned
        gone.update({f"host-{i}" for i in range(4)} - set(planned.operators["parse"].replica_hosts))
    assert set(gone) == {"host-1", "host-2"}
    assert min(gone.values()) > 8


def test_a_keyed_operator_shares_its_shards_by_load_when_it_grows_and_when_it_shrinks() -> None:
    grown = decide(EVERYTHING, view(COUNT, placed_on(count=shards(*[0] * 8)), {"count": 0.8})).planned.operators["count"]
    assert sorted(Counter(grown.shard_replicas).values()) == [4, 4]
    placed = placed_on(count=OperatorAllocation(("host-0",) * 3, (0, 0, 0, 1, 1, 1, 2, 2)))
    shrunk = decide(EVERYTHING, view(COUNT, placed, {"count": 0.4})).planned.operators["count"]
    assert sorted(Counter(shrunk.shard_replicas).values()) == [4, 4]


def test_a_shard_that_alone_keeps_a_replica_busy_gets_no_more_of_them() -> None:
    placed = placed_on(count=OperatorAllocation(("host-0", "host-0"), (0, 1, 1, 1, 1, 1, 1, 1)))
    decision = decide(EVERYTHING, view(COUNT, placed, {"count": [0.8, *[0.08] * 7]}))
    assert decision.planned is placed
    assert decision.reason.startswith("hold: no scale-out of count (its busiest replica at 0.80 > 0.70), because one shard")
    assert str(decision.why_not[0]) == (
        "hierarchical: not scale-out of count (its busiest replica at 0.80 > 0.70), "
        "because one shard alone keeps its busiest replica as busy as it is"
    )


def test_an_even_split_that_needs_several_more_replicas_is_reached_one_by_one() -> None:
    """8 shards of 0.4: two on the busiest of 4, 5, 6 or 7 replicas, and one on each of 8."""
    placed = placed_on(count=OperatorAllocation(("host-0",) * 4, (0, 1, 2, 3, 0, 1, 2, 3)))
    story = list(play(EVERYTHING, COUNT, placed, [{"count": 3.2}] * 8))
    assert [d.planned.operators["count"].replicas for d in story] == [5, 6, 7, 8, 8, 8, 8, 8]


def test_a_scale_in_that_skew_would_turn_into_a_scale_out_is_not_proposed() -> None:
    placed = placed_on(count=OperatorAllocation(("host-0",) * 3, (0, 1, 2, 2, 2, 2, 2, 2)))
    thirds = [0.35, 0.35, 0.35, 0, 0, 0, 0, 0]  # two of them on one of two replicas, though 1.05 / 2 is below 0.9 x 0.6
    decision = decide(replace(EVERYTHING, scale_out_above=0.6, scale_in_share=0.9), view(COUNT, placed, {"count": thirds}))
    assert decision.planned is placed
    assert decision.why_not[0].why == "its busiest replica would be at 0.70"


def test_a_scale_in_that_would_overload_a_host_is_not_proposed() -> None:
    app = application(*(operator(name, grouping=Grouping.SHUFFLE) for name in ("other", "parse")))
    placed = placed_on(other=(0, 0, 0, 0), parse=(0, 1))  # host-0 is at 0.70, and at 0.75 with all of parse
    seen = view(app, placed, {"other": 2.6, "parse": 0.4})
    story = [decide(EVERYTHING, seen, turn) for turn in range(20)]
    assert {d.planned.operators["parse"].replica_hosts for d in story} == {("host-0", "host-1"), ("host-1",)}
    assert {veto.why for d in story for veto in d.why_not} == {"a host would be above 0.70"}


def test_a_replica_leaves_an_overloaded_host_and_the_others_see_that_it_does() -> None:
    placed = placed_on(hosts=2, q0=(0,), q1=(0,), q2=(0,), q3=(0,), q4=(0,))
    decision = decide(EVERYTHING, view(FIVE, placed, {f"q{i}": 0.6 for i in range(5)}))
    assert decision.reason == "host-0 at 0.75 > 0.70: a replica of q0 at 0.60 to host-1"
    assert decision.planned == placed.with_operator("q0", replicas(1))
    assert decision.expected.utilisation == pytest.approx(0.6)
    assert decision.why_not == ()


def test_a_host_without_room_is_passed_over() -> None:
    placed = placed_on(hosts=4, q0=(0,), q1=(0, 0, 0, 0, 0), q2=(1, 1, 1, 1, 1), q3=(2,), q4=(3,))
    load = {"q0": 0.5, "q1": 2.5, "q2": 2.7, "q3": 0.5, "q4": 0.5}  # host-0 at 0.75, host-1 at 0.68
    chosen = {decide(EVERYTHING, view(FIVE, placed, load), i).planned.operators["q0"].replica_hosts for i in range(30)}
    assert chosen == {("host-2",), ("host-3",)}


def test_a_new_host_is_added_when_no_other_has_room() -> None:
    placed = placed_on(q0=(0,), q1=(0,), q2=(0,), q3=(0,), q4=(0,))
    seen = view(FIVE, placed, {f"q{i}": 0.6 for i in range(5)})
    decision = decide(EVERYTHING, seen)
    assert decision.planned.hosts == ("host-0", "host-1")
    assert "a replica of q0 at 0.60 to new host-1" in decision.reason
    refused = decide(EVERYTHING, replace(seen, pool=replace(POOL, max_hosts=1)))
    assert refused.planned is placed
    assert str(refused.why_not[0]) == (
        "hierarchical: not migration of q0 (host-0 at 0.75 > 0.70), "
        "because no host would stay at 0.70 or below with it, and the pool has only 1 host"
    )


def test_a_new_replica_stays_with_the_others_as_long_as_there_is_room() -> None:
    placed = placed_on(hosts=3, parse=(1,))
    seen = view(PARSE, placed, {"parse": 0.9}, pool=replace(POOL, min_hosts=3))
    assert {decide(EVERYTHING, seen, i).planned.operators["parse"] for i in range(10)} == {replicas(1, 1)}


def test_a_host_that_nothing_is_left_on_is_released_but_the_pool_keeps_its_least() -> None:
    placed = placed_on(hosts=3, parse=(0,))
    decision = decide(EVERYTHING, view(PARSE, placed, {"parse": 0.5}))
    assert decision.planned.hosts == ("host-0",)
    assert decision.reason == "nothing is left on host-1, host-2: release"
    kept = decide(EVERYTHING, view(PARSE, placed, {"parse": 0.5}, pool=replace(POOL, min_hosts=2)))
    assert kept.planned.hosts == ("host-0", "host-1")


def test_one_token_goes_to_scale_out_before_migration_before_scale_in() -> None:
    app = application(*(operator(name, grouping=Grouping.SHUFFLE) for name in ("fewer", "elsewhere", "more")))
    pool = Pool(host=HostType(cores=1))
    placed = placed_on(hosts=4, fewer=(0, 1), elsewhere=(2, 2), more=(3,))
    load = {"fewer": 0.1, "elsewhere": 0.76, "more": 0.9}
    asked = {}
    for tokens in (1, 2, 3):
        decision = decide(replace(EVERYTHING, capacity=tokens), view(app, placed, load, pool=pool))
        asked[tokens] = [n for n in app.operators if decision.planned.operators[n.name] != placed.operators[n.name]]
        assert len([w for w in decision.why_not if "token" in w.why]) == 3 - tokens
    assert [[o.name for o in found] for found in asked.values()] == [
        ["more"],
        ["elsewhere", "more"],
        ["fewer", "elsewhere", "more"],
    ]


def test_an_operator_asks_for_nothing_while_its_last_change_is_under_way() -> None:
    before, asked = placed_on(parse=(0,)), placed_on(parse=(0, 0))
    assert decide(EVERYTHING, view(PARSE, before, {"parse": 1.0}, requested=asked)).planned is asked


def test_tokens_come_with_the_response_time() -> None:
    """Section 4: R_max is 200 ms, beta 0.5, and a token a minute comes above 100 ms."""
    app = application(operator("parse", grouping=Grouping.SHUFFLE), slo=SLO(latency_s=0.2))
    grown = {}
    for response_s in (0.09, 0.11):
        policy, placed, grown[response_s] = Hierarchical(calm_tokens_per_minute=0.0), placed_on(parse=(0,)), []
        memory = policy.start()
        for index in range(7):
            seen = view(app, placed, {"parse": 0.8 * placed.operators["parse"].replicas}, index=index)
            slow = replace(seen.observation, latency=latency(1.0, response_s))
            decision, memory = policy.decide(replace(seen, observation=slow), memory)
            placed = decision.planned
            grown[response_s].append(placed.operators["parse"].replicas)
    assert INTERVAL_S == 20.0
    assert grown == {0.09: [2] * 7, 0.11: [2, 2, 2, 3, 3, 3, 4]}


def test_what_is_not_granted_says_why() -> None:
    decision = Hierarchical().decide(view(PARSE, placed_on(parse=(0,)), {"parse": 0.9}), HierarchicalMemory(tokens=0.0))[0]
    assert decision.reason.startswith("hold: not granted: parse: its busiest replica at 0.90 > 0.70: 1 -> 2 replicas")
    (veto,) = decision.why_not
    assert veto.who == "hierarchical"
    assert veto.what == "parse 1 -> 2 replicas"
    assert veto.why == (
        "the bucket held 0.167 tokens for 1 request, and this scale-out gains 3 for 0.5 s of downtime; "
        "tokens come slowly, as a response time of 0.2 s is not above 2.5 s"
    )


def test_a_constant_load_is_left_alone_once_it_is_served() -> None:
    story = list(play(EVERYTHING, PARSE, placed_on(parse=(0,)), [{"parse": 2.6}] * 12))
    assert [d.planned.operators["parse"].replicas for d in story] == [2, 3, *[4] * 10]
    assert story[-1].reason == "no operator asks for anything: busiest host-0 at 0.65"


PIPELINE = application(
    operator("parse", service_time_s=0.01, grouping=Grouping.SHUFFLE),
    operator("count", service_time_s=0.01, shards=16, state_bytes_per_shard=1_000_000),
)


def simulated(trace: Trace, policy: AnyPolicy, min_hosts: int = 1, **settings: object) -> list[Point]:
    simulation = Simulation(
        trace=trace,
        application=PIPELINE,
        pool=Pool(host=HostType(cores=4, start_s=20.0), min_hosts=min_hosts, max_hosts=8),
        settings=SimulatorSettings(**settings),  # type: ignore[arg-type]
        policy=policy,
        policy_name="hierarchical",
    )
    return simulation.run()[1]


def test_hosts_come_with_a_spike_and_go_after_it() -> None:
    trace = steps(levels=(60.0, 300.0, 60.0), hold_s=1800.0)
    points = {p.time_s: p for p in simulated(trace, Hierarchical())}
    most = max(p.hosts for p in points.values())
    assert points[1800.0].hosts == 1
    assert most >= 3
    assert points[5400.0].hosts <= most - 2
    assert points[5400.0].replicas == points[1800.0].replicas + 2  # 0.3 each in two: one alone would be above 0.525
    strict = simulated(trace, Hierarchical(calm_tokens_per_minute=0.0))
    assert strict[-1].replicas >= max(p.replicas for p in strict) - 1  # section 4: one token was left, and no more came


def test_a_constant_load_comes_to_rest() -> None:
    points = simulated(constant(rate_per_s=150.0, duration_s=3600.0), Hierarchical())
    assert len({(p.hosts, p.replicas) for p in points if p.time_s > 900.0}) == 1


def after_a_stop(seen: View, busy: float, **fields: object) -> View:
    """What is seen of operators of which each replica was busy for another share of the time than its rows take."""
    operators = {
        name: replace(o, replica_utilisation=np.full(len(o.replica_utilisation), busy))
        for name, o in seen.observation.operators.items()
    }
    hosts = {name: replace(host, utilisation=busy) for name, host in seen.observation.hosts.items()}
    return replace(seen, observation=replace(seen.observation, operators=operators, hosts=hosts, **fields))


def test_an_interval_with_a_stop_is_no_reason_for_fewer_replicas() -> None:
    placed = placed_on(parse=(0, 0, 0))
    seen = view(PARSE, placed, {"parse": 1.8})  # 0.6 each, and 0.9 in one fewer
    assert decide(EVERYTHING, after_a_stop(seen, 0.2)).planned.operators["parse"].replicas == 2
    stopped = decide(EVERYTHING, after_a_stop(seen, 0.2, downtime_s=15.0))
    assert stopped.planned is placed
    assert stopped.reason == "no operator asks for anything: busiest host-0 at 0.45"
    as_measured = replace(EVERYTHING, discounts_stops=0)
    assert decide(as_measured, after_a_stop(seen, 0.2, downtime_s=15.0)).planned.operators["parse"].replicas == 2


def test_rows_that_a_stop_left_waiting_are_no_reason_for_more_replicas() -> None:
    placed = placed_on(count=OperatorAllocation(("host-0", "host-0"), (0, 0, 0, 0, 1, 1, 1, 1)))
    seen = view(COUNT, placed, {"count": 1.2})
    left = HierarchicalMemory(tokens=9.0, rows_left=True)
    drained = after_a_stop(seen, 1.0)
    assert decide(EVERYTHING, drained).planned.operators["count"].replicas == 3
    decision, memory = EVERYTHING.decide(drained, left)
    assert decision.planned is placed
    assert not memory.rows_left  # nothing waits any more


def test_too_much_load_is_seen_through_a_stop() -> None:
    seen = view(PARSE, placed_on(parse=(0, 0)), {"parse": 1.6})
    grown = decide(EVERYTHING, after_a_stop(seen, 0.3, downtime_s=12.0))
    assert grown.planned.operators["parse"].replicas == 3
    assert "its busiest replica at 0.80 > 0.70" in grown.reason


def test_a_stop_is_remembered_as_long_as_its_rows_wait() -> None:
    seen = view(PARSE, placed_on(parse=(0, 0)), {"parse": 1.0})
    waiting = {"parse": replace(seen.observation.operators["parse"], backlog_rows=1e6)}
    stopped = replace(seen, observation=replace(seen.observation, operators=waiting, downtime_s=20.0))
    memory = EVERYTHING.decide(stopped, EVERYTHING.start())[1]
    assert memory.rows_left
    busy = replace(stopped, observation=replace(stopped.observation, downtime_s=0.0))
    assert EVERYTHING.decide(busy, memory)[1].rows_left
    assert not EVERYTHING.decide(busy, EVERYTHING.start())[1].rows_left  # rows wait, but no stop has left them


@pytest.mark.parametrize("restart_s", [15.0, 30.0, 60.0])
def test_a_constant_load_comes_to_rest_however_long_a_stop_lasts(restart_s: float) -> None:
    trace = constant(rate_per_s=150.0, duration_s=3600.0)
    points = simulated(trace, EVERYTHING, activation=Activation.RESTART, restart_s=restart_s)
    assert {p.replicas for p in points if p.time_s > 1200.0} == {6}  # 1.5 cores each of two operators, at 0.7 at most


def test_a_lost_host_is_replaced_up_to_the_least_the_pool_keeps() -> None:
    points = simulated(constant(rate_per_s=40.0, duration_s=900.0), Hierarchical(), 2, failures=(Failure(at_s=300.0),))
    hosts = {p.time_s: p.hosts for p in points}
    assert (hosts[300.0], hosts[600.0]) == (1, 2)


def test_the_policy_is_its_local_layer_inside_the_guard() -> None:
    trace = steps(levels=(60.0, 250.0, 60.0), hold_s=600.0)
    whole, inside = Hierarchical(capacity=2, seed=5), replace(EVERYTHING, seed=5)
    assert simulated(trace, whole) == simulated(trace, GainCost(inside, capacity=2))
    assert simulated(trace, whole) != simulated(trace, inside)
