import pytest
from guard_stories import Scripted, placed, play, replicas, view, why_nots, with_replicas

from springtide.errors import InvalidValue
from springtide.model.allocation import OperatorAllocation
from springtide.plan.guards.cooldown import Cooldown, Scope
from springtide.plan.guards.dry_run import DryRun

START = placed(2)


PARSE_2 = with_replicas(START, "parse", "host-0", "host-0")
PARSE_3 = with_replicas(START, "parse", "host-0", "host-0", "host-0")


def test_an_application_is_left_alone_for_the_grace_period() -> None:
    decisions = play(Cooldown(Scripted((PARSE_2, PARSE_3)), grace_s=60), START, intervals=5)
    assert replicas(decisions, "parse") == [2, 2, 2, 3, 3]
    assert why_nots(decisions[1]) == [
        "cooldown: not parse 2 -> 3 replicas, because the application changed 20 s ago and the grace period is 60 s"
    ]
    assert "changed 40 s ago" in why_nots(decisions[2])[0]


def test_other_operators_still_change_when_the_scope_is_an_operator() -> None:
    both = with_replicas(PARSE_3, "count", "host-1", "host-0")
    decisions = play(Cooldown(Scripted((PARSE_2, both)), grace_s=60, scope=Scope.OPERATOR), START, intervals=2)
    assert replicas(decisions, "parse") == [2, 2]
    assert replicas(decisions, "count") == [1, 2]
    assert why_nots(decisions[1]) == [
        "cooldown: not parse 2 -> 3 replicas, because it changed 20 s ago and the grace period is 60 s"
    ]


def test_a_host_is_left_alone_while_others_change() -> None:
    on_both = with_replicas(PARSE_2, "count", "host-0", "host-1")
    on_other = with_replicas(on_both, "rank", "host-1")
    decisions = play(Cooldown(Scripted((PARSE_2, on_other)), grace_s=60, scope=Scope.HOST), START, intervals=2)
    assert decisions[1].planned == PARSE_2
    assert why_nots(decisions[1]) == [
        "cooldown: not count 1 -> 2 replicas; move 4 shards of count, "
        "because host-0 changed 20 s ago and the grace period is 60 s",
        "cooldown: not move 4 shards of rank, because host-0 changed 20 s ago and the grace period is 60 s",
    ]


def test_a_change_on_a_host_that_did_not_change_goes_through() -> None:
    more_on_host_1 = with_replicas(PARSE_2, "count", "host-1", "host-1")
    decisions = play(Cooldown(Scripted((PARSE_2, more_on_host_1)), scope=Scope.HOST), START, intervals=2)
    assert decisions[1].planned == more_on_host_1
    assert decisions[1].why_not == ()


def test_shards_that_change_places_touch_both_their_hosts() -> None:
    spread = with_replicas(START, "count", "host-0", "host-1")
    swapped = spread.with_operator("count", OperatorAllocation(("host-0", "host-1"), (1, 0) * 4))
    more_on_host_1 = with_replicas(swapped, "rank", "host-0", "host-1")
    decisions = play(Cooldown(Scripted((swapped, more_on_host_1)), scope=Scope.HOST), spread, intervals=2)
    assert decisions[0].planned == swapped
    assert decisions[1].planned == swapped


def test_a_host_that_has_just_come_is_not_released() -> None:
    larger = START.with_hosts((*START.hosts, "host-2"))
    decisions = play(Cooldown(Scripted((larger, START)), grace_s=30, scope=Scope.HOST), START, intervals=3)
    assert [len(d.planned.hosts) for d in decisions] == [3, 3, 2]
    assert why_nots(decisions[1]) == ["cooldown: not release host-2, because it changed 20 s ago and the grace period is 30 s"]


def test_what_an_outer_guard_vetoed_starts_no_grace_period() -> None:
    decisions = play(DryRun(Cooldown(Scripted((PARSE_2, PARSE_3)))), START, intervals=3)
    assert [why_nots(d)[0].split(":")[0] for d in decisions] == ["dry-run"] * 3


def test_the_replacement_of_a_lost_host_does_not_wait() -> None:
    guard = Cooldown(Scripted((START, START)))
    _, memory = guard.decide(view(START, index=0), guard.start())
    decision, _ = guard.decide(view(placed(1), index=1), memory)
    assert decision.planned == START
    assert decision.why_not == ()


def test_nothing_is_vetoed_when_nothing_is_wanted() -> None:
    decisions = play(Cooldown(Scripted((PARSE_2,))), START, intervals=2)
    assert decisions[1].why_not == ()


def test_no_grace_no_veto() -> None:
    decisions = play(Cooldown(Scripted((PARSE_2, PARSE_3)), grace_s=0), START, intervals=2)
    assert replicas(decisions, "parse") == [2, 3]


def test_memory_forgets_what_is_older_than_the_grace_period() -> None:
    guard = Cooldown(Scripted((PARSE_2,)), grace_s=30)
    _, memory = guard.decide(view(START, index=0), guard.start())
    _, memory = guard.decide(view(PARSE_2, index=1), memory)
    assert memory.changed_s == {"the application": 20.0}
    _, memory = guard.decide(view(PARSE_2, index=2), memory)
    assert memory.changed_s == {}


def test_a_scope_may_be_given_as_text_and_must_be_known() -> None:
    assert Cooldown(Scripted((START,)), scope="host").scope == Scope.HOST  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match=r"there is no scope 'operater'; did you mean 'operator'\?"):
        Cooldown(Scripted((START,)), scope="operater")  # type: ignore[arg-type]


def test_a_negative_grace_period_is_refused() -> None:
    with pytest.raises(InvalidValue, match="grace_s must be 0 or more, not -1"):
        Cooldown(Scripted((START,)), grace_s=-1)
