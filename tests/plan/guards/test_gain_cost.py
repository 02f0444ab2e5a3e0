"""What the application grants of a plan: tokens, the ratio of gain to cost, and hosts that follow (EDF, section 3.2)."""

from dataclasses import replace
from itertools import combinations

import pytest
from guard_stories import (
    APPLICATION,
    INTERVAL_S,
    Scripted,
    allocations,
    placed,
    play,
    replicas,
    stalled_view,
    unhurried,
    view,
    why_nots,
    with_replicas,
)
from hypothesis import assume, given
from hypothesis import strategies as st

from factories import operator
from springtide.backends.simulator.settings import SimulatorSettings
from springtide.errors import InvalidValue
from springtide.model.allocation import Allocation, HostType, OperatorAllocation, Pool
from springtide.model.application import Application
from springtide.model.change import change
from springtide.model.protocols import AnyPolicy
from springtide.plan.guards.gain_cost import GainCost, GainCostMemory
from springtide.plan.hierarchy.worth import Gain, valued
from springtide.plan.policies.local_thresholds import LocalThresholds
from springtide.report.summary import RunSummary
from springtide.simulation import Simulation
from springtide.workload.generators import steps

START = placed(2)
SLOW_S, QUICK_S = 0.19, 0.02  # the application's SLO is 0.2 s, as R_max in section 4
RAMP = tuple(with_replicas(START, "parse", *["host-0"] * n) for n in range(2, 12))
MOVED_4_MB = with_replicas(START, "count", "host-1", "host-0")  # 4 shards of 1 MB change host


def test_a_token_a_minute_is_a_change_a_minute() -> None:
    assert INTERVAL_S == 20.0
    decisions = play(GainCost(Scripted(RAMP)), START, intervals=7, latency_s=SLOW_S)
    assert replicas(decisions, "parse") == [2, 2, 2, 5, 5, 5, 8]
    assert why_nots(decisions[1]) == [
        "gain-cost: not parse 2 -> 3 replicas, because the bucket held 0.333 tokens for 1 request, "
        "and this scale-out gains 3 for 0.5 s of downtime"
    ]


def test_tokens_come_more_slowly_while_the_response_time_is_well_within_the_slo() -> None:
    decisions = play(GainCost(Scripted(RAMP)), START, intervals=7, latency_s=QUICK_S)
    assert replicas(decisions, "parse") == [2, 2, 2, 2, 2, 2, 8]
    assert why_nots(decisions[1])[0].endswith("; tokens come slowly, as a response time of 0.02 s is not above 0.1 s")


@pytest.mark.parametrize(
    ("beta", "latency_s", "grows"), [(0.5, 0.09, 2), (0.5, 0.11, 5), (0.75, 0.14, 2), (0.75, 0.16, 5), (0, 0.0, 5)]
)
def test_section_4_has_no_token_below_beta_r_max(beta: float, latency_s: float, grows: int) -> None:
    guard = GainCost(Scripted(RAMP), beta=beta, calm_tokens_per_minute=0.0)
    assert replicas(play(guard, START, intervals=4, latency_s=latency_s), "parse")[-1] == grows


def test_an_application_that_lets_no_row_out_is_slow() -> None:
    guard = GainCost(Scripted((START,)), calm_tokens_per_minute=0.0)
    assert guard.decide(stalled_view(START), GainCostMemory(inner=0, tokens=0))[1].tokens == pytest.approx(1 / 3)


def test_the_bucket_holds_no_more_than_its_capacity() -> None:
    guard = GainCost(Scripted((START,)), capacity=2, tokens_per_minute=60)
    assert guard.decide(view(START), guard.start())[1].tokens == 2


def test_the_cost_is_the_pause_and_the_time_the_state_is_on_the_wire() -> None:
    wanted = with_replicas(MOVED_4_MB, "parse", "host-0", "host-0")
    requests = valued(view(START), wanted, ["count", "parse"], pause_s=0.5)
    assert [(r.operator, r.gain) for r in requests] == [("parse", Gain.SCALE_OUT), ("count", Gain.SCALE_OUT)]
    assert requests[0].cost_s == 0.5
    assert requests[1].cost_s == pytest.approx(0.5 + 4e6 / 125e6)


