"""Stories of local thresholds (Heinze et al. 2014, sections II and IV.A), on hosts of 4 cores."""

from dataclasses import replace

import pytest
from observations import POOL, placed_on, play, replicas, shard_hosts, shards, view

from factories import application, operator
from springtide.model.allocation import HostType, Pool
from springtide.model.application import Application, Edge, Grouping, Source
from springtide.model.change import change
from springtide.model.decision import Decision
from springtide.model.observation import HostState
from springtide.model.protocols import View
from springtide.plan.policies.local_thresholds import LocalThresholds
from springtide.plan.thresholds.judging import ThresholdMemory


def queries(*names: str, **fields: object) -> Application:
    """Queries side by side on one source, as in the paper's evaluation."""
    source = Source(name="ticks")
    edges = tuple(Edge(upstream="ticks", downstream=name) for name in names)
    return application(*(operator(name, **fields) for name in names), edges=edges, sources=(source,))


Q = queries("q1", "q2", shards=8)
RULES = LocalThresholds()


def decide(seen: View, memory: ThresholdMemory, rules: LocalThresholds = RULES) -> Decision:
    return rules.decide(seen, memory)[0]


def ripe(**streaks: int) -> ThresholdMemory:
    return ThresholdMemory(streaks={name.replace("_", "-"): streak for name, streak in streaks.items()})


def test_a_quiet_application_is_left_alone() -> None:
    placed = placed_on(q1=shards(*[0] * 8), q2=shards(*[1] * 8))
    story = list(play(RULES, Q, placed, [{"q1": 2.0, "q2": 1.5}] * 5))
    assert not any(change(placed, decision.planned).moved_shards for decision in story)
    first = story[0]
    assert first.reason == "all 2 hosts between 0.30 and 0.80: busiest host-0 at 0.50"
    assert first.expected.utilisation == pytest.approx(0.5)


def test_an_overloaded_host_is_relieved_after_three_measurements_down_to_the_target() -> None:
    placed = placed_on(q1=shards(*[0] * 8), q2=shards(0, 0, 0, 0, 1, 1, 1, 1))
    story = list(play(RULES, Q, placed, [{"q1": 2.4, "q2": 2.4}] * 3))
    assert story[0].reason == "hold: host-0 at 0.90 > 0.80 for 1 of 3 intervals"
    assert story[1].planned.hosts == placed.hosts
    # 3.6 cores on host-0, 2.4 at the target: four shards of 0.3 leave; host-1 carries 1.2 and takes them.
    assert story[2].reason == (
        "host-0 at 0.90 > 0.80 for 3 intervals: move 1.20 cores (2 shards of q1, 2 shards of q2) to host-1"
    )
    assert sum(change(story[1].planned, story[2].planned).moved_shards.values()) == 4
    assert story[2].expected.utilisation == pytest.approx(0.6)


def test_a_new_host_is_added_when_no_other_has_room() -> None:
    placed = placed_on(q1=shards(*[0] * 8), q2=shards(*[1] * 8))
    decision = decide(view(Q, placed, {"q1": 3.6, "q2": 2.2}), ripe(host_0=2))
    assert decision.planned.hosts == ("host-0", "host-1", "host-2")
    assert "to new host-2" in decision.reason
    assert shard_hosts(decision, "q1").count("host-2") == 3  # 0.45 cores each, 1.2 to move


def test_the_name_of_a_host_that_is_still_leaving_is_not_used_again() -> None:
    placed = placed_on(q1=shards(*[0] * 8), q2=shards(*[0] * 8))
    seen = view(Q, placed, {"q1": 3.6}, states={"host-1": HostState.RELEASING})
    assert decide(seen, ripe(host_0=2)).planned.hosts == ("host-0", "host-2")


def test_when_the_pool_is_used_up_what_cannot_move_stays_and_is_said() -> None:
    placed = placed_on(q1=shards(*[0] * 8), q2=shards(*[1] * 8))
    seen = view(Q, placed, {"q1": 3.6, "q2": 2.2}, pool=replace(POOL, max_hosts=2))
    decision = decide(seen, ripe(host_0=2))
    assert decision.planned is placed
    (veto,) = decision.why_not
    assert veto.what == "move 1.35 cores (3 shards of q1) (host-0 at 0.90 > 0.80 for 3 intervals)"
    assert veto.why == "no host has room for it below 0.60, and the pool has only 2 hosts"
    assert decision.reason == f"hold: cannot {veto.what}, because {veto.why}"


def test_neighbours_attract_what_moves() -> None:
    edges = (Edge(upstream="parse", downstream="count"),)
    chain = application("parse", "other", "count", edges=edges)
    placed = placed_on(parse=shards(*[0] * 8), other=shards(*[1] * 8), count=shards(*[2] * 8))
    decision = decide(view(chain, placed, {"parse": 3.6, "other": 0.8, "count": 0.8}), ripe(host_0=2))
    assert set(shard_hosts(decision, "parse")) == {"host-0", "host-2"}


