"""Stories of global thresholds (Heinze et al. 2014, section IV.B), on hosts of 4 cores."""

from dataclasses import replace

import pytest
from observations import POOL, placed_on, play, shard_hosts, shards, view

from factories import application
from springtide.model.observation import HostState
from springtide.plan.policies.global_thresholds import GlobalThresholds
from springtide.plan.policies.local_thresholds import LocalThresholds
from springtide.plan.thresholds.judging import AVERAGE, ThresholdMemory

Q = application("q1", "q2", edges=())
RULES = GlobalThresholds()
PLACED = placed_on(q1=shards(*[0] * 8), q2=shards(*[1] * 8))


def ripe(streak: int) -> ThresholdMemory:
    return ThresholdMemory(streaks={AVERAGE: streak})


def test_it_is_the_average_that_counts() -> None:
    decision, _ = RULES.decide(view(Q, PLACED, {"q1": 2.4, "q2": 1.6}), RULES.start())
    assert decision.planned is PLACED
    assert decision.reason == "average of 2 hosts at 0.50 is between 0.30 and 0.80: busiest host-0 at 0.60"


def test_one_overloaded_host_is_not_noticed_where_local_thresholds_would() -> None:
    """The paper's point against global thresholds (section V.A)."""
    loads = [{"q1": 3.8, "q2": 1.4}] * 3
    assert list(play(RULES, Q, PLACED, loads))[-1].planned.hosts == ("host-0", "host-1")
    moved = list(play(LocalThresholds(), Q, PLACED, loads))[-1]
    assert "move" in moved.reason


def test_when_all_are_too_busy_every_host_above_the_target_gives() -> None:
    story = list(play(RULES, Q, PLACED, [{"q1": 3.6, "q2": 3.2}] * 3))
    assert story[0].reason == "hold: average of 2 hosts at 0.85 > 0.80 for 1 of 3 intervals"
    last = story[2]
    assert last.reason.startswith("average of 2 hosts at 0.85 > 0.80 for 3 intervals; host-0 at 0.90: move 1.35 cores")
    assert "; host-1 at 0.80: move 0.80 cores (2 shards of q2) to new host-2" in last.reason
    assert last.planned.hosts == ("host-0", "host-1", "host-2")
    assert last.expected.utilisation == pytest.approx(0.6)


def test_a_host_below_the_target_gives_nothing_and_receives() -> None:
    placed = placed_on(q1=shards(0, 0, 0, 0, 0, 0, 1, 1), q2=shards(0, 0, 0, 0, 0, 0, 2, 2))
    decision, _ = RULES.decide(view(Q, placed, {"q1": 4.8, "q2": 4.8}), ripe(2))
    assert decision.planned.hosts[:3] == placed.hosts
    assert set(shard_hosts(decision, "q1")) >= {"host-0", "host-1"}


def test_when_all_are_too_idle_the_idlest_host_is_released() -> None:
    story = list(play(RULES, Q, PLACED, [{"q1": 1.2, "q2": 0.8}] * 3))
    assert story[1].planned.hosts == PLACED.hosts
    assert story[2].planned.hosts == ("host-0",)
    assert story[2].reason.startswith(
        "average of 2 hosts at 0.25 < 0.30 for 3 intervals; host-1 at 0.20: release it, 0.80 cores (8 shards of q2) to host-0"
    )


def test_a_release_is_cancelled_when_not_everything_fits() -> None:
    tight = replace(POOL, host=replace(POOL.host, memory_bytes=8 * 100))
    heavy = application(*(replace(o, state_bytes_per_shard=100) for o in Q.operators), edges=())
    decision, _ = RULES.decide(view(heavy, PLACED, {"q1": 1.2, "q2": 0.8}, pool=tight), ripe(-2))
    assert decision.planned is PLACED
    assert "would fit on no other host" in decision.why_not[0].why


def test_the_pool_keeps_its_least_hosts() -> None:
    seen = view(Q, PLACED, {}, pool=replace(POOL, min_hosts=2))
    decision, _ = RULES.decide(seen, ripe(-2))
    assert decision.planned is PLACED
    assert decision.reason == (
        "average of 2 hosts at 0.00 < 0.30 for 3 intervals; "
        "hold: cannot release host-0 (host-0 at 0.00), because the pool keeps at least 2 hosts"
    )


def test_a_host_that_does_not_run_is_not_in_the_average() -> None:
    seen = view(Q, PLACED, {"q1": 3.6}, states={"host-1": HostState.STARTING})
    assert RULES.decide(seen, RULES.start())[0].reason == "hold: average of 1 host at 0.90 > 0.80 for 1 of 3 intervals"


def test_resting_hosts_are_not_touched_but_count_in_the_average() -> None:
    memory = replace(ripe(4), grace_until_s={"host-0": 90.0, "host-1": 90.0})
    decision, memory = RULES.decide(view(Q, PLACED, {"q1": 3.6, "q2": 3.6}), memory)
    assert decision.planned is PLACED
    assert [v.why for v in decision.why_not[:2]] == ["it is in its grace period until 90 s"] * 2
    assert memory.streaks == {AVERAGE: 5}


def test_the_count_starts_anew_after_a_change() -> None:
    story = list(play(GlobalThresholds(grace_s=0.0), Q, PLACED, [{"q1": 3.6, "q2": 3.2}] * 3 + [{"q1": 9.0, "q2": 9.0}]))
    assert story[3].reason.endswith("> 0.80 for 1 of 3 intervals")