def test_the_state_is_that_observed() -> None:
    seen = view(START)
    heavy = seen.observation.operators["count"].shards
    heavier = replace(seen.observation.operators["count"], shards=replace(heavy, state_bytes=heavy.state_bytes * 100))
    grown = replace(seen.observation, operators={**seen.observation.operators, "count": heavier})
    (request,) = valued(replace(seen, observation=grown), MOVED_4_MB, ["count"], pause_s=0.5)
    assert request.cost_s == pytest.approx(0.5 + 4e8 / 125e6)
    unseen = replace(seen, observation=replace(seen.observation, operators={}))
    assert valued(unseen, MOVED_4_MB, ["count"], pause_s=0.5)[0].cost_s == pytest.approx(0.5 + 4e6 / 125e6)


def test_scale_out_comes_before_migration_and_migration_before_scale_in_at_equal_cost() -> None:
    base = with_replicas(START, "parse", "host-0", "host-0")
    wanted = with_replicas(base, "parse", "host-0")
    wanted = wanted.with_operator("rank", OperatorAllocation(("host-1",), (0,) * 4))
    wanted = with_replicas(wanted, "count", "host-1", "host-1")
    granted = []
    for capacity in (1, 2, 3):
        (decision,) = play(GainCost(Scripted((wanted,)), capacity=capacity), base, intervals=1)
        granted.append([n for n in ("count", "rank", "parse") if decision.planned.operators[n] == wanted.operators[n]])
        assert len(decision.why_not) == 3 - capacity
    assert granted == [["count"], ["count", "rank"], ["count", "rank", "parse"]]


def test_a_cheap_scale_in_comes_before_a_scale_out_that_moves_much_state() -> None:
    base = with_replicas(START, "parse", "host-0", "host-0")
    wanted = with_replicas(with_replicas(base, "parse", "host-0"), "count", "host-1", "host-0")
    for pause_s, first in ((0.5, "count"), (0.001, "parse")):  # 3 / 0.532 against 1 / 0.5, and 3 / 0.033 against 1 / 0.001
        (decision,) = play(GainCost(Scripted((wanted,)), pause_s=pause_s), base, intervals=1)
        assert change(base, decision.planned).operators == (first,)


@unhurried
@given(start=allocations(), wanted=allocations(), tokens=st.integers(0, 3), pause_s=st.sampled_from([0.5, 0.001]))
def test_no_other_choice_of_as_many_requests_is_worth_more(
    start: Allocation, wanted: Allocation, tokens: int, pause_s: float
) -> None:
    guard = GainCost(Scripted((wanted,)), capacity=3, tokens_per_minute=0, calm_tokens_per_minute=0, pause_s=pause_s)
    seen = replace(view(start), pool=Pool(max_hosts=20))
    decision, memory = guard.decide(seen, GainCostMemory(inner=0, tokens=tokens))
    asked = change(start, wanted).operators
    worth = {r.operator: r.value for r in valued(seen, wanted, asked, pause_s)}
    granted = change(start, decision.planned).operators
    assert len(granted) == min(tokens, len(asked))
    assert memory.tokens == tokens - len(granted)
    best = max(sum(worth[name] for name in some) for some in combinations(asked, len(granted)))
    assert sum(worth[name] for name in granted) == pytest.approx(best)


@unhurried
@given(start=allocations(), wanted=allocations(), tokens=st.integers(0, 3), most=st.integers(1, 6), least=st.integers(1, 6))
def test_a_partly_granted_plan_stays_within_the_pool(
    start: Allocation, wanted: Allocation, tokens: int, most: int, least: int
) -> None:
    assume(len(start.hosts) <= most and least <= len(wanted.hosts) <= most and least <= most)
    guard = GainCost(Scripted((wanted,)), capacity=3, tokens_per_minute=0)
    seen = replace(view(start), pool=Pool(min_hosts=least, max_hosts=most))
    decision, _ = guard.decide(seen, GainCostMemory(inner=0, tokens=tokens))
    decision.planned.check(APPLICATION)
    assert least <= len(decision.planned.hosts) <= most
    assert bool(change(wanted, decision.planned)) <= bool(decision.why_not)