def test_the_host_that_gave_rests_for_the_grace_period_and_the_one_that_received_does_not() -> None:
    """Section IV.A: after each scaling decision it is the affected host that is not touched."""
    placed = placed_on(q1=shards(*[0] * 8), q2=shards(0, 0, 0, 0, 1, 1, 1, 1))
    loads = [{"q1": 2.4, "q2": 2.4}, *[{"q1": 6.0, "q2": 4.0}] * 4]
    story = list(play(LocalThresholds(consecutive=1, grace_s=60.0), Q, placed, loads))
    assert "host-0 at 0.90 > 0.80 for 1 interval: move 1.20 cores" in story[0].reason
    assert story[1].reason.startswith("host-1 at")
    for resting in story[1:3]:
        assert "it is in its grace period until 80 s" in {v.why for v in resting.why_not if "relieve host-0" in v.what}
    assert story[3].reason.startswith("host-0 at")


def test_a_new_host_rests_too() -> None:
    placed = placed_on(q1=shards(*[0] * 8), q2=shards(*[1] * 8))
    loads = [{"q1": 3.6, "q2": 2.2}, *[{"q1": 0.8, "q2": 2.0}] * 3]
    story = list(play(LocalThresholds(consecutive=1, grace_s=60.0), Q, placed, loads))
    assert [len(decision.planned.hosts) for decision in story] == [3, 3, 3, 2]


def test_a_resting_host_may_receive() -> None:
    """Section II: the placement takes any host with enough capacity."""
    placed = placed_on(hosts=2, q1=shards(*[0] * 8), q2=shards(*[0] * 8))
    memory = replace(ripe(host_0=2), grace_until_s={"host-1": 1000.0})
    decision = decide(view(Q, placed, {"q1": 3.6}), memory)
    assert set(shard_hosts(decision, "q1")) == {"host-0", "host-1"}


def test_an_underloaded_host_is_released_when_everything_on_it_fits_elsewhere() -> None:
    placed = placed_on(q1=shards(*[0] * 8), q2=shards(*[1] * 8))
    story = list(play(RULES, Q, placed, [{"q1": 1.4, "q2": 0.8}] * 3))
    assert story[1].planned.hosts == ("host-0", "host-1")
    assert story[2].planned.hosts == ("host-0",)
    assert "host-1 at 0.20 < 0.30 for 3 intervals: release it, 0.80 cores (8 shards of q2) to host-0" in story[2].reason
    assert story[2].expected.utilisation == pytest.approx(0.55)


def test_a_release_is_cancelled_when_not_everything_fits() -> None:
    placed = placed_on(q1=shards(*[0] * 8), q2=shards(*[1] * 8))
    decision = decide(view(Q, placed, {"q1": 2.0, "q2": 0.8}), ripe(host_1=-2))
    assert decision.planned is placed
    (veto,) = decision.why_not
    assert veto.what == "release host-1 (host-1 at 0.20 < 0.30 for 3 intervals)"
    assert veto.why == "0.40 cores (4 shards of q2) would fit on no other host below 0.60"


def test_an_empty_host_is_simply_released() -> None:
    placed = placed_on(hosts=2, q1=shards(*[0] * 8), q2=shards(*[0] * 8))
    decision = decide(view(Q, placed, {"q1": 2.0}), ripe(host_1=-2))
    assert decision.planned.hosts == ("host-0",)
    assert decision.reason == "host-1 at 0.00 < 0.30 for 3 intervals: release it"


def test_the_pool_keeps_its_least_hosts() -> None:
    placed = placed_on(hosts=3, q1=shards(*[0] * 8), q2=shards(*[0] * 8))
    seen = view(Q, placed, {}, pool=replace(POOL, min_hosts=2))
    decision = decide(seen, ripe(host_0=-2, host_1=-2, host_2=-2))
    assert len(decision.planned.hosts) == 2
    assert decision.why_not[0].why == "the pool keeps at least 2 hosts"


def test_a_host_that_has_just_received_is_not_released_at_once() -> None:
    placed = placed_on(q1=shards(*[0] * 8), q2=shards(*[1] * 8))
    decision = decide(view(Q, placed, {"q1": 0.4, "q2": 0.3}), ripe(host_0=-2, host_1=-2))
    assert decision.planned.hosts == ("host-0",)


def test_a_decision_that_adds_hosts_releases_none() -> None:
    """What is on host-1 would fit on host-2, but the new host comes first: host-1 has no memory for what leaves host-0."""
    sizes = {"q1": 55, "q2": 30, "q3": 25}
    crowded = application(*(operator(name, shards=2, state_bytes_per_shard=size) for name, size in sizes.items()))
    placed = placed_on(q1=shards(0, 0), q2=shards(1, 1), q3=shards(2, 2))
    pool = Pool(host=HostType(cores=4, memory_bytes=110))
    loads = {"q1": 3.6, "q2": 0.2, "q3": 1.9}
    assert decide(view(crowded, placed, loads, pool=pool), ripe(host_1=-2)).planned.hosts == ("host-0", "host-2")
    both = decide(view(crowded, placed, loads, pool=pool), ripe(host_0=2, host_1=-2))
    assert both.planned.hosts == ("host-0", "host-1", "host-2", "host-3")


