"""Hosts come late, go when they are done, cost money all the while, are shared by what runs on them, and may be lost."""

from __future__ import annotations

import pytest
from worlds import backend as world
from worlds import chain, observe, one_operator, operator, phases, simulate, steady

from springtide.backends.simulator.settings import Failure, Moves, ServiceModel
from springtide.errors import InvalidValue
from springtide.model.action import AddHosts, MoveShards, ReleaseHosts, SetReplicas
from springtide.model.allocation import Allocation, OperatorAllocation, spread
from springtide.model.application import Application, Edge, Grouping, KeyDistribution
from springtide.model.observation import HostState

SLOW_HOSTS = {"start_s": 25.0, "release_s": 10.0}


class TestStarting:
    def test_nothing_runs_on_a_host_before_it_has_started(self) -> None:
        application = one_operator(grouping=Grouping.SHUFFLE)
        out = spread(application, ("host-0", "host-1"), {"work": 2})
        run = simulate(application, steady(150, seconds=100), host=SLOW_HOSTS, every_s=5.0, script={20.0: out})

        busy = {o.end_s: o.hosts["host-1"].utilisation for o in run.observations if "host-1" in o.hosts}
        assert min(busy) == 25.0
        assert [busy[t] for t in (25.0, 30.0, 35.0, 40.0, 45.0)] == [0.0] * 5
        assert busy[50.0] > 0
        # 50 rows a second too many for 45 s; what waits already stays with the first replica, which has 25 to spare.
        assert run.at(45).backlog_rows == pytest.approx(50 * 45)
        assert run.at(100).backlog_rows == pytest.approx(50 * 45 - 25 * 55)

    def test_what_waits_for_a_host_is_requested_and_not_yet_observed(self) -> None:
        application = one_operator(grouping=Grouping.SHUFFLE)
        out = spread(application, ("host-0", "host-1"), {"work": 2})
        run = simulate(application, steady(10, seconds=60), host=SLOW_HOSTS, every_s=5.0, script={20.0: out})

        before, waiting, after = run.at(20), run.at(40), run.at(45)
        assert before.requested == before.observed
        assert waiting.requested.operators == out.operators
        assert waiting.requested.hosts == ("host-0", "host-1")
        assert waiting.observed.hosts == ("host-0",)
        assert waiting.observed.operators["work"].replicas == 1
        assert waiting.hosts["host-1"].state is HostState.STARTING
        assert after.observed == after.requested == out
        assert after.hosts["host-1"].state is HostState.RUNNING

    def test_only_what_needs_the_new_host_waits_for_it(self) -> None:
        application = chain(operator("a", grouping=Grouping.SHUFFLE), operator("b", grouping=Grouping.SHUFFLE))
        asked = [
            AddHosts(("host-1",)),
            SetReplicas("a", ("host-0", "host-0"), before=1),
            SetReplicas("b", ("host-0", "host-1"), before=1),
        ]
        run = simulate(application, steady(10, seconds=60), host=SLOW_HOSTS, every_s=5.0, script={20.0: asked})

        assert run.at(25).observed.operators["a"].replicas == 2
        assert run.at(25).observed.operators["b"].replicas == 1
        assert run.at(45).observed.operators["b"].replicas == 2

    def test_a_plan_changed_while_hosts_start_is_forgotten(self) -> None:
        """Scale out, think better of it, and let the host go before it has ever run."""
        application = one_operator(grouping=Grouping.SHUFFLE)
        start = spread(application, ("host-0",))
        out = spread(application, ("host-0", "host-1"), {"work": 2})
        run = simulate(application, steady(10, seconds=100), host=SLOW_HOSTS, every_s=5.0, script={20.0: out, 30.0: start})

        assert run.last.observed == run.last.requested == start
        assert "host-1" not in run.last.hosts
        assert all(o.observed.hosts == ("host-0",) for o in run.observations)

    def test_a_host_that_starts_at_once_is_there_at_once(self) -> None:
        application = one_operator(grouping=Grouping.SHUFFLE)
        out = spread(application, ("host-0", "host-1"), {"work": 2})
        run = simulate(application, steady(150, seconds=60), every_s=10.0, script={20.0: out})

        assert run.at(30).observed == out
        assert run.at(30).hosts["host-1"].utilisation == pytest.approx(0.75 / 64)
        assert run.at(30).reconfigurations == {"hosts_added": 1, "scale_outs": 1}


