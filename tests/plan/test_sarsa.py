"""Stories of reinforcement learning (Heinze et al. 2014, section IV.C), on hosts of 4 cores."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from observations import POOL, Cores, placed_on, shards, view

from factories import application, operator
from springtide.backends.simulator.settings import SimulatorSettings
from springtide.model.allocation import Allocation, HostType, Pool
from springtide.model.application import Application, Edge, Grouping, Source
from springtide.model.decision import Decision
from springtide.plan.guards.dry_run import DryRun
from springtide.plan.policies.sarsa import Sarsa, SarsaMemory
from springtide.plan.reinforcement.learning import Learning, Taken, immediate_reward, updated
from springtide.plan.reinforcement.table import HostAction, Table, first_table
from springtide.report.summary import Point
from springtide.simulation import Simulation
from springtide.workload.generators import constant, steps
from springtide.workload.traces import Trace

TABLE_IA = {0.7: (0.4, 0.85, 0.8), 0.8: (0.38, 0.7, 0.85), 0.9: (0.35, 0.5, 0.9), 1.0: (0.32, 0.4, 1.0)}
PAPER = Learning(target=0.6)
ACTIONS = st.sampled_from(HostAction)


def rows(table: Table) -> dict[float, tuple[float, ...]]:
    return {u: tuple(table.rewards[table.state(u)]) for u in TABLE_IA}


def queries(*names: str) -> Application:
    edges = tuple(Edge(upstream="ticks", downstream=name) for name in names)
    return application(*(operator(name) for name in names), edges=edges, sources=(Source(name="ticks"),))


Q = queries("q1", "q2")
ONE_EACH = placed_on(q1=shards(*[0] * 8), q2=shards(*[1] * 8))
ONE_HOST = placed_on(q1=shards(*[0] * 8), q2=shards(*[0] * 8))
RULES = Sarsa(consecutive=99)  # operators are not resized: these stories are about hosts
UNTAUGHT = first_table(0.3, 0.8, 0.05)


def play(
    policy: Sarsa, placed: Allocation, loads: Sequence[Cores], pool: Pool = POOL, app: Application = Q
) -> list[tuple[Decision, SarsaMemory]]:
    """The policy's decisions, each carried out at once, and what it remembers after each."""
    memory, story = policy.start(), []
    for index, load in enumerate(loads):
        decision, memory = policy.decide(view(app, placed, load, index=index, pool=pool), memory)
        placed = decision.planned
        story.append((decision, memory))
    return story


def test_the_first_table_is_table_ia() -> None:
    for utilisation, rewards in rows(first_table(0.3, 0.8, 0.05)).items():
        assert rewards == pytest.approx(TABLE_IA[utilisation])


def test_the_example_below_table_i() -> None:
    # The paper writes 0.16 for 1/6, and from there 0.66 and 0.822.
    assert updated(0.85, rate=0.2, reward=0.66 + 0.1 * 0.5) == pytest.approx(0.822)
    assert immediate_reward(0.7, 0.9, 0.6) == pytest.approx(1 + 1 / 6 - 0.5)
    before = first_table(0.3, 0.8, 0.05)
    after = PAPER.learned(before, Taken(utilisation=0.7, action=HostAction.NO_ACTION), 0.9)
    assert after.reward(0.7, HostAction.NO_ACTION) == pytest.approx(0.8 * 0.85 + 0.2 * (2 / 3 + 0.1 * 0.5))
    assert after.reward(0.7, HostAction.NO_ACTION) == pytest.approx(0.822, abs=0.0015)
    table_ib = {**rows(before), 0.7: (0.4, after.reward(0.7, HostAction.NO_ACTION), 0.8)}
    assert rows(after) == table_ib
    assert (before.visits[14], after.visits[14]) == (0, 1)


def test_after_the_next_learning_steps_scale_out_becomes_the_best_at_070() -> None:
    table, best = first_table(0.3, 0.8, 0.05), []
    for _ in range(3):
        table = PAPER.learned(table, Taken(utilisation=0.7, action=HostAction.NO_ACTION), 0.9)
        best.append(table.best(table.state(0.7)))
    assert best == [HostAction.NO_ACTION, HostAction.NO_ACTION, HostAction.SCALE_OUT]
    assert table.best(table.state(0.75)) is HostAction.SCALE_OUT  # though nothing was learned of 0.75


@pytest.mark.parametrize(
    ("impact", "duration", "visits", "rate"),
    [(0.2, 80, 0, 0.2), (0.2, 80, 80, 0.1), (0.5, 80, 240, 0.125), (0.2, 160, 160, 0.1)],
)
def test_the_learning_rate_falls_with_the_visits_of_a_state(impact: float, duration: float, visits: int, rate: float) -> None:
    assert Learning(target=0.6, impact=impact, duration_visits=duration).rate(visits) == pytest.approx(rate)


