"""How a batch is run: what it follows, which task serves which shards, where, and with which share of the rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st

from springtide.backends.spark.jvm.executors import Executor
from springtide.backends.spark.routing import balanced_shares, batch_routing, in_force
from springtide.model.allocation import OperatorAllocation


def executor(number: int) -> Executor:
    return Executor(id=str(number), host=f"10.0.0.{number}", cores=4, memory_bytes=2**30)


def running(*hosts: int) -> dict[str, Executor]:
    """Hosts `host-0`, `host-1`, ..., each with the executor of its number."""
    return {f"host-{number}": executor(number) for number in hosts}


def on(*hosts: int, routes: tuple[int, ...] = ()) -> OperatorAllocation:
    return OperatorAllocation(tuple(f"host-{number}" for number in hosts), routes)


class TestInForce:
    def test_the_first_batch_follows_what_is_requested_whoever_has_come(self) -> None:
        assert in_force(on(0, 1), None, {"host-0", "host-1"}) == on(0, 1)

    def test_what_is_requested_is_followed_once_all_its_hosts_are_there(self) -> None:
        """A scale-out onto a host that takes a while to come."""
        before, requested = on(0), on(0, 1)

        assert in_force(requested, before, {"host-1"}) == before
        assert in_force(requested, before, set()) == requested

    def test_the_latest_request_counts_not_one_that_never_came_into_force(self) -> None:
        before = on(0)
        assert in_force(on(0, 1), before, {"host-1"}) == before
        assert in_force(on(0, 0), before, {"host-1"}) == on(0, 0)

    def test_a_scale_in_needs_nobody(self) -> None:
        assert in_force(on(0), on(0, 1), set()) == on(0)

    def test_a_host_that_is_lost_holds_nothing_up(self) -> None:
        """Nothing else was requested: the batch follows the same routing, with a task that has no place of its own."""
        both = on(0, 1, routes=(0, 1))
        followed = in_force(both, both, set())

        assert followed == both
        assert batch_routing(followed, running(0), stateful=True).places == (executor(0), None)

    def test_a_lost_host_is_replaced_when_its_successor_has_come(self) -> None:
        before, requested = on(0, 1), on(0, 2)

        assert in_force(requested, before, {"host-2"}) == before
        assert in_force(requested, before, set()) == requested

    def test_a_request_that_keeps_a_lost_host_is_followed_at_once(self) -> None:
        before, requested = on(0, 1, routes=(0, 1, 1, 1)), on(0, 1, routes=(0, 0, 0, 1))

        assert in_force(requested, before, set()) == requested


class TestTasks:
    def test_a_task_serves_the_shards_of_its_replica_on_its_host(self) -> None:
        routing = batch_routing(on(0, 1, routes=(1, 0, 1, 0, 1)), running(0, 1), stateful=True)

        assert routing.task_replicas == (0, 1)
        assert routing.groups == ((1, 3), (0, 2, 4))
        assert routing.places == (executor(0), executor(1))
        assert routing.shard_executors() == {1: executor(0), 3: executor(0), 0: executor(1), 2: executor(1), 4: executor(1)}

    def test_with_state_a_replica_without_shards_has_no_task(self) -> None:
        routing = batch_routing(on(0, 1, 2, routes=(2, 0)), running(0, 1, 2), stateful=True)

        assert routing.task_replicas == (0, 2)
        assert routing.groups == ((1,), (0,))
        assert routing.places == (executor(0), executor(2))

    def test_without_state_every_replica_has_a_task(self) -> None:
        by_key = batch_routing(on(0, 1, 2, routes=(2, 0)), running(0, 1, 2), stateful=False)
        shuffled = batch_routing(on(0, 1, 2), running(0, 1, 2), stateful=False)

        assert by_key.task_replicas == shuffled.task_replicas == (0, 1, 2)
        assert by_key.groups == ((1,), (), (0,))
        assert shuffled.groups == ((), (), ())
        assert shuffled.shard_executors() == {}

    def test_several_replicas_may_share_a_host(self) -> None:
        routing = batch_routing(on(0, 0, routes=(0, 1)), running(0), stateful=True)

        assert routing.groups == ((0,), (1,))
        assert routing.places == (executor(0), executor(0))

    def test_a_shard_on_a_host_that_is_not_there_stays_where_it_is(self) -> None:
        routing = batch_routing(on(0, 1, routes=(0, 1)), running(0), stateful=True)

        assert routing.places == (executor(0), None)
        assert routing.shard_executors() == {0: executor(0)}

    def test_a_host_with_a_new_executor_is_that_one(self) -> None:
        routing = batch_routing(on(0, routes=(0,)), {"host-0": executor(7)}, stateful=True)

        assert routing.shard_executors() == {0: executor(7)}

    @given(st.data(), st.integers(1, 6), st.integers(1, 24))
    def test_every_shard_has_one_task_and_it_is_that_of_its_replica(
        self, data: st.DataObject, replicas: int, shards: int
    ) -> None:
        hosts = tuple(data.draw(st.lists(st.integers(0, 3), min_size=replicas, max_size=replicas)))
        routes = tuple(data.draw(st.lists(st.integers(0, replicas - 1), min_size=shards, max_size=shards)))
        placed = on(*hosts, routes=routes)
        routing = batch_routing(placed, running(0, 1, 2), stateful=True)

        assert sorted(shard for group in routing.groups for shard in group) == list(range(shards))
        for replica, group, place in zip(routing.task_replicas, routing.groups, routing.places, strict=True):
            assert group == placed.shards_of(replica)
            assert place == running(0, 1, 2).get(placed.replica_hosts[replica])
        assert list(routing.task_replicas) == sorted(set(routes))


class TestBalancedShares:
    """PSPS, Algorithm 1: each row to the replica that is the least utilised."""

    def test_equals_share_equally(self) -> None:
        assert balanced_shares([0.3, 0.3, 0.3, 0.3], 0.5).tolist() == pytest.approx([0.25] * 4)

    def test_without_load_nobody_is_preferred(self) -> None:
        assert balanced_shares([0.9, 0.1], 0.0).tolist() == [0.5, 0.5]

    def test_one_replica_takes_all(self) -> None:
        assert balanced_shares([0.7], 0.2).tolist() == [1.0]

    def test_the_idle_one_takes_all_until_it_is_as_busy_as_the_next(self) -> None:
        assert balanced_shares([0.8, 0.5, 0.2], 0.3).tolist() == pytest.approx([0, 0, 1])
        assert balanced_shares([0.8, 0.5, 0.2], 0.5).tolist() == pytest.approx([0, 0.2, 0.8])

    def test_a_great_load_is_shared_almost_equally(self) -> None:
        assert balanced_shares([0.8, 0.0], 1000.0).tolist() == pytest.approx([0.5, 0.5], abs=0.001)

    @given(levels=st.lists(st.floats(0, 2), min_size=1, max_size=12), load=st.floats(1e-6, 50))
    def test_vessels_are_filled_to_one_level(self, levels: list[float], load: float) -> None:
        shares = balanced_shares(levels, load)
        filled = np.array(levels) + shares * load

        assert shares.sum() == pytest.approx(1.0)
        assert shares.min() >= 0
        used = shares > 0
        assert filled[used] == pytest.approx(np.full(used.sum(), filled[used].max()), abs=1e-9)
        assert (np.array(levels)[~used] >= filled[used].max() - 1e-9).all()

    @budget(max_examples=30)
    @given(levels=st.lists(st.floats(0, 1), min_size=1, max_size=6), load=st.floats(0.01, 5))
    def test_shares_are_those_of_rows_sent_one_by_one(self, levels: list[float], load: float) -> None:
        rows = 2000
        level, sent = np.array(levels), np.zeros(len(levels))
        for _ in range(rows):
            least = int(level.argmin())
            level[least] += load / rows
            sent[least] += 1

        assert balanced_shares(levels, load).tolist() == pytest.approx((sent / rows).tolist(), abs=2 / rows)

    @pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
    @pytest.mark.parametrize("load", [1e-17, 1e-20, 5e-324])
    def test_a_load_however_small_goes_somewhere(self, load: float) -> None:
        assert balanced_shares([0.3, 0.3, 0.3], load).sum() == pytest.approx(1.0)
