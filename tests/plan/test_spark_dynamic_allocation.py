"""Spark's dynamic allocation: each time-out at its boundary, and stories on hosts of 4 cores, in intervals of 20 s."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from observations import POOL, placed_on, view

from factories import allocation, application, operator
from springtide.errors import InvalidValue
from springtide.model.allocation import Allocation, Pool
from springtide.model.application import Grouping
from springtide.model.decision import Decision
from springtide.model.observation import HostState
from springtide.model.protocols import View
from springtide.plan.policies.spark_dynamic_allocation import SparkDynamicAllocation, SparkMemory

APP = application(operator("count", shards=64))
WIDE = replace(POOL, max_hosts=40)
SLOW = SparkDynamicAllocation(sustained_scheduler_backlog_timeout_s=20.0)  # one round in each interval


def on(hosts: int, replicas: int | None = None) -> Allocation:
    return allocation(APP, hosts=hosts, replicas={"count": replicas or min(64, 4 * hosts)})


def seen(
    placed: Allocation,
    *,
    index: int = 0,
    cores: float = 1.0,
    backlog_s: float = 0.0,
    pool: Pool = WIDE,
    states: Mapping[str, HostState] | None = None,
) -> View:
    """An interval after which the operator's replicas need `backlog_s` for the rows that wait."""
    calm = view(APP, placed, {"count": cores}, index=index, pool=pool, states=states)
    count = calm.observation.operators["count"]
    waiting = replace(count, backlog_s=backlog_s, backlog_rows=backlog_s * 1000 * placed.operators["count"].replicas)
    return replace(calm, observation=replace(calm.observation, operators={"count": waiting}))


def story(rules: SparkDynamicAllocation, hosts: int, backlogs_s: Sequence[float], pool: Pool = WIDE) -> list[Decision]:
    """All cores busy and such a backlog after each interval; plans are carried out at once."""
    memory, placed, told = rules.start(), on(hosts), []
    for index, backlog_s in enumerate(backlogs_s):
        decision, memory = rules.decide(
            seen(placed, index=index, cores=4.0 * len(placed.hosts), backlog_s=backlog_s, pool=pool), memory
        )
        placed = decision.planned
        told.append(decision)
    return told


def sizes(decisions: Sequence[Decision]) -> list[int]:
    return [len(decision.planned.hosts) for decision in decisions]


# --- the request policy ---------------------------------------------------------------------------------------------


def test_each_round_asks_for_twice_as_many_as_the_last() -> None:
    """1, then 2, 4 and 8 and so on (Spark documentation), up to the 16 hosts that 64 tasks fill."""
    decisions = story(SLOW, 1, [30.0] * 5)
    assert sizes(decisions) == [2, 4, 8, 16, 16]
    assert decisions[0].reason == "60 tasks pending (60 of count): 1 -> 2 hosts"
    assert decisions[-1].reason == "no task pending, 64 tasks running: keep 16 hosts"


def test_with_sparks_own_time_outs_all_rounds_fall_into_one_interval() -> None:
    assert sizes(story(SparkDynamicAllocation(), 1, [30.0])) == [16]


@pytest.mark.parametrize(("timeout_s", "hosts"), [(20.0, 2), (20.01, 1)])
def test_the_first_round_is_due_when_the_backlog_has_lasted_for_the_time_out(timeout_s: float, hosts: int) -> None:
    rules = replace(SLOW, scheduler_backlog_timeout_s=timeout_s)
    assert sizes(story(rules, 1, [30.0])) == [hosts]
    assert sizes(story(rules, 1, [30.0, 30.0]))[-1] > hosts


@pytest.mark.parametrize(("timeout_s", "hosts"), [(19.0, 4), (19.01, 2), (9.5, 8)])
def test_further_rounds_are_due_each_sustained_time_out_later(timeout_s: float, hosts: int) -> None:
    """The first is due after 1 s, so 19 s are left of the interval."""
    assert sizes(story(replace(SLOW, sustained_scheduler_backlog_timeout_s=timeout_s), 1, [30.0])) == [hosts]


@pytest.mark.parametrize(("backlog_s", "pending"), [(0.99, {}), (1.0, {"count": 60})])
def test_tasks_whose_slot_comes_within_the_time_out_are_not_pending(backlog_s: float, pending: Mapping[str, int]) -> None:
    assert SparkDynamicAllocation().tasks(seen(on(1), backlog_s=backlog_s)).pending == pending


def test_an_operator_without_shards_has_as_many_tasks_as_may_run() -> None:
    app = application(operator("parse", grouping=Grouping.SHUFFLE, max_replicas=12))
    calm = view(app, allocation(app), {"parse": 1.0})
    late = replace(calm.observation.operators["parse"], backlog_s=5.0)
    now = replace(calm, observation=replace(calm.observation, operators={"parse": late}))
    tasks = SparkDynamicAllocation().tasks(now)
    assert (tasks.unfinished, tasks.pending) == (12, {"parse": 11})


def test_a_queue_that_was_drained_starts_the_ramp_anew() -> None:
    decisions = story(SLOW, 1, [30.0, 30.0, 0.0, 30.0, 30.0])
    assert sizes(decisions) == [2, 4, 4, 5, 7]


def test_no_more_hosts_are_asked_for_than_the_tasks_fill() -> None:
    assert sizes(story(SparkDynamicAllocation(executor_allocation_ratio=0.5), 1, [30.0])) == [8]