def test_starting_and_leaving_hosts_are_not_judged() -> None:
    placed = placed_on(hosts=2, q1=shards(*[0] * 8), q2=shards(*[0] * 8))
    seen = view(Q, placed, {"q1": 2.0}, states={"host-1": HostState.STARTING})
    assert decide(seen, ripe(host_1=-9)).planned is placed


def test_a_host_that_began_in_this_interval_is_judged_from_the_next_on() -> None:
    rules = LocalThresholds(consecutive=1)
    placed = placed_on(hosts=2, q1=shards(*[0] * 8), q2=shards(*[0] * 8))
    memory = ThresholdMemory(running=frozenset({"host-0"}))
    first, memory = rules.decide(view(Q, placed, {"q1": 2.0}), memory)
    assert first.planned.hosts == placed.hosts
    second, _ = rules.decide(view(Q, placed, {"q1": 2.0}, index=1), memory)
    assert second.planned.hosts == ("host-0",)


def test_what_has_been_requested_is_not_requested_again() -> None:
    before = placed_on(hosts=2, q1=shards(*[0] * 8), q2=shards(*[0] * 8))
    asked = before.with_operator("q1", shards(0, 0, 0, 0, 1, 1, 1, 1))
    seen = view(Q, before, {"q1": 3.6}, requested=asked)
    decision = decide(seen, ripe(host_0=5))
    assert decision.planned is asked
    assert decision.why_not[0].why == "what was requested already leaves it at 0.45"


def test_queries_of_one_replica_move_whole() -> None:
    single = queries("q1", "q2", "q3", max_replicas=1, shards=8)
    placed = placed_on(q1=shards(*[0] * 8), q2=shards(*[0] * 8), q3=shards(*[0] * 8))
    pool = Pool(host=HostType(cores=1))
    decision = decide(view(single, placed, {"q1": 0.5, "q2": 0.3, "q3": 0.15}, pool=pool), ripe(host_0=2))
    # 0.95 on one core: at least 0.35 must leave, and 0.45 is the least that can.
    moved = [name for name in ("q1", "q2", "q3") if decision.planned.operators[name].replica_hosts == ("host-1",)]
    assert moved == ["q2", "q3"]
    assert "move 0.45 cores (1 replica of q2, 1 replica of q3) to new host-1" in decision.reason


def test_what_is_too_large_for_any_host_stays_and_the_rest_moves() -> None:
    single = queries("q1", "q2", max_replicas=1, shards=1)
    placed = placed_on(q1=shards(0), q2=shards(0))
    seen = view(single, placed, {"q1": 0.7, "q2": 0.25}, pool=Pool(host=HostType(cores=1)))
    decision = decide(seen, ripe(host_0=2))
    assert decision.planned.operators["q1"].replica_hosts == ("host-0",)
    assert decision.planned.operators["q2"].replica_hosts == ("host-1",)


def test_an_operator_at_its_replica_limit_leaves_a_host_entirely_or_not_at_all() -> None:
    app = application(operator("big", shards=1), operator("two", shards=3, max_replicas=2))
    placed = placed_on(big=shards(0), two=shards(0, 0, 1))
    loads = {"big": 2.5, "two": [1.6, 1.6, 1.0]}  # the new host has room for one of the two shards on host-0, not for both
    decision = decide(view(app, placed, loads, pool=replace(POOL, max_hosts=3)), ripe(host_0=2))
    assert decision.planned.hosts == ("host-0", "host-1")
    assert shard_hosts(decision, "two") == ["host-0", "host-0", "host-1"]
    assert decision.why_not[0].why == "no host has room for it below 0.60, and its operator may have no more replicas"


def test_replicas_without_shards_move_one_by_one() -> None:
    app = application(operator("parse", grouping=Grouping.SHUFFLE), operator("count"))
    placed = placed_on(parse=replicas(0, 0, 0, 0), count=shards(*[0] * 8))
    decision = decide(view(app, placed, {"parse": 2.8, "count": 0.7}), ripe(host_0=2))
    assert decision.planned.operators["parse"].replicas == 4
    assert "host-1" in decision.planned.hosts


def test_a_saturated_replica_on_an_idle_host_gets_company() -> None:
    app = application(operator("parse", grouping=Grouping.SHUFFLE))
    story = list(play(RULES, app, placed_on(parse=(0,)), [{"parse": 1.0}] * 4))
    assert story[2].planned.operators["parse"].replicas == 2
    assert "parse's busiest replica at 1.00 > 0.80 for 3 intervals: 1 -> 2 replicas" in story[2].reason
    assert story[3].planned.operators["parse"].replicas == 2


def test_a_plan_that_never_happens_is_made_again() -> None:
    placed = placed_on(q1=shards(*[0] * 8), q2=shards(*[1] * 8))
    rules, memory = LocalThresholds(consecutive=1), ThresholdMemory()
    for index in range(3):  # a guard outside vetoes it every time
        decision, memory = rules.decide(view(Q, placed, {"q1": 3.6, "q2": 2.2}, index=index), memory)
        assert "move" in decision.reason