class TestReleasing:
    def test_a_host_goes_after_everything_has_been_taken_off_it(self) -> None:
        """What runs on host-0 moves to host-1, which starts first; then host-0 is released."""
        application = one_operator(grouping=Grouping.SHUFFLE)
        move = Allocation(("host-1",), {"work": OperatorAllocation(("host-1",))})
        run = simulate(application, steady(90, seconds=100), host=SLOW_HOSTS, every_s=5.0, script={20.0: move})

        assert run.at(45).hosts["host-0"].utilisation > 0  # it works until 45 s
        assert run.at(25).requested.hosts == ("host-1",)
        assert run.at(45).hosts["host-0"].state is HostState.RELEASING
        assert run.at(45).observed == move
        assert "host-0" in run.at(50).hosts
        assert "host-0" not in run.at(60).hosts
        assert run.processed() == pytest.approx(9000)

    def test_a_host_goes_after_the_state_on_it_has_left(self) -> None:
        application = one_operator(grouping=Grouping.KEY, shards=4, state_bytes_per_shard=10**9)
        start = spread(application, ("host-0", "host-1"), {"work": 2})
        leave = Allocation(("host-0",), {"work": OperatorAllocation(("host-0", "host-0"), (0, 1, 0, 1))})
        host = {"release_s": 5.0, "bandwidth_bytes_per_s": 1e8}  # two shards, ten seconds each
        run = simulate(application, steady(10, seconds=60), start=start, host=host, every_s=1.0, script={20.0: leave})

        assert "host-1" in run.at(44).hosts
        assert "host-1" not in run.at(45).hosts

    def test_rows_that_wait_are_not_lost_with_the_host(self) -> None:
        application = one_operator(grouping=Grouping.SHUFFLE)
        both, one = (spread(application, hosts, {"work": len(hosts)}) for hosts in (("host-0", "host-1"), ("host-0",)))
        run = simulate(application, phases((400, 10), (0, 40)), start=both, every_s=5.0, script={10.0: one})

        assert run.at(10).backlog_rows == pytest.approx(2000)
        assert run.at(20).operators["work"].processed_rows == pytest.approx(500)
        assert run.processed() == pytest.approx(4000)

    def test_the_pool_may_be_replaced_whole(self) -> None:
        """As many hosts come as go: a full pool is no obstacle."""
        application = one_operator(grouping=Grouping.SHUFFLE)
        old, new = ("host-0", "host-1"), ("host-2", "host-3")
        run = simulate(
            application,
            steady(90, seconds=90),
            start=spread(application, old, {"work": 2}),
            host=SLOW_HOSTS,
            max_hosts=2,
            every_s=5.0,
            script={20.0: spread(application, new, {"work": 2})},
        )
        assert run.last.observed.hosts == new
        assert set(run.last.hosts) == set(new)
        assert run.processed() == pytest.approx(8100)

    def test_a_pool_has_no_more_hosts_than_it_has(self) -> None:
        backend = world(one_operator(), steady(10, seconds=60), max_hosts=2, host=SLOW_HOSTS)
        backend.clock.advance_to(10.0)
        backend.apply([AddHosts(("host-1",))])
        with pytest.raises(InvalidValue, match="3 hosts were asked for, but the pool has 2"):
            backend.apply([AddHosts(("host-2",))])

    def test_a_host_cannot_be_added_twice(self) -> None:
        backend = world(one_operator(), steady(10, seconds=60))
        with pytest.raises(InvalidValue, match="'host-0' exists already"):
            backend.apply([AddHosts(("host-0",))])

    def test_hosts_may_come_and_go_without_end(self) -> None:
        """Each takes long to be gone: far more of them linger than the pool has."""
        application = one_operator()
        backend = world(application, steady(10, seconds=600), max_hosts=2, host={"start_s": 1.0, "release_s": 500.0})
        for n in range(1, 30):
            backend.clock.advance_to(20.0 * n - 10.0)
            backend.apply([AddHosts((f"host-{n}",)), SetReplicas("work", ("host-0", f"host-{n}"), before=1)])
            backend.clock.advance_to(20.0 * n)
            backend.apply([SetReplicas("work", ("host-0",), before=2), ReleaseHosts((f"host-{n}",))])
        seen = backend.observe()

        assert len(seen.hosts) == 26
        assert sum(h.state is HostState.RELEASING for h in seen.hosts.values()) == 25
        assert seen.operators["work"].processed_rows == pytest.approx(10 * 580)

    def test_a_new_host_does_not_inherit_the_figures_of_the_one_before_it(self) -> None:
        application = one_operator(grouping=Grouping.SHUFFLE, row_bytes=1000)
        start = spread(application, ("host-0", "host-1"), {"work": 2})
        leave = Allocation(("host-0",), {"work": OperatorAllocation(("host-0",))})
        backend = world(application, steady(10, seconds=60), start=start)
        observe(backend, until_s=20.0)
        backend.clock.advance_to(30.0)
        backend.apply([SetReplicas("work", ("host-0",), before=2), ReleaseHosts(("host-1",))])
        backend.clock.advance_to(31.0)
        backend.apply([AddHosts(("host-2",))])
        backend.clock.advance_to(40.0)
        seen = backend.observe()

        assert set(seen.hosts) == {"host-0", "host-2"}
        assert seen.observed.operators == leave.operators
        assert seen.hosts["host-2"].utilisation == 0
        assert seen.hosts["host-2"].network_bytes_per_s == 0


