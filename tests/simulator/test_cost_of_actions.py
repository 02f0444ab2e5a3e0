"""What a change costs: nothing from a pool, a stop in a restart, the way of its state for a shard that moves."""

from __future__ import annotations

import numpy as np
import pytest
from worlds import Run, chain, observe, one_operator, operator, phases, simulate, steady
from worlds import backend as world

from springtide.backends.simulator.settings import Activation, Moves, RestartScope
from springtide.errors import InvalidValue
from springtide.model.action import MoveShards, SetReplicas
from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.model.application import Application, Edge, Grouping, KeyDistribution


def on(*hosts: str) -> tuple[str, ...]:
    return tuple(f"host-{h}" for h in hosts)


class TestPool:
    def test_a_replica_from_the_pool_works_at_once_and_costs_nothing(self) -> None:
        application = one_operator(grouping=Grouping.SHUFFLE)
        run = simulate(
            application, steady(90, seconds=60), every_s=10.0, script={30.0: [SetReplicas("work", on("0", "0"), before=1)]}
        )
        assert run.latency.max_s == pytest.approx(0.01)
        assert run.at(40).operators["work"].replica_utilisation.tolist() == pytest.approx([0.45, 0.45])
        assert all(o.downtime_s == 0 for o in run.observations)
        assert run.at(40).reconfigurations == {"scale_outs": 1}

    def test_it_relieves_an_overload_from_the_next_step_on(self) -> None:
        out = {30.0: [SetReplicas("work", on("0", "0", "0"), before=1)]}
        run = simulate(one_operator(), steady(200, seconds=100), every_s=10.0, script=out)

        assert run.at(30).backlog_rows == pytest.approx(3000)
        assert run.at(40).operators["work"].processed_rows == pytest.approx(10 * 300)
        assert run.at(60).backlog_rows == pytest.approx(0, abs=1e-6)

    def test_a_replica_switched_off_hands_its_rows_to_the_others(self) -> None:
        for grouping in (Grouping.SHUFFLE, Grouping.LOAD_BALANCED, Grouping.SHARED):
            less = {20.0: [SetReplicas("work", on("0"), before=4)]}
            run = simulate(one_operator(grouping=grouping), phases((500, 20), (0, 40)), replicas=4, every_s=10.0, script=less)
            assert run.at(20).backlog_rows == pytest.approx(2000)
            assert run.at(30).operators["work"].processed_rows == pytest.approx(1000)
            assert run.processed() == pytest.approx(10_000)

    def test_asking_for_what_is_there_does_nothing(self) -> None:
        again = {30.0: [SetReplicas("work", on("0"), before=1)]}
        run = simulate(one_operator(), steady(90, seconds=60), every_s=10.0, script=again, activation=Activation.RESTART)

        assert run.at(40).reconfigurations == {}
        assert run.latency.max_s == pytest.approx(0.01)


class TestRestart:
    @staticmethod
    def restarted(scope: RestartScope, **settings: object) -> Run:
        return simulate(
            chain(operator("a"), operator("b")),
            phases((50, 80), (0, 40)),
            every_s=10.0,
            activation=Activation.RESTART,
            restart_s=20.0,
            restart_scope=scope,
            **{"script": {30.0: [SetReplicas("b", on("0", "0"), before=1)]}, **settings},
        )

    def test_it_may_stop_one_operator(self) -> None:
        run = self.restarted(RestartScope.OPERATOR)

        assert [o.operators["a"].processed_rows for o in run.observations[:8]] == pytest.approx([500] * 8)
        assert [run.at(t).operators["b"].processed_rows for t in (30, 40, 50)] == pytest.approx([500, 0, 0])
        assert run.at(50).operators["b"].backlog_rows == pytest.approx(1000)
        assert run.processed("b") == pytest.approx(4000)
        assert run.latency.max_s == pytest.approx(20.0, abs=0.6)

    def test_it_may_stop_the_whole_application(self) -> None:
        run = self.restarted(RestartScope.APPLICATION)

        assert [run.at(t).operators["a"].processed_rows for t in (30, 40, 50)] == pytest.approx([500, 0, 0])
        assert run.at(50).operators["a"].backlog_rows == pytest.approx(1000)
        assert run.processed("b") == pytest.approx(4000)

    @pytest.mark.parametrize("scope", list(RestartScope))
    def test_downtime_is_how_long_something_stood_still(self, scope: RestartScope) -> None:
        run = self.restarted(scope)

        assert [o.downtime_s for o in run.observations[:6]] == pytest.approx([0, 0, 0, 10, 10, 0])

    def test_two_restarts_at_once_are_one_stop(self) -> None:
        both = [SetReplicas(name, on("0", "0"), before=1) for name in ("a", "b")]
        run = self.restarted(RestartScope.OPERATOR, script={30.0: both})

        assert sum(o.downtime_s for o in run.observations) == pytest.approx(20.0)

    def test_stops_that_overlap_are_counted_once(self) -> None:
        script = {30.0: [SetReplicas("a", on("0", "0"), before=1)], 45.0: [SetReplicas("b", on("0", "0"), before=1)]}
        run = self.restarted(RestartScope.OPERATOR, script=script)

        assert sum(o.downtime_s for o in run.observations) == pytest.approx(35.0)

    def test_it_loses_the_queue_where_a_restart_does_and_counts_it(self) -> None:
        out = {30.0: [SetReplicas("work", on("0", "0"), before=1)]}
        kept, lost = (
            simulate(
                one_operator(),
                phases((150, 30), (0, 60)),
                script=out,
                activation=Activation.RESTART,
                restart_s=5.0,
                restart_drops_queue=drops,
            )
            for drops in (False, True)
        )
        assert (kept.dropped(), kept.processed()) == pytest.approx((0, 4500))
        assert (lost.dropped(), lost.processed()) == pytest.approx((1500, 3000))

    def test_only_a_change_in_the_number_of_replicas_is_a_restart(self) -> None:
        application = one_operator(grouping=Grouping.KEY, shards=4)
        move = {30.0: [MoveShards("work", {0: 1})]}
        run = simulate(
            application,
            steady(50, seconds=60),
            replicas=2,
            script=move,
            every_s=10.0,
            activation=Activation.RESTART,
            restart_s=20.0,
        )
        assert all(o.downtime_s == 0 for o in run.observations)
        assert run.latency.max_s == pytest.approx(0.01)