def test_without_impact_nothing_is_learned() -> None:
    table = first_table(0.3, 0.8, 0.05)
    after = replace(PAPER, impact=0.0).learned(table, Taken(utilisation=0.7, action=HostAction.NO_ACTION), 1.0)
    assert after.rewards == table.rewards


def test_a_cancelled_action_is_punished() -> None:
    table = first_table(0.3, 0.8, 0.05)
    after = PAPER.learned(table, Taken(utilisation=0.15, action=HostAction.SCALE_IN, cancelled=True), 0.15)
    assert after.reward(0.15, HostAction.SCALE_IN) == pytest.approx(0.8 * 0.9 + 0.2 * (-1 + 0.1 * 0.9))
    twice = PAPER.learned(after, Taken(utilisation=0.15, action=HostAction.SCALE_IN, cancelled=True), 0.15)
    assert twice.best(twice.state(0.15)) is HostAction.NO_ACTION
    assert twice.best(twice.state(0.2)) is HostAction.NO_ACTION  # monotonicity
    assert twice.best(twice.state(0.1)) is HostAction.SCALE_IN


@given(
    lower=st.floats(0, 0.6),
    width=st.floats(0.01, 0.4),
    step=st.sampled_from([0.01, 0.05, 0.1, 0.25]),
    which=st.integers(0, 100),
)
def test_the_first_table_acts_as_the_thresholds(lower: float, width: float, step: float, which: int) -> None:
    upper = lower + width
    table = first_table(lower, upper, step)
    state = which % len(table.rewards)
    low, high = round(state * step, 9), round((state + 1) * step, 9)
    expected = (low >= round(upper, 9)) - (high <= round(lower, 9)) + 1
    if min(abs(low - upper), abs(high - lower)) > 1e-8:
        assert table.best(state) == expected


@pytest.mark.parametrize(
    ("utilisation", "action"),
    [
        (0.0, HostAction.SCALE_IN),
        (0.29, HostAction.SCALE_IN),
        (0.3, HostAction.NO_ACTION),
        (0.79, HostAction.NO_ACTION),
        (0.8, HostAction.SCALE_OUT),
        (1.2, HostAction.SCALE_OUT),
    ],
)
def test_who_has_learned_nothing_does_nothing_anywhere_between_the_thresholds(utilisation: float, action: HostAction) -> None:
    """The initialisation of section IV.C; that 0.8 is above the threshold of 0.8 is Table Ia's."""
    assert UNTAUGHT.best(UNTAUGHT.state(utilisation)) is action


@settings(max_examples=100, deadline=None)
@given(
    lessons=st.lists(st.tuples(st.floats(0, 1), ACTIONS, st.booleans(), st.floats(0, 1)), max_size=25), impact=st.floats(0, 1)
)
def test_no_higher_utilisation_ever_leads_to_a_lower_action(
    lessons: list[tuple[float, HostAction, bool, float]], impact: float
) -> None:
    table = first_table(0.3, 0.8, 0.05)
    for before, action, cancelled, after in lessons:
        taken = Taken(utilisation=before, action=action, cancelled=cancelled)
        table = replace(PAPER, impact=impact).learned(table, taken, after)
        best = [table.best(state) for state in range(len(table.rewards))]
        assert all(low <= high for low, high in pairwise(best))


def test_an_overloaded_host_is_relieved_at_once_down_to_the_target() -> None:
    ((decision, _),) = play(RULES, ONE_EACH, [{"q1": 3.6, "q2": 2.2}])
    assert decision.reason == (
        "host-0 at 0.90 (scale out is worth 0.90, no action 0.50): move 1.35 cores (3 shards of q1) to new host-2"
    )
    assert decision.expected.utilisation == pytest.approx(2.25 / 4)


def test_a_quiet_application_is_left_alone_and_teaches_that_this_is_right() -> None:
    story = play(RULES, ONE_EACH, [{"q1": 2.0, "q2": 2.0}] * 2)
    assert story[0][0].planned is ONE_EACH
    assert story[0][0].reason == "no action for 2 hosts: busiest host-0 at 0.50 (no action is worth 0.85)"
    learned = story[1][1].tables["host-0"]
    assert learned.reward(0.5, HostAction.NO_ACTION) == pytest.approx(0.8 * 0.85 + 0.2 * (1 + 0.085))


def test_each_host_has_a_table_from_its_allocation_to_its_release() -> None:
    loads: list[Cores] = [{"q1": 3.6, "q2": 2.2}, *[{"q1": 0.6, "q2": 0.6}] * 2]
    story = play(replace(RULES, grace_s=0), ONE_EACH, loads)
    assert set(story[0][1].tables) == {"host-0", "host-1"}
    assert set(story[1][1].tables) == {"host-0", "host-1", "host-2"}
    assert len(story[1][0].planned.hosts) < 3
    assert set(story[2][1].tables) == set(story[1][0].planned.hosts)