class TestBilling:
    def test_a_host_is_billed_from_the_moment_it_is_asked_for_until_it_is_gone(self) -> None:
        application = one_operator()
        add, release = [AddHosts(("host-1",))], [ReleaseHosts(("host-1",))]
        run = simulate(
            application,
            steady(10, seconds=120),
            cores=4,
            host={"start_s": 33.0, "release_s": 7.5},
            every_s=10.0,
            script={20.0: add, 70.0: release},
        )
        billed = {o.end_s: o.core_s for o in run.observations}
        assert billed[20.0] == 4 * 10.0
        assert [billed[t] for t in (30.0, 50.0, 60.0, 70.0)] == [80.0] * 4
        assert billed[80.0] == pytest.approx(4 * (10.0 + 7.5))
        assert billed[90.0] == 40.0
        assert sum(billed.values()) == pytest.approx(4 * (120 + 50 + 7.5))

    def test_a_lost_host_is_billed_until_it_is_lost(self) -> None:
        run = simulate(one_operator(), steady(10, seconds=60), hosts=2, cores=3, failures=(Failure(at_s=41.5, host="host-1"),))
        assert run.last.core_s == pytest.approx(3 * (60 + 41.5))

    def test_how_often_one_looks_does_not_change_the_bill(self) -> None:
        totals = []
        for every_s in (1.0, 7.0, 60.0):
            run = simulate(
                one_operator(), steady(10, seconds=60), every_s=every_s, host=SLOW_HOSTS, script={12.0: [AddHosts(("host-1",))]}
            )
            totals.append(sum(o.core_s for o in run.observations))
        assert totals == pytest.approx([64 * (60 + 48)] * 3)


