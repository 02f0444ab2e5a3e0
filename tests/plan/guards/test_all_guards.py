"""What holds for every guard, and for guards around guards."""

from collections.abc import Callable

import pytest
from guard_stories import APPLICATION, Scripted, allocations, placed, play, unhurried, view, why_nots, with_replicas
from hypothesis import given
from hypothesis import strategies as st

from springtide.model.allocation import Allocation
from springtide.model.change import change
from springtide.model.protocols import AnyPolicy
from springtide.plan.guards.balance import Balanced
from springtide.plan.guards.bounds import Bounded
from springtide.plan.guards.confirmation import Confirmed
from springtide.plan.guards.cooldown import Cooldown, Scope
from springtide.plan.guards.dry_run import DryRun
from springtide.plan.guards.gain_cost import GainCost
from springtide.plan.guards.scale_down_window import ScaleDownWindow
from springtide.plan.guards.token_bucket import TokenBucket

Guarding = Callable[[AnyPolicy], AnyPolicy]

GUARDS: dict[str, Guarding] = {
    "bounds": lambda policy: Bounded(policy, min_hosts=2, max_hosts=4, min_replicas=2, max_replicas=3),
    "cooldown": lambda policy: Cooldown(policy, grace_s=30),
    "cooldown, operator": lambda policy: Cooldown(policy, grace_s=30, scope=Scope.OPERATOR),
    "cooldown, host": lambda policy: Cooldown(policy, grace_s=30, scope=Scope.HOST),
    "confirmation": lambda policy: Confirmed(policy, up=2, down=2),
    "scale-down-window": lambda policy: ScaleDownWindow(policy, window_s=50),
    "token-bucket": lambda policy: TokenBucket(policy, capacity=2, beta=0),
    "gain-cost": lambda policy: GainCost(policy, capacity=2, beta=0),
    "balance": Balanced,
    "dry-run": DryRun,
    "nested": lambda policy: Bounded(
        ScaleDownWindow(Cooldown(TokenBucket(Confirmed(policy, up=1, down=2)), grace_s=30)), max_hosts=3
    ),
}


@pytest.mark.parametrize("guarding", GUARDS.values(), ids=GUARDS)
@unhurried
@given(start=allocations(), script=st.lists(allocations(), min_size=1, max_size=4))
def test_every_plan_is_valid_and_every_alteration_says_why(
    guarding: Guarding, start: Allocation, script: list[Allocation]
) -> None:
    decisions = play(guarding(Scripted(tuple(script))), start, intervals=len(script))
    for decision, wanted in zip(decisions, script, strict=True):
        decision.planned.check(APPLICATION)
        altered = bool(change(wanted, decision.planned))
        assert not altered or decision.why_not
        assert decision.reason == "the script says so"


@pytest.mark.parametrize("guarding", GUARDS.values(), ids=GUARDS)
@unhurried
@given(start=allocations(), wanted=allocations())
def test_same_view_and_memory_same_answer(guarding: Guarding, start: Allocation, wanted: Allocation) -> None:
    guard = guarding(Scripted((wanted,)))
    first = guard.decide(view(start), guard.start())
    assert guard.decide(view(start), guard.start()) == first
    second = guard.decide(view(first[0].planned, index=1), first[1])
    assert guard.decide(view(first[0].planned, index=1), first[1]) == second


@pytest.mark.parametrize("guarding", GUARDS.values(), ids=GUARDS)
def test_the_policy_inside_keeps_its_memory(guarding: Guarding) -> None:
    stay, script = placed(2), tuple(placed(2, parse=n, count=2, rank=2) for n in (2, 3, 2))
    wanted: list[int] = []

    class Recording(Scripted):
        def decide(self, view, memory):  # type: ignore[no-untyped-def]
            wanted.append(memory)
            return super().decide(view, memory)

    play(guarding(Recording(script)), stay, intervals=3)
    assert wanted == [0, 1, 2]


def test_every_guard_has_its_say() -> None:
    start = placed(2)
    first = with_replicas(start, "parse", "host-0", "host-0")
    then = with_replicas(with_replicas(first, "parse", "host-0"), "count", "host-0", "host-1", "host-2", "host-3")
    guard = Bounded(Cooldown(Scripted((first, then)), scope=Scope.OPERATOR), max_hosts=3)
    decision = play(guard, start, intervals=2)[1]
    assert decision.planned.operators["parse"].replicas == 2
    assert decision.planned.operators["count"].replicas == 4
    assert why_nots(decision) == [
        "cooldown: not parse 2 -> 1 replicas, because it changed 20 s ago and the grace period is 60 s",
        "bounds: not 4 hosts, because at most 3 are allowed: without host-3, whose replicas go to the others",
    ]


@pytest.mark.parametrize("guard", [Bounded, Confirmed, Cooldown, DryRun, GainCost, ScaleDownWindow, TokenBucket])
def test_a_guard_has_a_name_and_a_summary(guard: type) -> None:
    assert guard.name == guard(Scripted((placed(1),))).name  # type: ignore[attr-defined]
    assert guard.summary  # type: ignore[attr-defined]
