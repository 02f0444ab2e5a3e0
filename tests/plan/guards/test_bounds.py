import pytest
from guard_stories import APPLICATION, Scripted, allocations, placed, play, unhurried, view, why_nots
from hypothesis import given
from hypothesis import strategies as st

from factories import host_observation
from springtide.errors import InvalidValue
from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.plan.guards.bounds import Bounded
from springtide.plan.guards.replica_count import shards_by_replica


def test_surplus_new_hosts_are_left_out_and_their_replicas_go_where_there_are_fewest() -> None:
    (decision,) = play(Bounded(Scripted((placed(5, parse=10),)), max_hosts=3), placed(2), intervals=1)
    planned = decision.planned
    assert planned.hosts == ("host-0", "host-1", "host-2")
    assert planned.operators["parse"].replicas == 10
    assert [planned.replicas_on(h) for h in planned.hosts] == [4, 4, 4]
    assert why_nots(decision) == [
        "bounds: not 5 hosts, because at most 3 are allowed: without host-4, host-3, whose replicas go to the others"
    ]


def test_hosts_are_kept_when_too_few_would_be_left() -> None:
    (decision,) = play(Bounded(Scripted((placed(1),)), min_hosts=2), placed(3), intervals=1)
    assert len(decision.planned.hosts) == 2
    assert why_nots(decision) == ["bounds: not 1 host, because at least 2 are needed: host-1 as well"]


def test_hosts_are_added_when_fewer_than_needed_were_ever_requested() -> None:
    (decision,) = play(Bounded(Scripted((placed(1),)), min_hosts=3), placed(1), intervals=1)
    assert decision.planned.hosts == ("host-0", "host-1", "host-2")


def test_added_hosts_take_no_name_that_is_planned_or_still_there() -> None:
    guard = Bounded(Scripted((placed(["host-0", "host-5"]),)), min_hosts=3)
    decision, _ = guard.decide(view(placed(1)), 0)
    assert decision.planned.hosts == ("host-0", "host-5", "host-6")
    leaving = {host: host_observation(host) for host in ("host-0", "host-7")}
    decision, _ = guard.decide(view(placed(1), hosts=leaving), 0)
    assert decision.planned.hosts == ("host-0", "host-5", "host-8")


def test_a_plan_is_brought_down_even_if_too_many_hosts_had_been_requested() -> None:
    (decision,) = play(Bounded(Scripted((placed(4, parse=8),)), max_hosts=2), placed(4, parse=8), intervals=1)
    assert len(decision.planned.hosts) == 2


def test_the_shards_of_surplus_replicas_are_shared_by_those_kept() -> None:
    (decision,) = play(Bounded(Scripted((placed(2, count=8),)), max_replicas=4), placed(2), intervals=1)
    assert [len(s) for s in shards_by_replica(decision.planned.operators["count"])] == [2, 2, 2, 2]
    assert why_nots(decision) == ["bounds: not 8 replicas of count, because at most 4 are allowed"]


def test_missing_replicas_are_added_where_there_are_fewest_and_get_shards() -> None:
    lopsided = Allocation(
        ("host-0", "host-1"),
        {
            "parse": OperatorAllocation(("host-0",) * 3),
            "count": OperatorAllocation(("host-0",), (0,) * 8),
            "rank": OperatorAllocation(("host-0",) * 2, (0, 1) * 2),
        },
    )
    (decision,) = play(Bounded(Scripted((lopsided,)), min_replicas=2), lopsided, intervals=1)
    count = decision.planned.operators["count"]
    assert count.replica_hosts == ("host-0", "host-1")
    assert [len(s) for s in shards_by_replica(count)] == [4, 4]
    assert why_nots(decision) == ["bounds: not 1 replica of count, because at least 2 are needed"]


def test_an_operators_own_limit_goes_before_the_least_number_of_replicas() -> None:
    (decision,) = play(Bounded(Scripted((placed(2),)), min_replicas=6), placed(2), intervals=1)
    assert {name: o.replicas for name, o in decision.planned.operators.items()} == {"parse": 6, "count": 6, "rank": 4}


def test_without_bounds_nothing_is_clamped() -> None:
    wanted = placed(6, parse=12, count=8, rank=4)
    for unbounded in (Bounded(Scripted((wanted,))), Bounded(Scripted((wanted,)), max_hosts=0, max_replicas=0)):
        (decision,) = play(unbounded, placed(1), intervals=1)
        assert decision.planned is wanted
        assert decision.why_not == ()


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"min_hosts": 3, "max_hosts": 2}, r"bounds: max_hosts \(2\) must not be below min_hosts \(3\)"),
        ({"min_replicas": -1}, "bounds: min_replicas must be 0 or more, not -1"),
        ({"max_replicas": -1}, r"bounds: max_replicas must be 0 \(no bound\) or more, not -1"),
    ],
)
def test_impossible_bounds_are_refused(bounds: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Bounded(Scripted((placed(1),)), **bounds)


@unhurried
@given(
    allocations(),
    allocations(),
    st.tuples(st.integers(0, 8), st.integers(0, 8)).map(sorted),
    st.tuples(st.integers(0, 12), st.integers(0, 12)).map(sorted),
)
def test_whatever_is_planned_the_result_is_valid_and_within_bounds(
    requested: Allocation, wanted: Allocation, hosts: list[int], replicas: list[int]
) -> None:
    guard = Bounded(
        Scripted((wanted,)), min_hosts=hosts[0], max_hosts=hosts[1], min_replicas=replicas[0], max_replicas=replicas[1]
    )
    decision, _ = guard.decide(view(requested), guard.start())
    decision.planned.check(APPLICATION)
    assert hosts[0] <= len(decision.planned.hosts) <= (hosts[1] or 7)
    for operator in APPLICATION.operators:
        count = decision.planned.operators[operator.name].replicas
        assert min(replicas[0], operator.replica_limit) <= count <= (replicas[1] or operator.replica_limit)
    assert bool(decision.why_not) == (decision.planned != wanted)