class TestSharing:
    def test_an_overloaded_host_slows_down_everything_on_it_in_proportion(self) -> None:
        application = Application(
            name="two",
            operators=(
                operator("a", grouping=Grouping.SHUFFLE),
                operator("b", grouping=Grouping.SHUFFLE, service_time_s=0.02),
            ),
        )
        run = simulate(application, steady(200, seconds=40), replicas={"a": 2, "b": 2}, cores=2, every_s=20.0)

        # Both want two cores of the two there are: each gets one of them.
        assert run.last.operators["a"].processed_rows / 20 == pytest.approx(100, rel=1e-6)
        assert run.last.operators["b"].processed_rows / 20 == pytest.approx(50, rel=1e-6)
        assert run.last.hosts["host-0"].utilisation == pytest.approx(1.0)

    def test_replicas_have_the_same_pace_from_the_first_step_of_an_overload_on(self) -> None:
        run = simulate(one_operator(grouping=Grouping.SHUFFLE), steady(400, seconds=2), replicas=4, cores=2, every_s=1.0)

        for seen in run.observations:
            assert seen.operators["work"].replica_utilisation.tolist() == pytest.approx([0.5] * 4)

    def test_cores_are_not_idle_because_much_was_wanted_before(self) -> None:
        waves = phases((400, 1), (0, 1), (400, 1), (0, 1))  # two cores have 4 s of work, and 2 s for it
        run = simulate(one_operator(grouping=Grouping.SHUFFLE), waves, replicas=4, cores=2, every_s=1.0)

        assert [seen.hosts["host-0"].utilisation for seen in run.observations] == pytest.approx([1.0] * 4)

    def test_what_one_operator_leaves_another_may_use(self) -> None:
        application = Application(
            name="two", operators=(operator("hungry", grouping=Grouping.SHUFFLE), operator("modest", service_time_s=0.002))
        )
        run = simulate(application, steady(120, seconds=60), cores=1, every_s=30.0)

        assert run.last.operators["modest"].processed_rows == pytest.approx(30 * 120, rel=1e-3)
        assert run.last.operators["hungry"].processed_rows == pytest.approx(30 * (1 - 0.24) / 0.01, rel=1e-3)

    def test_a_host_with_cores_to_spare_slows_nobody_down(self) -> None:
        application = one_operator(grouping=Grouping.SHUFFLE)
        run = simulate(application, steady(350, seconds=60), replicas=4, cores=4)

        assert run.latency.max_s == pytest.approx(0.01)
        assert run.last.hosts["host-0"].utilisation == pytest.approx(3.5 / 4)

    def test_an_overloaded_host_leaves_the_others_alone(self) -> None:
        application = chain(operator("a", grouping=Grouping.SHUFFLE), operator("b", grouping=Grouping.SHUFFLE))
        apart = Allocation(
            ("host-0", "host-1"),
            {"a": OperatorAllocation(("host-0",) * 3), "b": OperatorAllocation(("host-1",) * 3)},
        )
        run = simulate(application, steady(250, seconds=60), start=apart, cores=2, every_s=30.0)

        assert run.last.operators["a"].processed_rows == pytest.approx(30 * 200)
        assert run.last.operators["b"].backlog_rows == pytest.approx(0, abs=1e-6)
        assert run.last.hosts["host-0"].utilisation == pytest.approx(1.0)
        assert run.last.hosts["host-1"].utilisation == pytest.approx(1.0)

    def test_utilisation_is_the_share_of_all_cores(self) -> None:
        run = simulate(one_operator(), steady(50, seconds=60), cores=4)

        assert run.last.hosts["host-0"].utilisation == pytest.approx(0.5 / 4)
        assert run.last.operators["work"].utilisation == pytest.approx(0.5)