def test_the_hosts_of_a_granted_change_come_with_it_and_those_of_a_refused_one_stay_away() -> None:
    wanted = with_replicas(START, "parse", "host-0", "host-2")
    decision, memory = GainCost(Scripted((wanted,))).decide(view(START), GainCostMemory(inner=0, tokens=1))
    assert decision.planned == wanted
    assert memory.tokens == 0
    decision, _ = GainCost(Scripted((wanted,))).decide(view(START), GainCostMemory(inner=0, tokens=0))
    assert decision.planned == START
    assert why_nots(decision)[1] == "gain-cost: not add host-2, because it would have served nothing but parse"


def test_a_host_with_nothing_on_it_comes_and_goes_without_a_token() -> None:
    spare = START.with_hosts((*START.hosts, "host-2"))
    decisions = play(GainCost(Scripted((spare, START)), tokens_per_minute=0), START, intervals=2)
    assert [len(d.planned.hosts) for d in decisions] == [3, 2]
    assert not any(d.why_not for d in decisions)


def test_a_host_stays_until_the_last_operator_on_it_was_granted_its_move() -> None:
    decisions = play(GainCost(Scripted((placed(1),))), with_replicas(START, "rank", "host-1"), intervals=4, latency_s=SLOW_S)
    assert [len(d.planned.hosts) for d in decisions] == [2, 2, 2, 1]
    assert why_nots(decisions[0])[-1] == "gain-cost: not release host-1, because it still serves count"


def test_a_host_is_not_exchanged_by_halves_when_the_pool_has_no_other() -> None:
    """Both operators on host-1 go to host-2. With one token host-1 would stay, and three hosts are too many."""
    start = with_replicas(START, "rank", "host-1")
    wanted = replace(with_replicas(with_replicas(start, "rank", "host-2"), "count", "host-2"), hosts=("host-0", "host-2"))
    seen = replace(view(start), pool=Pool(max_hosts=2))
    one, both = (GainCost(Scripted((wanted,)), capacity=n).decide(seen, GainCostMemory(inner=0, tokens=n)) for n in (1, 2))
    assert one[0].planned == start
    assert "it would take more than the 2 hosts of the pool" in {veto.why for veto in one[0].why_not}
    assert one[1].tokens == 1
    assert both[0].planned == wanted


def test_a_lost_host_is_replaced_without_a_token() -> None:
    wanted = with_replicas(placed(1), "parse", "host-1")
    seen = replace(view(placed(1)), pool=Pool(min_hosts=2))
    decision, _ = GainCost(Scripted((wanted,)), tokens_per_minute=0).decide(seen, GainCostMemory(inner=0, tokens=0))
    assert decision.planned == placed(1).with_hosts(("host-0", "host-1"))
    assert [veto.what for veto in decision.why_not] == ["move 1 shard of parse"]


def test_around_another_policy_there_are_fewer_changes() -> None:
    def changes(policy: AnyPolicy) -> int:
        return _simulated(policy).decisions_with_change

    free, guarded = LocalThresholds(), GainCost(LocalThresholds(), tokens_per_minute=0.4, calm_tokens_per_minute=0.1)
    assert 0 < changes(guarded) < changes(free)


def _simulated(policy: AnyPolicy) -> RunSummary:
    chain = Application(name="one", operators=(operator("count", service_time_s=0.01, shards=16),))
    simulation = Simulation(
        trace=steps(levels=(60.0, 400.0, 60.0), hold_s=600.0),
        application=chain,
        pool=Pool(host=HostType(start_s=20.0), max_hosts=6),
        settings=SimulatorSettings(),
        policy=policy,
        policy_name="a test",
    )
    return simulation.run()[0]


@pytest.mark.parametrize(
    "settings",
    [{"capacity": 0}, {"tokens_per_minute": -1}, {"calm_tokens_per_minute": -1}, {"beta": 1.5}, {"pause_s": 0.0}],
)
def test_impossible_settings_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(InvalidValue, match=f"gain-cost: {next(iter(settings))} must"):
        GainCost(Scripted((START,)), **settings)  # type: ignore[arg-type]
