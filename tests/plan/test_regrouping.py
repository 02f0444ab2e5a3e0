"""From a host for every unit to an allocation: enough replicas, few changed routes, and no state moved needlessly."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from observations import placed_on, shards, view

from factories import application, operator
from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.model.application import Grouping
from springtide.plan.placement.loads import Loads, unit_hosts
from springtide.plan.placement.regrouping import arrange, move_units, replicas_needed

unhurried = settings(deadline=None)

APP = application(operator("parse", grouping=Grouping.SHUFFLE), operator("count", shards=8), operator("two", max_replicas=2))
TARGET = 0.6


def arranged(
    placed: OperatorAllocation, hosts: list[int], load: float | list[float], name: str = "count"
) -> OperatorAllocation:
    all_placed = placed_on(hosts=4, parse=(0,), count=shards(*[0] * 8), two=shards(*[0] * 8)).with_operator(name, placed)
    return arrange(Loads(view(APP, all_placed, {name: load})), name, placed, [f"host-{h}" for h in hosts], TARGET)


def test_a_host_has_as_many_replicas_as_its_load_needs() -> None:
    after = arranged(shards(*[0] * 8), [0] * 8, load=1.6)
    assert after.replica_hosts == ("host-0",) * 3
    assert sorted(len(after.shards_of(r)) for r in range(3)) == [2, 3, 3]


def test_replicas_are_no_more_than_cores_or_shards_of_the_host() -> None:
    assert arranged(shards(*[0] * 8), [0] * 8, load=7.0).replicas == 4
    assert arranged(shards(*[0] * 8), [0, 1, 1, 1, 1, 1, 1, 1], load=[3.0] + [0.1] * 7).replica_hosts == (
        "host-0",
        "host-1",
        "host-1",
    )


def test_replicas_are_no_more_than_the_operator_may_have_and_the_busiest_host_gets_them() -> None:
    assert arranged(shards(*[0] * 8), [0] * 8, load=2.4, name="two").replicas == 2
    spread = arranged(shards(*[0] * 8), [0, 0, 0, 0, 1, 1, 1, 1], load=4.0, name="two")
    assert spread.replica_hosts == ("host-0", "host-1")


def test_shards_stay_with_their_replica_where_they_can() -> None:
    before = OperatorAllocation(("host-0", "host-0", "host-1"), (0, 0, 0, 1, 1, 1, 2, 2))
    after = arranged(before, [0, 0, 0, 0, 0, 1, 1, 1], load=1.6)
    assert after.replica_hosts == ("host-0", "host-0", "host-1")
    assert after.shard_replicas == (0, 0, 0, 1, 1, 2, 2, 2)


def test_a_replica_that_is_left_keeps_its_number_and_a_new_one_takes_a_free_number() -> None:
    before = OperatorAllocation(("host-0", "host-1", "host-2"), (0, 0, 1, 1, 2, 2, 2, 2))
    after = arranged(before, [3, 3, 1, 1, 2, 2, 2, 2], load=0.8)
    assert after == OperatorAllocation(("host-3", "host-1", "host-2"), before.shard_replicas)


def test_numbers_stay_without_gaps() -> None:
    before = OperatorAllocation(("host-0", "host-1", "host-2"), (0, 0, 1, 1, 2, 2, 2, 2))
    after = arranged(before, [1, 1, 1, 1, 2, 2, 2, 2], load=0.8)
    assert after.replica_hosts == ("host-2", "host-1")


def test_a_replica_that_serves_nothing_goes() -> None:
    before = OperatorAllocation(("host-0", "host-1"), (0,) * 8)
    assert arranged(before, [0] * 8, load=0.3) == shards(*[0] * 8)


def test_a_hot_shard_gets_a_replica_of_its_own_and_the_idle_rest_another() -> None:
    after = arranged(shards(*[0] * 8), [0] * 8, load=[2.0] + [0.01] * 7)
    assert after.replicas == 2
    assert after.shards_of(after.shard_replicas[0]) == (0,)


def test_a_replica_of_an_operator_without_shards_only_changes_its_host() -> None:
    placed = placed_on(hosts=3, parse=(0, 1), count=shards(*[0] * 8), two=shards(*[0] * 8))
    loads = Loads(view(APP, placed, {"parse": 1.0}))
    unit = loads.units_on(placed, "host-1")[0]
    after = move_units(loads, placed, {unit: "host-2"}, ("host-0", "host-2"), TARGET)
    assert after.operators["parse"].replica_hosts == ("host-0", "host-2")
    assert after.operators["count"] is placed.operators["count"]


def test_an_idle_replica_leaves_a_host_that_goes() -> None:
    idle = OperatorAllocation(("host-0", "host-1"), (0,) * 8)
    placed = placed_on(parse=(0,), count=idle, two=shards(*[0] * 8))
    after = move_units(Loads(view(APP, placed, {})), placed, {}, ("host-0",), TARGET)
    assert after.operators["count"].replica_hosts == ("host-0",)


def test_nothing_to_move_is_no_change() -> None:
    placed = placed_on(parse=(0,), count=shards(*[0] * 8), two=shards(*[0] * 8))
    assert move_units(Loads(view(APP, placed, {})), placed, {}, placed.hosts, TARGET) is placed


@pytest.mark.parametrize(("load", "needed"), [(0.0, 1), (0.6, 1), (0.61, 2), (1.8, 3)])
def test_replicas_needed(load: float, needed: int) -> None:
    assert replicas_needed(load, 0.6) == needed


@st.composite
def operator_allocations(draw: st.DrawFn) -> OperatorAllocation:
    count = draw(st.integers(1, 6))
    hosts = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    routes = draw(st.lists(st.integers(0, count - 1), min_size=8, max_size=8))
    return OperatorAllocation(tuple(f"host-{h}" for h in hosts), tuple(routes))


@unhurried
@given(
    placed=operator_allocations(),
    hosts=st.lists(st.integers(0, 3), min_size=8, max_size=8),
    loads=st.lists(st.floats(0, 1), min_size=8, max_size=8),
)
def test_every_shard_ends_where_it_should_and_the_result_is_valid(
    placed: OperatorAllocation, hosts: list[int], loads: list[float]
) -> None:
    after = arranged(placed, hosts, loads)
    assert unit_hosts(APP.operator("count"), after) == tuple(f"host-{h}" for h in hosts)
    Allocation(
        tuple(f"host-{i}" for i in range(4)),
        placed_on(hosts=4, parse=(0,), count=after, two=shards(*[0] * 8)).operators,
    ).check(APP)
    assert set(after.shard_replicas) == set(range(after.replicas))
    again = arranged(after, hosts, loads)
    assert again == after