class TestNetwork:
    def test_bandwidth_caps_what_comes_in(self) -> None:
        run = simulate(
            one_operator(row_bytes=10**6, service_time_s=0.001),
            steady(90, seconds=60),
            host={"bandwidth_bytes_per_s": 60e6},
            every_s=30.0,
        )
        assert run.last.operators["work"].processed_rows == pytest.approx(30 * 60, rel=1e-6)
        assert run.last.hosts["host-0"].network_bytes_per_s == pytest.approx(60e6, rel=1e-6)
        assert run.last.backlog_rows == pytest.approx(60 * 30, rel=0.02)

    def test_bandwidth_caps_what_goes_out(self) -> None:
        """`parse` sends three rows of a megabyte for each that it takes in: 30 rows/s use up 90 MB/s on either side."""
        application = Application(
            name="wide",
            operators=(operator("parse", row_bytes=0, service_time_s=0.001), operator("count", row_bytes=10**6)),
            edges=(Edge(upstream="parse", downstream="count", selectivity=3.0),),
        )
        run = simulate(application, steady(50, seconds=60), hosts=2, every_s=30.0, host={"bandwidth_bytes_per_s": 90e6})
        assert run.last.operators["parse"].processed_rows == pytest.approx(30 * 30, rel=1e-6)
        assert run.last.hosts["host-0"].network_bytes_per_s == pytest.approx(90e6, rel=1e-6)

    def test_rows_that_stay_on_a_host_use_no_network(self) -> None:
        application = chain(operator("a", row_bytes=1000), operator("b", row_bytes=500))
        here = simulate(application, steady(20, seconds=60))
        there = simulate(application, steady(20, seconds=60), hosts=2)

        assert here.last.hosts["host-0"].network_bytes_per_s == pytest.approx(20 * 1000)
        assert there.last.hosts["host-0"].network_bytes_per_s == pytest.approx(20 * (1000 + 500))
        assert there.last.hosts["host-1"].network_bytes_per_s == pytest.approx(20 * 500)

    def test_whoever_waits_for_the_network_leaves_the_cores_to_the_others(self) -> None:
        application = Application(
            name="two",
            operators=(
                operator("wide", row_bytes=10**6, service_time_s=0.001, grouping=Grouping.SHUFFLE),
                operator("narrow", row_bytes=0, grouping=Grouping.SHUFFLE),
            ),
        )
        run = simulate(application, steady(80, seconds=200), cores=1, host={"bandwidth_bytes_per_s": 10e6})

        assert run.processed("wide") == pytest.approx(200 * 10, rel=0.01)
        assert run.processed("narrow") == pytest.approx(200 * 80)

    def test_when_the_hot_keys_change_so_does_what_goes_over_the_network(self) -> None:
        """Rows of `parse` on host-0 go to the one hot shard of `count`, which is now on host-0 and now on host-1."""
        keys = KeyDistribution(keys=64, zipf=4.0, shuffles_per_minute=1.0)
        application = chain(
            operator("parse", row_bytes=0), operator("count", grouping=Grouping.KEY, shards=8, row_bytes=1000, keys=keys)
        )
        start = Allocation(
            ("host-0", "host-1"),
            {"parse": OperatorAllocation(("host-0",)), "count": OperatorAllocation(("host-0", "host-1"), (0, 1) * 4)},
        )
        run = simulate(application, steady(50, seconds=600), start=start, every_s=60.0, network_delay_s=2.0)

        away = [o.shards.rows[1::2].sum() / o.shards.rows.sum() for o in run.of("count")]
        assert min(away) < 0.2
        assert max(away) > 0.8
        for seen, part in zip(run.observations, away, strict=True):
            assert seen.latency.mean_s == pytest.approx(0.02 + 2.0 * part)
            assert seen.hosts["host-0"].network_bytes_per_s == pytest.approx(50 * 1000 * part)


class TestMemory:
    def test_a_host_holds_state_rows_that_wait_and_what_operators_need_for_themselves(self) -> None:
        application = one_operator(
            grouping=Grouping.KEY, shards=4, state_bytes_per_shard=10**6, row_bytes=100, memory_bytes=5 * 10**6
        )
        start = Allocation(("host-0", "host-1"), {"work": OperatorAllocation(("host-0", "host-1"), (0, 0, 0, 1))})
        run = simulate(application, steady(10, seconds=20), start=start)
        full = simulate(application, steady(300, seconds=20), start=start)

        assert [h.memory_bytes for h in run.last.hosts.values()] == pytest.approx([8e6, 6e6])
        waiting = full.last.operators["work"].shards.backlog_rows
        assert full.last.hosts["host-0"].memory_bytes == pytest.approx(8e6 + 100 * waiting[:3].sum())