def test_a_host_that_comes_back_begins_anew() -> None:
    policy, memory = Sarsa(), SarsaMemory()
    for index in range(3):
        _, memory = policy.decide(view(Q, ONE_EACH, {"q1": 2.0, "q2": 2.0}, index=index), memory)
    alone = placed_on(q1=shards(*[0] * 8), q2=shards(*[0] * 8))
    _, memory = policy.decide(view(Q, alone, {"q1": 1.0, "q2": 1.0}, index=3), memory)
    assert "host-1" not in memory.tables
    _, memory = policy.decide(view(Q, ONE_EACH, {"q1": 2.0, "q2": 2.0}, index=4), memory)
    assert memory.tables["host-1"] == UNTAUGHT


def test_a_release_that_the_placement_cancels_is_tried_no_more() -> None:
    story = play(RULES, ONE_EACH, [{"q1": 2.2, "q2": 0.6}] * 4)
    assert [bool(d.why_not) for d, _ in story] == [True, True, False, False]
    assert story[0][0].why_not[0].what == "release host-1 (host-1 at 0.15 (scale in is worth 0.90, no action 0.50))"
    assert story[3][0].planned is ONE_EACH
    assert story[3][1].tables["host-0"].best(3) is HostAction.SCALE_IN  # each host learns for itself


@pytest.mark.parametrize(
    ("load", "pool"),
    [({"q1": 0.4, "q2": 0.4}, replace(POOL, min_hosts=2)), ({"q1": 3.8, "q2": 3.8}, replace(POOL, max_hosts=2))],
)
def test_what_the_pool_forbids_is_not_held_against_a_host(load: Cores, pool: Pool) -> None:
    story = play(RULES, ONE_EACH, [load] * 4, pool)
    assert all(d.planned is ONE_EACH and d.why_not for d, _ in story)
    assert set(story[-1][1].tables.values()) == {UNTAUGHT}
    assert story[-1][1].taken == {}


def test_a_scaling_is_judged_by_the_utilisation_after_the_grace_period() -> None:
    story = play(replace(RULES, grace_s=60.0), ONE_HOST, [{"q1": cores} for cores in (3.6, 3.0, 2.4, 3.2)])
    assert "move 1.35 cores (3 shards of q1) to new host-1" in story[0][0].reason
    for decision, memory in story[1:3]:  # at 40 s and 60 s: the grace period ends at 80 s
        assert decision.reason == "hold: every host rests after a change"
        assert memory.tables["host-0"] == UNTAUGHT
        assert memory.taken["host-0"].confirmed
    # 5 of 8 shards of q1 are left: 2.0 cores, which are 0.5 of the host.
    reward = 1 + (0.5 - 1 / 6) + 0.1 * UNTAUGHT.reward(0.5, HostAction.SCALE_OUT)
    assert story[3][1].tables["host-0"].reward(0.9, HostAction.SCALE_OUT) == pytest.approx(0.8 * 0.9 + 0.2 * reward)


def test_an_action_that_a_guard_vetoes_teaches_nothing() -> None:
    guard = DryRun(Sarsa())
    memory = guard.start()
    for index in range(3):
        _, memory = guard.decide(view(Q, ONE_EACH, {"q1": 3.6, "q2": 0.8}, index=index), memory)
    assert memory.tables["host-0"] == UNTAUGHT


def test_a_host_that_received_does_not_learn_from_having_done_nothing() -> None:
    story = play(replace(RULES, grace_s=0), ONE_EACH, [{"q1": 3.6, "q2": 1.6}] * 2)
    assert story[0][1].taken["host-1"].action is HostAction.NO_ACTION
    assert "host-1" in story[0][0].planned.operators["q1"].replica_hosts
    assert story[1][1].tables["host-1"] == UNTAUGHT


PIPELINE = application(
    operator("parse", service_time_s=0.01, grouping=Grouping.SHUFFLE), operator("count", service_time_s=0.01, shards=16)
)


def simulated(trace: Trace) -> list[Point]:
    simulation = Simulation(
        trace=trace,
        application=PIPELINE,
        pool=Pool(host=HostType(cores=4, start_s=20.0), min_hosts=1, max_hosts=8),
        settings=SimulatorSettings(),
        policy=Sarsa(),
        policy_name="sarsa",
    )
    return simulation.run()[1]


def test_hosts_come_with_a_spike_and_go_after_it() -> None:
    hosts = {p.time_s: p.hosts for p in simulated(steps(levels=(60.0, 300.0, 60.0), hold_s=1200.0))}
    assert hosts[1200.0] == 1
    assert max(hosts.values()) >= 3
    assert hosts[3600.0] == 1


def test_a_constant_load_comes_to_rest() -> None:
    points = simulated(constant(rate_per_s=150.0, duration_s=3600.0))
    assert len({(p.hosts, p.replicas) for p in points if p.time_s > 900.0}) == 1
