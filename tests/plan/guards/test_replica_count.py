from guard_stories import allocations, unhurried
from hypothesis import given
from hypothesis import strategies as st

from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.plan.guards.replica_count import grow, shards_by_replica, shrink


def _shards(operator: OperatorAllocation) -> list[int]:
    return [len(shards) for shards in shards_by_replica(operator)]


def test_the_shards_of_surplus_replicas_go_evenly_to_those_kept() -> None:
    operator = OperatorAllocation(("a", "b", "c", "d"), (0, 1, 2, 3) * 4)
    shrunk = shrink(operator, 2)
    assert shrunk.replica_hosts == ("a", "b")
    assert _shards(shrunk) == [8, 8]


def test_shrinking_leaves_the_routes_of_kept_replicas_alone() -> None:
    operator = OperatorAllocation(("a", "b", "c"), (0, 1, 2, 1, 0, 2))
    shrunk = shrink(operator, 2)
    assert all(new == old for old, new in zip(operator.shard_replicas, shrunk.shard_replicas, strict=True) if old < 2)


def test_new_replicas_take_shards_from_those_that_serve_the_most() -> None:
    operator = OperatorAllocation(("a", "b"), (0,) * 7 + (1,) * 1)
    grown = grow(operator, ("c", "d"))
    assert grown.replica_hosts == ("a", "b", "c", "d")
    assert _shards(grown) == [3, 1, 2, 2]


def test_an_operator_without_shards_only_changes_its_replicas() -> None:
    operator = OperatorAllocation(("a", "b", "c"))
    assert shrink(operator, 1) == OperatorAllocation(("a",))
    assert grow(operator, ("a",)) == OperatorAllocation(("a", "b", "c", "a"))


@unhurried
@given(allocations(), st.integers(1, 8), st.integers(1, 4))
def test_no_shard_is_lost_or_moved_without_need(allocation: Allocation, count: int, more: int) -> None:
    operator = allocation.operators["count"]
    kept = min(count, operator.replicas)
    shrunk = shrink(operator, kept)
    assert [new for old, new in _routes(operator, shrunk) if old < kept] == [
        old for old, _ in _routes(operator, shrunk) if old < kept
    ]
    grown = grow(operator, ("host-0",) * more)
    assert all(new == old or new >= operator.replicas for old, new in _routes(operator, grown))
    assert min(_shards(grown)[operator.replicas :]) == 8 // (operator.replicas + more)


def _routes(old: OperatorAllocation, new: OperatorAllocation) -> list[tuple[int, int]]:
    return list(zip(old.shard_replicas, new.shard_replicas, strict=True))