class TestFailures:
    def test_what_ran_on_a_lost_host_stands_still_and_goes_on_elsewhere(self) -> None:
        application = one_operator(grouping=Grouping.KEY, shards=4)
        run = simulate(
            application,
            phases((40, 100), (0, 30)),
            hosts=2,
            replicas=2,
            recovery_s=15.0,
            every_s=5.0,
            failures=(Failure(at_s=50.0, host="host-1"),),
        )
        hit = run.at(65)
        assert hit.observed.hosts == ("host-0",)
        assert hit.observed.operators["work"].replica_hosts == ("host-0", "host-0")
        assert hit.observed.operators["work"].shard_replicas == (0, 1, 0, 1)
        waiting = hit.operators["work"].shards.backlog_rows
        assert waiting[[0, 2]].tolist() == pytest.approx([0.0, 0.0], abs=1e-6)
        assert (waiting[[1, 3]] > 0).all()
        assert waiting.sum() == pytest.approx(15 * 40 * hit.operators["work"].shards.rows[[1, 3]].sum() / 200, rel=1e-6)
        assert run.at(50).events == ("host-1 failed",)
        assert run.at(50).reconfigurations == {"hosts_failed": 1}
        assert run.processed() == pytest.approx(4000)
        assert run.latency.max_s == pytest.approx(15.0, abs=0.6)

    @pytest.mark.parametrize("lost", ["host-0", "host-1"])
    def test_a_queue_shared_by_hosts_is_served_by_those_that_are_left(self, lost: str) -> None:
        """Three replicas here and one there: until the lost ones have recovered, the others go on alone."""
        start = Allocation(("host-0", "host-1"), {"work": OperatorAllocation(("host-0", "host-0", "host-1", "host-0"))})
        run = simulate(
            one_operator(),
            steady(390, seconds=80),
            start=start,
            recovery_s=20.0,
            every_s=20.0,
            failures=(Failure(at_s=40.0, host=lost),),
        )
        left = 1 if lost == "host-0" else 3
        assert [o.processed_rows for o in run.of("work")] == pytest.approx([7800, 7800, 20 * 100 * left, 8000])

    def test_without_a_name_the_host_with_most_replicas_is_lost(self) -> None:
        application = one_operator(grouping=Grouping.SHUFFLE)
        start = Allocation(("host-0", "host-1"), {"work": OperatorAllocation(("host-1", "host-0", "host-1"))})
        run = simulate(application, steady(40, seconds=60), start=start, failures=(Failure(at_s=30.0),))

        assert run.last.observed.hosts == ("host-0",)

    def test_the_survivors_take_turns(self) -> None:
        application = one_operator(grouping=Grouping.SHUFFLE)
        start = Allocation(("host-0", "host-1", "host-2"), {"work": OperatorAllocation(("host-0",) * 4)})
        run = simulate(application, steady(40, seconds=60), start=start, failures=(Failure(at_s=30.0, host="host-0"),))

        assert run.last.observed.operators["work"].replica_hosts == ("host-1", "host-2", "host-1", "host-2")

    @pytest.mark.parametrize("service", list(ServiceModel))
    def test_when_the_only_host_is_lost_another_is_started_in_its_place(self, service: ServiceModel) -> None:
        run = simulate(
            one_operator(),
            phases((20, 100), (0, 60)),
            host={"start_s": 20.0},
            recovery_s=5.0,
            every_s=5.0,
            service=service,
            failures=(Failure(at_s=40.0),),
        )
        assert "no host is left: host-1 is started in its place" in run.at(40).events
        assert run.at(60).observed.hosts == ("host-1",)
        # In tuple mode nothing leaves before 65 s; a batch that was under way is run again from then on.
        assert run.at(45).operators["work"].processed_rows == 0
        assert run.at(65).operators["work"].processed_rows == 0
        assert run.at(70).operators["work"].processed_rows > 0
        assert run.processed() == pytest.approx(2000)

    def test_a_host_may_be_lost_while_another_is_on_its_way_out(self) -> None:
        """host-0 is to go once host-3 has started; meanwhile host-1 is lost, and what it did must not go to host-0."""
        application = one_operator(grouping=Grouping.KEY, shards=6)
        start = spread(application, ("host-0", "host-1", "host-2"), {"work": 3})
        routes = start.operators["work"].shard_replicas
        plan = Allocation(("host-1", "host-2", "host-3"), {"work": OperatorAllocation(("host-3", "host-1", "host-2"), routes)})
        run = simulate(
            application,
            steady(40, seconds=100),
            start=start,
            host=SLOW_HOSTS,
            every_s=5.0,
            script={20.0: plan},
            failures=(Failure(at_s=30.0, host="host-1"),),
        )
        seen = run.at(35)
        assert seen.observed.operators["work"].replica_hosts == ("host-0", "host-2", "host-2")
        assert seen.requested.operators == seen.observed.operators
        assert set(seen.requested.hosts) == {"host-0", "host-2", "host-3"}  # host-0 is needed after all
        assert run.last.observed.hosts == ("host-0", "host-2", "host-3")
        assert run.processed() == pytest.approx(4000)

    def test_a_host_that_is_lost_while_it_starts_takes_its_plan_with_it(self) -> None:
        application = one_operator(grouping=Grouping.SHUFFLE)
        move = Allocation(("host-1",), {"work": OperatorAllocation(("host-1",))})
        run = simulate(
            application,
            steady(40, seconds=100),
            host=SLOW_HOSTS,
            every_s=5.0,
            script={20.0: move},
            failures=(Failure(at_s=30.0, host="host-1"),),
        )
        assert run.last.observed == run.last.requested == spread(application, ("host-0",))
        assert run.latency.max_s == pytest.approx(0.01)

    def test_a_failure_of_a_host_that_is_not_there_is_noted_and_harmless(self) -> None:
        run = simulate(one_operator(), steady(40, seconds=60), failures=(Failure(at_s=30.0, host="host-9"),))

        assert run.last.events == ("host-9 was to fail, but is not there",)
        assert run.processed() == pytest.approx(2400)

    def test_no_row_is_lost_with_a_host(self) -> None:
        for service in ServiceModel:
            application = chain(
                operator("a", grouping=Grouping.SHUFFLE),
                operator("b", grouping=Grouping.KEY, shards=8),
                operator("c", grouping=Grouping.LOAD_BALANCED),
                operator("d"),
            )
            failures = (Failure(at_s=20.0), Failure(at_s=27.0), Failure(at_s=31.0))
            run = simulate(
                application,
                phases((90, 60), (0, 240)),
                hosts=3,
                replicas=3,
                host={"start_s": 10.0},
                service=service,
                failures=failures,
                moves=Moves(synchronisation_s=1.0),
            )
            assert run.latency.rows == pytest.approx(5400)
            assert run.last.backlog_rows == pytest.approx(0, abs=1e-6)


def test_a_shard_cannot_be_moved_before_its_host_runs() -> None:
    application = one_operator(grouping=Grouping.KEY, shards=4)
    backend = world(application, steady(10, seconds=100), host=SLOW_HOSTS)
    backend.clock.advance_to(10.0)
    backend.apply(
        [AddHosts(("host-1",)), SetReplicas("work", ("host-0", "host-1"), before=1), MoveShards("work", {1: 1, 3: 1})]
    )
    backend.clock.advance_to(34.0)
    assert backend.observe().observed.operators["work"].shard_replicas == (0, 0, 0, 0)
    backend.clock.advance_to(36.0)
    seen = backend.observe()
    assert seen.observed.operators["work"].shard_replicas == (0, 1, 0, 1)
    assert seen.reconfigurations == {"scale_outs": 1, "shards_moved": 2}
    # It has been there for one of the two seconds.
    assert seen.hosts["host-1"].utilisation * 2 * 64 == pytest.approx(
        0.01 * seen.operators["work"].shards.rows[[1, 3]].sum() / 2
    )
