"""What an allocation becomes when actions are carried out, one after the other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.errors import InvalidValue
from springtide.execute.carrying_out import carry_out_so_far, operator_after
from springtide.execute.diff import actions
from springtide.model.action import MoveShards, SetReplicas
from springtide.model.allocation import Allocation, OperatorAllocation

PLACED = {
    "parse": OperatorAllocation(("host-0", "host-1")),
    "count": OperatorAllocation(("host-0", "host-1", "host-1"), (0, 1, 2, 0, 1, 2)),
}


class TestSetReplicas:
    def test_an_operator_without_shards_has_the_replicas_it_is_given(self) -> None:
        after = operator_after(SetReplicas("parse", ("host-2",), before=2), PLACED)

        assert after == OperatorAllocation(("host-2",))

    def test_more_replicas_serve_nothing_until_shards_are_moved(self) -> None:
        hosts = ("host-0", "host-1", "host-1", "host-2")
        after = operator_after(SetReplicas("count", hosts, before=3), PLACED)

        assert after == OperatorAllocation(hosts, (0, 1, 2, 0, 1, 2))
        assert after.shards_of(3) == ()

    def test_shards_of_a_replica_that_goes_are_served_by_the_first(self) -> None:
        """Until the move that follows, so that what there is in between can be built, and loses no shard."""
        after = operator_after(SetReplicas("count", ("host-0", "host-1"), before=3), PLACED)

        assert after.shard_replicas == (0, 1, 0, 0, 1, 0)

    def test_replicas_that_go_elsewhere_keep_their_shards(self) -> None:
        after = operator_after(SetReplicas("count", ("host-5", "host-6", "host-7"), before=3), PLACED)

        assert after.shard_replicas == PLACED["count"].shard_replicas
        assert after.shard_host(4) == "host-6"


class TestMoveShards:
    def test_only_the_shards_that_are_named_move(self) -> None:
        after = operator_after(MoveShards("count", {5: 0, 1: 2}), PLACED)

        assert after == OperatorAllocation(PLACED["count"].replica_hosts, (0, 2, 2, 0, 1, 0))

    def test_what_there_was_before_is_left_alone(self) -> None:
        operator_after(MoveShards("count", {0: 1}), PLACED)
        operator_after(SetReplicas("count", ("host-0",), before=3), PLACED)

        assert PLACED["count"] == OperatorAllocation(("host-0", "host-1", "host-1"), (0, 1, 2, 0, 1, 2))

    @pytest.mark.parametrize("shard", [6, -1, 100])
    def test_a_shard_that_is_not_there(self, shard: int) -> None:
        with pytest.raises(InvalidValue, match=rf"^operator 'count' has no shard {shard}: it has 6$"):
            operator_after(MoveShards("count", {0: 1, shard: 0}), PLACED)

    def test_an_operator_without_shards_has_none_to_move(self) -> None:
        with pytest.raises(InvalidValue, match=r"^operator 'parse' has no shard 0: it has 0$"):
            operator_after(MoveShards("parse", {0: 1}), PLACED)

    @pytest.mark.parametrize("replica", [3, -1])
    def test_a_replica_that_is_not_there(self, replica: int) -> None:
        with pytest.raises(InvalidValue, match=f"routed to replica {replica}, but there are 3 replicas"):
            operator_after(MoveShards("count", {0: replica}), PLACED)


@pytest.mark.parametrize("action", [SetReplicas("cuont", ("host-0",), before=1), MoveShards("cuont", {0: 0})])
def test_an_operator_that_is_not_there(action: SetReplicas | MoveShards) -> None:
    with pytest.raises(InvalidValue, match=r"^there is no operator 'cuont'; did you mean 'count'\?$"):
        operator_after(action, PLACED)


HOSTS = ("host-0", "host-1", "host-2")


@st.composite
def allocations(draw: st.DrawFn) -> Allocation:
    replica_hosts = st.lists(st.sampled_from(HOSTS), min_size=1, max_size=5).map(tuple)
    counting = draw(replica_hosts)
    routes = draw(st.lists(st.integers(0, len(counting) - 1), min_size=6, max_size=6))
    return Allocation(
        HOSTS, {"parse": OperatorAllocation(draw(replica_hosts)), "count": OperatorAllocation(counting, tuple(routes))}
    )


@given(requested=allocations(), planned=allocations())
def test_the_actions_from_one_allocation_to_another_lead_there_and_no_shard_is_ever_without_a_replica(
    requested: Allocation, planned: Allocation
) -> None:
    placed = dict(requested.operators)
    for action in actions(requested, planned):
        assert isinstance(action, SetReplicas | MoveShards)
        placed[action.operator] = operator_after(action, placed)
        assert len(placed["count"].shard_replicas) == 6

    assert placed == planned.operators


class TestSoFar:
    """A request of which some hosts have not come yet."""

    BEFORE = OperatorAllocation(("host-0",), (0,) * 8)
    REQUESTED = OperatorAllocation(("host-0", "host-1", "host-2"), (0, 0, 0, 1, 1, 1, 2, 2))

    def test_all_of_it_once_all_have_come(self) -> None:
        assert carry_out_so_far(self.REQUESTED, self.BEFORE, {"host-9"}) is self.REQUESTED

    def test_nothing_of_it_while_none_has_come(self) -> None:
        found = carry_out_so_far(self.REQUESTED, self.BEFORE, {"host-1", "host-2"})
        assert {found.shard_host(shard) for shard in range(8)} == {"host-0"}

    def test_a_host_that_has_come_is_used_at_once(self) -> None:
        found = carry_out_so_far(self.REQUESTED, self.BEFORE, {"host-2"})
        assert found.replica_hosts == ("host-0", "host-1")
        assert found.shard_replicas[:6] == self.REQUESTED.shard_replicas[:6]
        assert sorted(found.shard_replicas[6:]) == [0, 1], "those of the missing host go where there is least"

    def test_a_request_that_leaves_a_host_waits_for_all(self) -> None:
        """What serves rows now is not given up for something that is not there yet."""
        before = OperatorAllocation(("host-0", "host-1"), (0, 1))
        assert carry_out_so_far(OperatorAllocation(("host-0", "host-2"), (0, 1)), before, {"host-2"}) == before

    def test_replicas_without_shards_come_one_by_one_and_are_never_fewer(self) -> None:
        before = OperatorAllocation(("host-0", "host-0"))
        requested = OperatorAllocation(("host-0", "host-1", "host-2"))
        assert carry_out_so_far(requested, before, {"host-2"}) == OperatorAllocation(("host-0", "host-1"))
        assert carry_out_so_far(requested, before, {"host-1", "host-2"}) == before

    @given(
        shards=st.lists(st.integers(0, 3), min_size=1, max_size=20),
        missing=st.sets(st.sampled_from(["host-1", "host-2", "host-3"])),
    )
    def test_no_shard_is_lost_and_none_waits_on_a_host_that_is_missing(self, shards: list[int], missing: set[str]) -> None:
        requested = OperatorAllocation(tuple(f"host-{i}" for i in range(4)), tuple(shards))
        before = OperatorAllocation(("host-0",), (0,) * len(shards))
        found = carry_out_so_far(requested, before, missing)
        assert len(found.shard_replicas) == len(shards)
        assert not missing & {found.shard_host(shard) for shard in range(len(shards))}