def test_the_pool_is_the_limit_and_it_is_said() -> None:
    (decision,) = story(SparkDynamicAllocation(), 1, [30.0], replace(WIDE, max_hosts=6))
    assert len(decision.planned.hosts) == 6
    assert str(decision.why_not[0]) == "spark-dynamic-allocation: not 16 hosts, because the pool has no more than 6"


def test_requests_for_hosts_that_are_not_there_yet_are_withdrawn_with_the_need() -> None:
    rules = SparkDynamicAllocation()
    decision, memory = rules.decide(seen(on(1), cores=4.0, backlog_s=30.0), rules.start())
    starting = dict.fromkeys(decision.planned.hosts[1:], HostState.STARTING)
    calm = seen(on(1), index=1, cores=1.0, states=starting)
    calm = replace(calm, observation=replace(calm.observation, requested=decision.planned))
    after, memory = rules.decide(calm, memory)
    assert after.planned.hosts == ("host-0",)
    assert memory.target == 1


# --- the remove policy ----------------------------------------------------------------------------------------------


def idle_last(hosts: int) -> Allocation:
    """The last host has no replica."""
    return placed_on(hosts=hosts, count=allocation(APP, hosts=hosts - 1, replicas={"count": 4}).operators["count"])


@pytest.mark.parametrize(("timeout_s", "released_at_s"), [(60.0, 60.0), (60.01, 80.0), (20.0, 20.0)])
def test_a_host_without_a_task_goes_when_the_idle_time_out_has_passed(timeout_s: float, released_at_s: float) -> None:
    rules = SparkDynamicAllocation(executor_idle_timeout_s=timeout_s)
    memory, placed = rules.start(), idle_last(3)
    for index in range(5):
        decision, memory = rules.decide(seen(placed, index=index), memory)
        if len(decision.planned.hosts) < 3:
            break
    assert 20.0 * (index + 1) == released_at_s
    assert decision.planned.hosts == ("host-0", "host-1")
    assert decision.reason == f"host-2 idle for {timeout_s:.0f} s: 3 -> 2 hosts"


def test_one_task_now_and_then_keeps_a_host() -> None:
    rules = SparkDynamicAllocation()
    memory = rules.start()
    for index in range(9):
        placed = idle_last(3) if index % 3 else on(3, 3)
        decision, memory = rules.decide(seen(placed, index=index, cores=0.3), memory)
        assert decision.planned.hosts == placed.hosts


def test_a_stream_keeps_every_host_it_once_got_however_little_comes() -> None:
    """Each batch has tasks for every host, so none is ever idle: why Spark's users do not rely on this for streams."""
    rules = SparkDynamicAllocation()
    memory = rules.start()
    for index in range(20):
        decision, memory = rules.decide(seen(on(8), index=index, cores=0.1), memory)
        assert len(decision.planned.hosts) == 8
    assert memory.target == 1


def test_when_nothing_comes_all_hosts_go_but_for_the_least_the_pool_keeps() -> None:
    rules = SparkDynamicAllocation()
    memory, placed = rules.start(), on(8)
    for index in range(3):
        decision, memory = rules.decide(seen(placed, index=index, cores=0.0, pool=replace(WIDE, min_hosts=2)), memory)
    assert len(decision.planned.hosts) == 2
    assert str(decision.why_not[0]).endswith("because no fewer than 2 hosts may remain")


def test_an_idle_host_stays_while_its_slots_are_needed() -> None:
    rules = SparkDynamicAllocation(executor_idle_timeout_s=20.0)
    placed = idle_last(3)
    late = seen(placed, cores=4.0, backlog_s=30.0)
    decision, _ = rules.decide(late, SparkMemory(target=3, idle_since_s={"host-2": 0.0}))
    assert len(decision.planned.hosts) >= 3


def test_a_new_host_is_idle_only_from_when_it_is_there() -> None:
    rules = SparkDynamicAllocation(executor_idle_timeout_s=20.0)
    before = SparkMemory(target=3, running=frozenset({"host-0", "host-1"}))
    decision, memory = rules.decide(seen(idle_last(3)), before)
    assert memory.idle_since_s == {"host-2": 20.0}
    assert len(decision.planned.hosts) == 3


# --- replicas -------------------------------------------------------------------------------------------------------


def test_replicas_follow_the_cores_there_are() -> None:
    (decision,) = story(SparkDynamicAllocation(), 1, [30.0], replace(WIDE, max_hosts=5))
    assert decision.planned.operators["count"].replicas == 20
    assert decision.expected.utilisation == pytest.approx(0.2)  # 4 cores of 20


def test_slots_are_dealt_anew_when_an_operator_is_short_of_them() -> None:
    rules = SparkDynamicAllocation()
    decision, _ = rules.decide(seen(on(1, 1), cores=1.5), rules.start())
    assert decision.planned.operators["count"].replicas == 4
    assert decision.reason == "no task pending, 2 tasks running: keep 1 host, deal their slots anew"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"executor_idle_timeout_s": 0.0}, "spark-dynamic-allocation: executor_idle_timeout_s must be above 0, not 0.0"),
        (
            {"executor_allocation_ratio": 1.5},
            "spark-dynamic-allocation: executor_allocation_ratio must be above 0 and at most 1, not 1.5",
        ),
    ],
)
def test_parameters_that_cannot_be_are_refused(parameters: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidValue) as mistake:
        SparkDynamicAllocation(**parameters)
    assert str(mistake.value) == message