def standstill_s(run: Run, shard: int, *, from_s: float) -> float:
    """For how long a shard of `work` was not served, from the rows that had piled up when it was served again."""
    rate = run.at(from_s).operators["work"].shards.rows[shard] / run.at(from_s).interval_s
    waiting = [o.operators["work"].shards.backlog_rows[shard] for o in run.observations if o.end_s > from_s]
    return float(max(waiting) / rate)


STATE_BYTES = 10**9
HOST = {"bandwidth_bytes_per_s": 1e8}  # ten seconds for a shard's state


class TestMoves:
    def moved(self, routes: dict[int, int], *, hosts: int = 2, replicas: int = 2, **settings: object) -> Run:
        application = one_operator(grouping=Grouping.KEY, shards=6, state_bytes_per_shard=STATE_BYTES, row_bytes=0)
        return simulate(
            application,
            steady(60, seconds=120),
            hosts=hosts,
            replicas=replicas,
            host=HOST,
            every_s=1.0,
            script={30.0: [MoveShards("work", routes)]},
            **{"moves": Moves(synchronisation_s=3.0), **settings},
        )

    def test_a_shard_that_moves_stands_still_for_the_agreement_and_its_state(self) -> None:
        run = self.moved({0: 1})

        assert standstill_s(run, 0, from_s=30.0) == pytest.approx(13.0, abs=0.5)
        meanwhile = [o.operators["work"].shards.backlog_rows for o in run.observations if o.end_s <= 43.0]
        assert all(waiting[1:].sum() < 1e-6 for waiting in meanwhile)  # the other shards go on
        assert run.processed() == pytest.approx(7200)
        assert run.at(31).reconfigurations == {"shards_moved": 1}
        assert all(o.downtime_s == 0 for o in run.observations)

    def test_a_link_carries_one_shard_at_a_time(self) -> None:
        run = self.moved({0: 1, 2: 1, 4: 1})

        waits = [standstill_s(run, shard, from_s=30.0) for shard in (0, 2, 4)]
        assert waits == pytest.approx([13.0, 23.0, 33.0], abs=0.5)

    def test_links_between_different_hosts_work_side_by_side(self) -> None:
        """Shards 0 and 1 go from hosts 0 and 1 to hosts 2 and 3."""
        run = self.moved({0: 2, 1: 3}, hosts=4, replicas=4)

        waits = [standstill_s(run, shard, from_s=30.0) for shard in (0, 1)]
        assert waits == pytest.approx([13.0, 13.0], abs=0.5)

    def test_a_host_receives_one_shard_at_a_time(self) -> None:
        run = self.moved({0: 2, 1: 2}, hosts=4, replicas=4)

        waits = [standstill_s(run, shard, from_s=30.0) for shard in (0, 1)]
        assert waits == pytest.approx([13.0, 23.0], abs=0.5)

    def test_regrouping_inside_a_host_moves_no_state(self) -> None:
        run = self.moved({0: 1}, hosts=1)

        assert standstill_s(run, 0, from_s=30.0) == pytest.approx(3.0, abs=0.5)
        assert run.at(31).reconfigurations == {"regroupings": 1}

    def test_moving_to_where_it_is_costs_nothing(self) -> None:
        run = self.moved({0: 0, 1: 1})

        assert run.latency.max_s == pytest.approx(0.01)
        assert run.at(31).reconfigurations == {}

    def test_a_replica_that_changes_host_takes_its_shards_along(self) -> None:
        application = one_operator(grouping=Grouping.KEY, shards=6, state_bytes_per_shard=STATE_BYTES, row_bytes=0)
        away = Allocation(on("0", "1"), {"work": OperatorAllocation(on("1"), (0,) * 6)})
        start = Allocation(on("0", "1"), {"work": OperatorAllocation(on("0"), (0,) * 6)})
        run = simulate(application, steady(30, seconds=150), start=start, host=HOST, every_s=1.0, script={30.0: away})
        waits = [standstill_s(run, shard, from_s=30.0) for shard in range(6)]
        assert waits == pytest.approx([10.0, 20.0, 30.0, 40.0, 50.0, 60.0], abs=0.6)
        assert run.at(31).reconfigurations == {"shards_moved": 6}

    def test_scaling_in_moves_the_shards_of_the_replica_that_goes(self) -> None:
        application = one_operator(grouping=Grouping.KEY, shards=6, state_bytes_per_shard=STATE_BYTES, row_bytes=0)
        less = Allocation(on("0", "1"), {"work": OperatorAllocation(on("0"), (0,) * 6)})
        run = simulate(application, steady(30, seconds=120), hosts=2, replicas=2, host=HOST, every_s=1.0, script={30.0: less})
        waits = [standstill_s(run, shard, from_s=30.0) for shard in range(6)]
        assert waits == pytest.approx([0, 10, 0, 20, 0, 30], abs=0.6)
        assert run.at(31).reconfigurations == {"scale_ins": 1, "shards_moved": 3}

    def test_operators_without_state_move_free_of_charge(self) -> None:
        for grouping in (Grouping.SHUFFLE, Grouping.SHARED, Grouping.LOAD_BALANCED):
            application = one_operator(grouping=grouping, state_bytes_per_shard=STATE_BYTES)
            away = {30.0: [SetReplicas("work", on("1", "1"), before=2)]}
            start = Allocation(on("0", "1"), {"work": OperatorAllocation(on("0", "0"))})
            run = simulate(application, steady(90, seconds=60), start=start, host=HOST, every_s=10.0, script=away)

            assert run.latency.max_s == pytest.approx(0.01)
            assert run.at(40).observed.operators["work"].replica_hosts == on("1", "1")

    @pytest.mark.parametrize("replicas", [1, 3, 5])
    def test_in_the_resource_centric_approach_every_upstream_replica_must_agree(self, replicas: int) -> None:
        application = Application(
            name="join",
            operators=(
                operator("a", grouping=Grouping.SHUFFLE, service_time_s=0.001),
                operator("b", grouping=Grouping.SHUFFLE, service_time_s=0.001),
                operator("work", grouping=Grouping.KEY, shards=6),
            ),
            edges=(Edge(upstream="a", downstream="work"), Edge(upstream="b", downstream="work")),
        )
        run = simulate(
            application,
            steady(20, seconds=120),
            replicas={"a": replicas, "b": 2, "work": 2},
            every_s=1.0,
            script={30.0: [MoveShards("work", {0: 1})]},
            moves=Moves(synchronisation_s=1.0, synchronisation_per_upstream_replica_s=2.0),
        )
        assert standstill_s(run, 0, from_s=30.0) == pytest.approx(1.0 + 2.0 * (replicas + 2), abs=0.5)

    def test_rows_of_a_shard_that_waits_are_not_counted_twice(self) -> None:
        """They came with rows of other shards, which left at once; then nothing more comes."""
        application = one_operator(grouping=Grouping.KEY, shards=2, keys=KeyDistribution(keys=1000))
        backend = world(application, phases((0, 5), (10, 1), (0, 20)), replicas=2, moves=Moves(synchronisation_s=3.0))
        run = observe(backend, every_s=1.0, script={5.0: [MoveShards("work", {0: 1})]})

        shares = run.at(6).operators["work"].shards.rows / 10
        assert run.at(6).latency.rows == pytest.approx(10 * shares[1])
        assert run.at(9).latency.rows == pytest.approx(10 * shares[0])
        assert run.latency.rows == pytest.approx(10)
        assert run.latency.mean_s == pytest.approx(0.01 + 3.0 * shares[0])


def test_an_action_for_an_operator_that_is_not_there_is_refused() -> None:
    backend = world(one_operator(), steady(10, seconds=60))
    with pytest.raises(InvalidValue, match="there is no operator 'wrok'; did you mean 'work'"):
        backend.apply([SetReplicas("wrok", on("0"), before=1)])


def test_a_trace_for_each_source_is_needed() -> None:
    with pytest.raises(InvalidValue, match="one row of counts per source"):
        world(one_operator(), np.zeros((2, 60)))
