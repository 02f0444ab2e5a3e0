"""From any allocation to any other: the actions are enough, none is idle, and their order is safe."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st

from factories import allocation, application, operator
from springtide.backends.simulator.backend import SimulatorBackend
from springtide.backends.simulator.settings import MicroBatch, ServiceModel, SimulatorSettings
from springtide.execute.diff import actions, trigger_actions
from springtide.model.action import AddHosts, MoveShards, ReleaseHosts, SetReplicas, SetTriggerInterval
from springtide.model.allocation import Allocation, HostType, OperatorAllocation, Pool
from springtide.model.application import Application, Grouping

APPLICATION = application(
    operator("read", grouping=Grouping.SHUFFLE, max_replicas=4),
    operator("count", shards=6, max_replicas=5),
    operator("rank", grouping=Grouping.LOAD_BALANCED, max_replicas=3),
    operator("write", grouping=Grouping.SHARED, max_replicas=3),
)
HOST_NAMES = tuple(f"host-{i}" for i in range(8))
AT_ONCE = Pool(host=HostType(cores=2, start_s=0.0, release_s=0.0), max_hosts=4)


@st.composite
def allocations(draw: st.DrawFn, app: Application = APPLICATION) -> Allocation:
    """Any allocation that fits the application and the pool: replicas may pile up, hosts may stand idle."""
    hosts = tuple(draw(st.lists(st.sampled_from(HOST_NAMES), min_size=1, max_size=AT_ONCE.max_hosts, unique=True)))
    placed = {}
    for o in app.operators:
        replica_hosts = draw(st.lists(st.sampled_from(hosts), min_size=1, max_size=o.replica_limit))
        replica = st.integers(0, len(replica_hosts) - 1)
        routes = draw(st.lists(replica, min_size=o.shards, max_size=o.shards)) if o.keyed else ()
        placed[o.name] = OperatorAllocation(tuple(replica_hosts), tuple(routes))
    return Allocation(hosts, placed)


@pytest.mark.parametrize("service", list(ServiceModel))
@budget(max_examples=30)
@given(start=allocations(), plans=st.lists(allocations(), min_size=1, max_size=3))
def test_a_backend_that_carries_the_actions_out_has_what_was_planned(
    service: ServiceModel, start: Allocation, plans: list[Allocation]
) -> None:
    rows = np.full((1, len(plans) + 1), 50.0)
    settings = SimulatorSettings(service=service, interval_s=1.0)
    backend = SimulatorBackend(APPLICATION, AT_ONCE, settings, rows, start=start)
    backend.clock.advance_to(1.0)
    seen = backend.observe()
    assert _same(seen.requested, start)

    for end_s, planned in enumerate(plans, start=2):
        backend.apply(actions(seen.requested, planned))
        backend.clock.advance_to(float(end_s))
        seen = backend.observe()
        assert _same(seen.requested, planned)
        assert _same(seen.observed, planned)
        assert actions(seen.requested, planned) == ()


@budget(max_examples=30)
@given(start=allocations(), plans=st.lists(allocations(), min_size=2, max_size=6))
def test_what_was_requested_is_the_last_plan_however_long_it_takes(start: Allocation, plans: list[Allocation]) -> None:
    """Hosts take two and a half intervals to come: plans change before they are carried out, and nothing is left of them."""
    slow = Pool(host=HostType(cores=2, start_s=2.5, release_s=0.5), max_hosts=AT_ONCE.max_hosts)
    rows = np.full((1, len(plans) + 12), 50.0)
    backend = SimulatorBackend(APPLICATION, slow, SimulatorSettings(interval_s=1.0), rows, start=start)
    backend.clock.advance_to(1.0)
    seen = backend.observe()
    for end_s, plan in enumerate(plans, start=2):
        # A host on its way out cannot be called back: whoever needs one gets another, of a new name.
        leaving = {h: f"{h}{end_s}" for h in seen.hosts if h not in seen.requested.hosts}
        planned = _renamed(plan, leaving)
        backend.apply(actions(seen.requested, planned))
        backend.clock.advance_to(float(end_s))
        seen = backend.observe()
        assert _same(seen.requested, planned)

    backend.clock.advance_to(backend.duration_s)
    settled = backend.observe()
    assert _same(settled.observed, planned)
    assert set(settled.hosts) == set(planned.hosts)


@budget(max_examples=50)
@given(requested=allocations(), planned=allocations())
def test_hosts_come_first_and_go_last(requested: Allocation, planned: Allocation) -> None:
    wanted = actions(requested, planned)

    new = [h for h in planned.hosts if h not in requested.hosts]
    gone = [h for h in requested.hosts if h not in planned.hosts]
    assert [a for a in wanted if isinstance(a, AddHosts)] == ([AddHosts(tuple(new))] if new else [])
    assert [a for a in wanted if isinstance(a, ReleaseHosts)] == ([ReleaseHosts(tuple(gone))] if gone else [])
    assert not any(isinstance(a, AddHosts) for a in wanted[1:])
    assert not any(isinstance(a, ReleaseHosts) for a in wanted[:-1])


@budget(max_examples=50)
@given(requested=allocations(), planned=allocations())
def test_only_what_differs_is_asked_for_and_once(requested: Allocation, planned: Allocation) -> None:
    wanted = actions(requested, planned)

    for name, new in planned.operators.items():
        old = requested.operators[name]
        of_operator = [a for a in wanted if isinstance(a, SetReplicas | MoveShards) and a.operator == name]
        kinds = [type(a) for a in of_operator]
        moved = old.shard_replicas != new.shard_replicas
        assert kinds == [SetReplicas] * (old.replica_hosts != new.replica_hosts) + [MoveShards] * moved
        for action in of_operator:
            if isinstance(action, MoveShards):
                assert all(old.shard_replicas[s] != r for s, r in action.routes.items())


@budget(max_examples=50)
@given(planned=allocations())
def test_nothing_is_asked_for_when_nothing_changes(planned: Allocation) -> None:
    copy = Allocation(
        planned.hosts, {n: OperatorAllocation(p.replica_hosts, p.shard_replicas) for n, p in planned.operators.items()}
    )

    assert actions(planned, planned) == ()
    assert actions(planned, copy) == ()


def test_a_scale_out_onto_a_new_host_reads_like_a_plan_of_work() -> None:
    app = application("parse", "count")
    before = allocation(app, hosts=["host-0", "host-1"])
    after = Allocation(
        ("host-1", "host-2"),
        {
            "parse": OperatorAllocation(("host-1",), before.operators["parse"].shard_replicas),
            "count": OperatorAllocation(("host-1", "host-2"), (0, 1, 0, 1, 0, 1, 0, 1)),
        },
    )

    assert actions(before, after) == (
        AddHosts(("host-2",)),
        SetReplicas("parse", ("host-1",), before=1),
        SetReplicas("count", ("host-1", "host-2"), before=1),
        MoveShards("count", {1: 1, 3: 1, 5: 1, 7: 1}),
        ReleaseHosts(("host-0",)),
    )


def _same(one: Allocation, other: Allocation) -> bool:
    """The order in which hosts are named says nothing: replicas refer to them by name."""
    return set(one.hosts) == set(other.hosts) and one.operators == other.operators


def _renamed(plan: Allocation, names: Mapping[str, str]) -> Allocation:
    placed = {
        name: OperatorAllocation(tuple(names.get(h, h) for h in of.replica_hosts), of.shard_replicas)
        for name, of in plan.operators.items()
    }
    return Allocation(tuple(names.get(h, h) for h in plan.hosts), placed)


def test_trigger_intervals_are_set_where_they_differ_and_within_the_users_bounds() -> None:
    settings = SimulatorSettings(service=ServiceModel.MICRO_BATCH, interval_s=1.0, micro_batch=MicroBatch(trigger_s=2.0))
    backend = SimulatorBackend(APPLICATION, AT_ONCE, settings, np.full((1, 4), 50.0))
    backend.clock.advance_to(1.0)
    seen = backend.observe()
    assert trigger_actions(seen, {}) == ()
    assert trigger_actions(seen, {"read": 0.5, "count": 5.0}) == (SetTriggerInterval("count", 5.0),)
    backend.apply(trigger_actions(seen, {"count": 5.0}))
    backend.clock.advance_to(2.0)
    seen = backend.observe()
    assert seen.operators["count"].trigger_s == 5.0
    assert trigger_actions(seen, {}) == (SetTriggerInterval("count", 2.0),)
