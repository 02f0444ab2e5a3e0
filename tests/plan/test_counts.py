"""Numbers of replicas and hosts become an allocation: valid, even, with few moves."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from observations import POOL, placed_on, shards, view

from factories import application, operator
from springtide.model.allocation import Allocation, OperatorAllocation, Pool, spread
from springtide.model.application import Grouping
from springtide.model.change import change
from springtide.model.observation import HostState
from springtide.plan.placement.counts import allocate, dealt, demand_cores

APP = application(operator("parse", grouping=Grouping.SHUFFLE), operator("count", shards=16))


def cores_on(planned: Allocation, cores: dict[str, float]) -> Counter[str]:
    """Each host's load when every replica has the even share of its operator."""
    load: Counter[str] = Counter(dict.fromkeys(planned.hosts, 0))
    for name, placed in planned.operators.items():
        for host in placed.replica_hosts:
            load[host] += cores[name] / placed.replicas  # type: ignore[assignment]
    return load


def test_what_is_there_already_is_returned_as_it_is() -> None:
    seen = view(APP, spread(APP, ("host-0", "host-1"), {"parse": 2, "count": 4}), {"parse": 1.0, "count": 2.0})
    assert allocate(seen, {"parse": 2, "count": 4}, 2) is seen.requested
    assert allocate(seen, {}) is seen.requested


def test_more_replicas_take_an_even_share_of_the_shards_and_go_to_the_idlest_hosts() -> None:
    seen = view(APP, placed_on(parse=(0,), count=shards(*[0] * 16)), {"parse": 1.0, "count": 3.0})
    planned = allocate(seen, {"count": 4}, 2)
    assert Counter(planned.operators["count"].shard_replicas) == {0: 4, 1: 4, 2: 4, 3: 4}
    assert sorted(cores_on(planned, demand_cores(seen)).values()) == pytest.approx([1.75, 2.25], abs=0.3)


def test_growth_by_one_replica_moves_its_share_of_the_shards_and_no_more() -> None:
    placed = spread(APP, ("host-0", "host-1", "host-2", "host-3"), {"count": 4})
    seen = view(APP, placed, {"count": 3.0})
    moved = change(placed, allocate(seen, {"count": 5})).moved_shards
    assert moved.get("count", 0) <= 4  # of 16, the fifth replica's share is 3.2


def test_replicas_on_hosts_that_go_are_the_first_to_go() -> None:
    placed = spread(APP, ("host-0", "host-1", "host-2"), {"parse": 3, "count": 3})
    states = {"host-1": HostState.STARTING}
    planned = allocate(view(APP, placed, {"parse": 1.0, "count": 1.0}, states=states), {"parse": 2, "count": 2}, 2)
    assert planned.hosts == ("host-0", "host-2")
    assert not change(placed.with_hosts(placed.hosts), planned).hosts_added
    assert planned.operators["parse"].replica_hosts == ("host-0", "host-2")


def test_a_new_host_gets_its_part_of_what_there_is() -> None:
    placed = spread(APP, tuple(f"host-{i}" for i in range(6)), {"parse": 16, "count": 8})
    seen = view(APP, placed, {"parse": 9.0, "count": 9.0})
    load = cores_on(allocate(seen, {}, 7), demand_cores(seen))
    assert load["host-6"] == pytest.approx(18 / 7, rel=0.35)


def test_a_hot_shard_is_left_alone_with_its_replica() -> None:
    skewed = [4.0] + [0.1] * 15
    seen = view(APP, spread(APP, ("host-0",), {"count": 2}), {"count": skewed})
    routes = allocate(seen, {"count": 2}).operators["count"].shard_replicas
    assert [s for s, r in enumerate(routes) if r == routes[0]] == [0]


def test_shards_stay_where_they_are_while_no_rows_come() -> None:
    """One shard was so hot that it has a replica of its own; then a whole interval goes by without a row."""
    placed = placed_on(parse=(0,), count=OperatorAllocation(("host-0", "host-0"), (0, *[1] * 15)))
    silent = view(APP, placed, {"parse": 1.0, "count": 0.0})
    assert allocate(silent, {}) is placed
    grown = allocate(silent, {"count": 3}).operators["count"].shard_replicas
    assert grown.count(grown[0]) == 1, "the hot shard is still alone"
    assert sum(a != b for a, b in zip(grown, placed.operators["count"].shard_replicas, strict=True)) <= 8


def test_numbers_stay_within_what_the_pool_and_the_operators_allow() -> None:
    seen = view(APP, spread(APP, ("host-0",)), {"count": 1.0}, pool=Pool(host=POOL.host, min_hosts=1, max_hosts=3))
    planned = allocate(seen, {"parse": 0, "count": 99}, 99)
    assert (len(planned.hosts), planned.operators["parse"].replicas, planned.operators["count"].replicas) == (3, 1, 16)


@given(
    before=st.dictionaries(st.sampled_from(["parse", "count"]), st.integers(1, 20)),
    after=st.dictionaries(st.sampled_from(["parse", "count"]), st.integers(1, 20)),
    hosts=st.tuples(st.integers(1, 8), st.integers(1, 8)),
    load=st.lists(st.floats(0, 2), min_size=16, max_size=16),
)
@settings(max_examples=150, deadline=None)
def test_any_numbers_become_a_valid_allocation_that_is_then_left_alone(
    before: dict[str, int], after: dict[str, int], hosts: tuple[int, int], load: list[float]
) -> None:
    placed = spread(APP, tuple(f"host-{i}" for i in range(hosts[0])), before)
    planned = allocate(view(APP, placed, {"parse": 1.0, "count": load}), after, hosts[1])
    planned.check(APP)
    assert len(planned.hosts) == hosts[1]
    assert all(planned.operators[name].replicas == min(count, 16 if name == "count" else 64) for name, count in after.items())
    again = allocate(view(APP, planned, {"parse": 1.0, "count": load}), after, hosts[1])
    assert again.hosts == planned.hosts
    assert sum(change(planned, again).moved_shards.values()) <= 2  # an even share may be a matter of rounding


@given(weights=st.lists(st.floats(0.01, 5), min_size=1, max_size=40), replicas=st.integers(1, 8), data=st.data())
@settings(deadline=None)
def test_dealing_is_as_good_as_filling_the_emptiest_each_time(weights: list[float], replicas: int, data: st.DataObject) -> None:
    routes = np.array(data.draw(st.lists(st.integers(-1, replicas - 1), min_size=len(weights), max_size=len(weights))))
    loads = np.array(weights)
    totals = np.bincount(dealt(routes, loads, replicas), weights=loads, minlength=replicas)
    # Graham's bound: whoever has most had least before its last shard came, or has kept one large shard.
    assert totals.max() <= loads.sum() / replicas + loads.max() + 1e-9
