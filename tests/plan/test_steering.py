"""What people hold still stays, whatever a policy decides; hosts they want empty get empty; and the rest is the policy's."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from observations import placed_on, replicas, shards, view

from factories import application, operator
from springtide.errors import InvalidValue
from springtide.model.allocation import Allocation, HostType, OperatorAllocation, Pool
from springtide.model.application import Application, Grouping
from springtide.model.decision import Decision, Expectation, WhyNot
from springtide.model.protocols import View
from springtide.model.steering import UNSTEERED, Steering
from springtide.plan.steering import steered

WORDS = application(operator("parse", grouping=Grouping.SHUFFLE, max_replicas=5), operator("count", shards=6))
LOADS = {"parse": 1.0, "count": 1.0}
NOW = placed_on(hosts=3, parse=(0, 1), count=shards(0, 0, 1, 1, 2, 2))
LARGER = Allocation(
    ("host-0", "host-1", "host-2", "host-3"),
    {"parse": replicas(0, 1, 3), "count": OperatorAllocation(tuple(f"host-{i}" for i in range(4)), (0, 0, 1, 1, 2, 3))},
)


def seen(placed: Allocation = NOW, *, fewest: int = 1) -> View:
    return view(WORDS, placed, LOADS, pool=Pool(host=HostType(cores=4), min_hosts=fewest, max_hosts=5))


def planning(planned: Allocation) -> Decision:
    return Decision(planned=planned, reason="more is coming", expected=Expectation(utilisation=0.5))


def hosts_in_use(allocation: Allocation) -> set[str]:
    return {host for placed in allocation.operators.values() for host in placed.replica_hosts}


class TestPaused:
    def test_nothing_that_the_policy_plans_is_done_and_it_says_so(self) -> None:
        decision = steered(seen(), planning(LARGER), Steering(paused=True))

        assert decision.planned is NOW or decision.planned == NOW
        assert decision.reason == "more is coming"
        assert decision.expected == Expectation()
        (veto,) = decision.why_not
        assert (veto.who, veto.why) == ("operator", "paused by hand")
        assert veto.what.startswith("add host-3; parse 2 -> 3 replicas")

    def test_a_policy_that_plans_nothing_is_not_refused_anything(self) -> None:
        held = planning(NOW)
        assert steered(seen(), held, Steering(paused=True)) == held

    def test_what_people_want_is_done_all_the_same(self) -> None:
        decision = steered(seen(), planning(LARGER), Steering(paused=True, pins={"count": 2}, draining=frozenset({"host-2"})))

        assert decision.planned.hosts == ("host-0", "host-1")
        assert decision.planned.operators["count"].replicas == 2
        assert decision.planned.operators["parse"] == NOW.operators["parse"]


class TestPins:
    def test_a_pinned_operator_keeps_its_replicas_and_the_others_are_the_policys(self) -> None:
        decision = steered(seen(), planning(LARGER), Steering(pins={"count": 3}))

        assert decision.planned.operators["count"] is NOW.operators["count"], "it stays where it is"
        assert decision.planned.operators["parse"] == LARGER.operators["parse"]
        assert decision.planned.hosts == LARGER.hosts
        assert decision.why_not == (WhyNot("operator", "4 replicas of count", "pinned to 3 by hand"),)

    def test_a_pin_takes_effect_though_the_policy_plans_nothing(self) -> None:
        decision = steered(seen(), planning(NOW), Steering(pins={"count": 5}))

        count = decision.planned.operators["count"]
        assert count.replicas == 5
        assert {len(count.shards_of(r)) for r in range(5)} == {1, 2}, "every replica serves something"
        decision.planned.check(WORDS)

    def test_a_policy_that_agrees_may_place_them_as_it_likes(self) -> None:
        agreed = planning(LARGER)
        assert steered(seen(), agreed, Steering(pins={"count": 4})) == agreed

    def test_a_pinned_operator_leaves_hosts_that_go(self) -> None:
        smaller = placed_on(parse=(0,), count=shards(0, 0, 0, 0, 0, 0))
        decision = steered(seen(), planning(smaller), Steering(pins={"count": 3}))

        assert decision.planned.hosts == ("host-0",)
        assert decision.planned.operators["count"].replica_hosts == ("host-0",) * 3

    def test_there_are_never_more_replicas_than_can_do_work(self) -> None:
        decision = steered(seen(), planning(NOW), Steering(pins={"parse": 40, "count": 40}))

        assert {name: placed.replicas for name, placed in decision.planned.operators.items()} == {"parse": 5, "count": 6}

    def test_operators_that_there_are_not_are_nobodys_concern(self) -> None:
        held = planning(NOW)
        assert steered(seen(), held, Steering(pins={"cuont": 2})) == held

    def test_a_pin_to_nothing_cannot_be_built(self) -> None:
        with pytest.raises(InvalidValue, match="1 is the fewest"):
            Steering(pins={"count": 0})


class TestDraining:
    def test_nothing_stays_on_the_host_and_it_is_released(self) -> None:
        decision = steered(seen(), planning(NOW), Steering(draining=frozenset({"host-1"})))

        assert decision.planned.hosts == ("host-0", "host-2")
        assert {n: p.replicas for n, p in decision.planned.operators.items()} == {"parse": 2, "count": 3}
        assert decision.why_not == (WhyNot("operator", "keep host-1 in use", "drained by hand"),)

    def test_it_is_kept_empty_if_the_pool_needs_it_and_says_why(self) -> None:
        decision = steered(seen(fewest=3), planning(NOW), Steering(draining=frozenset({"host-1"})))

        assert decision.planned.hosts == NOW.hosts
        assert hosts_in_use(decision.planned) == {"host-0", "host-2"}
        assert [str(veto) for veto in decision.why_not] == [
            "operator: not keep host-1 in use, because drained by hand",
            "operator: not release host-1, because at least 3 hosts are needed; nothing is placed on it",
        ]

    def test_shards_do_not_move_to_and_fro_while_the_policy_wants_the_empty_host(self) -> None:
        drain = Steering(draining=frozenset({"host-1"}))
        first = steered(seen(fewest=3), planning(NOW), drain).planned
        again = steered(seen(first, fewest=3), planning(NOW), drain).planned

        assert again == first

    def test_the_last_host_keeps_what_it_has(self) -> None:
        alone = placed_on(parse=(0,), count=shards(0, 0, 0, 0, 0, 0))
        decision = steered(seen(alone), planning(alone), Steering(draining=frozenset({"host-0"})))

        assert decision.planned == alone
        assert decision.why_not[0].what == "drain host-0"

    def test_a_host_that_was_drained_does_not_come_back_under_its_name(self) -> None:
        """It is gone, and the policy takes the first free name for a new one."""
        decision = steered(seen(), planning(LARGER), Steering(draining=frozenset({"host-3"})))

        assert decision.planned.hosts == ("host-0", "host-1", "host-2", "host-4")
        assert decision.planned.operators["parse"].replica_hosts == ("host-0", "host-1", "host-4")
        assert decision.why_not == (WhyNot("operator", "add host-3", "it is drained by hand: host-4 instead"),)


# --- whatever is seen, planned and wanted ---------------------------------------------------------------------------------

APP = application(
    operator("parse", grouping=Grouping.SHUFFLE, max_replicas=5),
    operator("count", shards=6),
    operator("two", shards=4, max_replicas=2),
    operator("one", shards=3, max_replicas=1),
)
NAMES = tuple(f"host-{i}" for i in range(6))


@dataclass(frozen=True)
class Case:
    view: View
    decision: Decision
    steering: Steering


@st.composite
def allocations(draw: st.DrawFn, app: Application) -> Allocation:
    hosts = tuple(draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True)))
    operators = {}
    for o in app.operators:
        replica_hosts = draw(st.lists(st.sampled_from(hosts), min_size=1, max_size=o.replica_limit))
        count = o.shards if o.keyed else 0
        routes = draw(st.lists(st.integers(0, len(replica_hosts) - 1), min_size=count, max_size=count))
        operators[o.name] = OperatorAllocation(tuple(replica_hosts), tuple(routes))
    return Allocation(hosts, operators)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    now, planned = draw(allocations(APP)), draw(allocations(APP))
    loads = {o.name: draw(st.sampled_from([0.0, 0.1, 1.0, 3.0])) for o in APP.operators}
    pool = Pool(host=HostType(cores=draw(st.integers(1, 4))), min_hosts=draw(st.integers(1, 4)), max_hosts=5)
    steering = Steering(
        paused=draw(st.booleans()),
        pins=draw(st.dictionaries(st.sampled_from([o.name for o in APP.operators]), st.integers(1, 9), max_size=3)),
        draining=draw(st.frozensets(st.sampled_from(NAMES), max_size=3)),
    )
    requested = draw(st.sampled_from([now, draw(allocations(APP))]))
    return Case(view(APP, now, loads, pool=pool, requested=requested), planning(planned), steering)


many = settings(max_examples=150)


@many
@given(cases())
def test_what_is_wanted_holds_and_the_plan_is_valid(case: Case) -> None:
    decision = steered(case.view, case.decision, case.steering)
    planned, steering = decision.planned, case.steering
    planned.check(APP)
    assert set(planned.operators) == {o.name for o in APP.operators}
    for o in APP.operators:
        if o.name in steering.pins:
            assert planned.operators[o.name].replicas == min(steering.pins[o.name], o.replica_limit)
    still_used = hosts_in_use(planned) & steering.draining
    assert not still_used or set(planned.hosts) <= steering.draining, "only where there is no other host"
    assert not {h for h in planned.hosts if h in steering.draining and h not in case.view.requested.hosts}
    assert decision.reason == case.decision.reason


@many
@given(cases())
def test_there_are_no_more_hosts_than_planned_and_no_fewer_than_needed(case: Case) -> None:
    base = case.view.requested if case.steering.paused else case.decision.planned
    planned = steered(case.view, case.decision, case.steering).planned
    assert len(planned.hosts) <= len(base.hosts)
    assert len(planned.hosts) >= min(case.view.pool.min_hosts, len(base.hosts))


@many
@given(cases())
def test_everything_done_otherwise_than_planned_says_why(case: Case) -> None:
    decision = steered(case.view, case.decision, case.steering)
    if decision.planned != case.decision.planned:
        assert {veto.who for veto in decision.why_not} == {"operator"}
    again = steered(case.view, case.decision, copy.deepcopy(case.steering))
    assert again == decision, "it is a pure function"


@many
@given(cases())
def test_without_steering_a_decision_is_as_it_was(case: Case) -> None:
    assert steered(case.view, case.decision, UNSTEERED) is case.decision
