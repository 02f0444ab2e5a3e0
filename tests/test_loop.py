"""The control loop: one decision at the end of every interval, and its outcome one interval later."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pytest

from factories import allocation, application, observation, operator
from springtide.backends.simulator.backend import SimulatorBackend
from springtide.backends.simulator.settings import SimulatorSettings
from springtide.errors import InvalidValue
from springtide.loop import Charge, ControlLoop
from springtide.model.action import Action, AddHosts, MoveShards, SetReplicas
from springtide.model.allocation import Allocation, HostType, OperatorAllocation, Pool
from springtide.model.application import Grouping
from springtide.model.decision import Decision, Expectation, Outcome
from springtide.model.observation import Observation
from springtide.model.protocols import Forecast, View
from springtide.model.steering import UNSTEERED, Steering

APPLICATION = application(
    operator("parse", grouping=Grouping.SHUFFLE, service_time_s=0.01), operator("count", service_time_s=0.02, shards=4)
)
POOL = Pool(host=HostType(cores=4, start_s=0.0, release_s=0.0), max_hosts=3)
INTERVAL_S = 10.0

Step = Callable[[View], Decision]


@dataclass
class Scripted:
    """Decides as the script says for each interval by its number, and holds otherwise. Its memory counts decisions."""

    script: Mapping[int, Step] = field(default_factory=dict)
    views: list[View] = field(default_factory=list)
    memories: list[int] = field(default_factory=list)

    def start(self) -> int:
        return 100

    def decide(self, view: View, memory: int) -> tuple[Decision, int]:
        self.views.append(view)
        self.memories.append(memory)
        step = self.script.get(view.observation.index, _hold)
        return step(view), memory + 1


@dataclass
class Tape:
    """A recorder that keeps everything, and the order in which it came."""

    order: list[str] = field(default_factory=list)
    observations: list[Observation] = field(default_factory=list)
    decisions: list[tuple[Observation, Decision, tuple[Action, ...]]] = field(default_factory=list)
    outcomes: list[tuple[Outcome, float]] = field(default_factory=list)

    def observation(self, observation: Observation) -> None:
        self.order.append("observation")
        self.observations.append(observation)

    def decision(self, observation: Observation, decision: Decision, actions: Sequence[Action]) -> None:
        self.order.append("decision")
        self.decisions.append((observation, decision, tuple(actions)))

    def outcome(self, outcome: Outcome, time_s: float) -> None:
        self.order.append("outcome")
        self.outcomes.append((outcome, time_s))


def test_a_promise_is_compared_with_the_interval_after_it() -> None:
    """A second replica is asked for after the first interval; the second shows whether it kept its promise."""
    rows_per_s = 80.0  # of which one replica of `count` manages 50

    def add_a_replica(view: View) -> Decision:
        assert view.observation.operators["count"].utilisation == pytest.approx(1.0)
        planned = view.requested.with_operator("count", OperatorAllocation(("host-0", "host-0"), (0, 1, 0, 1)))
        return Decision(planned=planned, reason="count is full", expected=Expectation(processed_rows_per_s=100.0))

    tape, _ = _simulated(Scripted({0: add_a_replica}), rows_per_s, seconds=30)

    seen = tape.observations
    (outcome, time_s), (later, _) = tape.outcomes
    assert outcome.interval == 1
    assert time_s == 20.0
    assert outcome.expected.processed_rows_per_s == 100.0
    assert outcome.measured.processed_rows_per_s == pytest.approx(seen[1].latency.rows / INTERVAL_S)
    assert outcome.measured.processed_rows_per_s == pytest.approx(100.0, rel=0.1)  # not the 50 of the interval before it
    assert outcome.verdict == "as expected"
    assert (later.interval, later.verdict) == (2, "nothing was promised")


def test_the_story_is_told_in_order() -> None:
    tape, _ = _simulated(Scripted(), 10.0, seconds=30)

    of_an_interval = ["observation", "outcome", "decision"]
    assert tape.order == ["observation", "decision", *of_an_interval, *of_an_interval]


def test_a_decision_is_recorded_with_the_actions_it_led_to() -> None:
    planned = Allocation(
        ("host-0", "host-1"),
        {"parse": OperatorAllocation(("host-0",)), "count": OperatorAllocation(("host-0", "host-1"), (0, 0, 1, 1))},
    )
    tape, policy = _simulated(Scripted({1: lambda _: Decision(planned=planned, reason="spread out")}), 10.0, seconds=40)

    seen = tape.observations
    decided = tape.decisions
    assert [of.index for of, _, _ in decided] == [0, 1, 2, 3]
    assert [made.reason for _, made, _ in decided] == ["hold", "spread out", "hold", "hold"]
    assert [done for _, _, done in decided] == [
        (),
        (
            AddHosts(("host-1",)),
            SetReplicas("count", ("host-0", "host-1"), before=1),
            MoveShards("count", {2: 1, 3: 1}),
        ),
        (),
        (),
    ]
    assert seen[1].observed.hosts == ("host-0",)
    assert seen[2].observed == planned
    assert policy.views[2].requested == planned


def test_memory_goes_from_one_decision_to_the_next() -> None:
    _, policy = _simulated(Scripted(), 10.0, seconds=30)

    assert policy.memories == [100, 101, 102]


def test_a_host_that_is_still_starting_is_not_asked_for_again() -> None:
    """The host takes three intervals to come: the plan is compared with what was requested, not with what is."""
    slow = Pool(host=HostType(start_s=25.0), max_hosts=3)

    def two_hosts(view: View) -> Decision:
        return Decision(planned=allocation(APPLICATION, hosts=2), reason="two hosts, always")

    tape, _ = _simulated(Scripted(dict.fromkeys(range(5), two_hosts)), 10.0, seconds=50, pool=slow)

    assert [len(done) for _, _, done in tape.decisions] == [2, 0, 0, 0, 0]
    assert [len(o.observed.hosts) for o in tape.observations] == [1, 1, 1, 2, 2]
    assert [len(o.requested.hosts) for o in tape.observations] == [1, 2, 2, 2, 2]


@pytest.mark.parametrize(
    ("planned", "complaint"),
    [
        (Allocation(("host-0",), {"parse": OperatorAllocation(("host-0",))}), "operator 'count' is not placed"),
        (
            allocation(APPLICATION).with_operator("count", OperatorAllocation(("host-0",), (0, 0))),
            "has 4 shards, but 2 are routed",
        ),
        (allocation(APPLICATION).with_operator("parse", OperatorAllocation(("host-0",) * 65)), "at most 64 replicas, not 65"),
        (allocation(APPLICATION).with_operator("cuont", OperatorAllocation(("host-0",))), "did you mean 'count'"),
    ],
)
def test_a_plan_that_does_not_fit_the_application_is_refused(planned: Allocation, complaint: str) -> None:
    backend, tape = CannedBackend(), Tape()
    policy = Scripted({1: lambda _: Decision(planned=planned, reason="a mistake")})

    with pytest.raises(InvalidValue, match=complaint):
        _loop(policy).run(backend, tape, 1050.0)

    assert backend.applied == [()]  # only the first interval's decision, to hold, went through
    assert len(tape.decisions) == 1


def test_a_plan_beyond_the_pool_is_refused() -> None:
    too_many = allocation(APPLICATION, hosts=4)

    with pytest.raises(InvalidValue, match="4 hosts were asked for, but the pool has 3"):
        _simulated(Scripted({0: lambda _: Decision(planned=too_many, reason="a mistake")}), 10.0, seconds=20)


def test_a_forecast_of_the_present_interval_reaches_the_policy() -> None:
    def twice_the_last(seen: Observation) -> Forecast | None:
        if seen.index == 0:
            return None  # too little to learn from
        rate = np.array([2.0 * seen.source_rows["source"] / seen.interval_s])
        return Forecast(interval_s=INTERVAL_S, model="twice", mean={"source": rate}, upper={"source": 1.5 * rate})

    policy = Scripted()
    rows = np.concatenate([np.full((1, 10), 5.0), np.full((1, 10), 7.0), np.full((1, 10), 9.0)], axis=1)
    backend = SimulatorBackend(APPLICATION, POOL, SimulatorSettings(interval_s=INTERVAL_S), rows)
    _loop(policy, forecast=twice_the_last).run(backend, Tape(), backend.duration_s)

    assert policy.views[0].forecast is None
    assert [v.forecast.mean["source"].item() for v in policy.views[1:]] == pytest.approx([14.0, 18.0])


def test_without_a_forecaster_a_policy_sees_no_forecast() -> None:
    _, policy = _simulated(Scripted(), 10.0, seconds=20)

    assert [v.forecast for v in policy.views] == [None, None]


def test_a_policy_sees_the_demand_behind_a_bottleneck() -> None:
    """`parse` lets only 100 of 300 rows/s through, but `count` will be offered all of them once that is mended."""
    _, policy = _simulated(Scripted(), 300.0, seconds=20)

    view = policy.views[0]
    assert view.observation.operators["count"].offered_rows / INTERVAL_S == pytest.approx(100.0, rel=0.02)
    assert view.demand_rows_per_s == pytest.approx({"parse": 300.0, "count": 300.0})
    assert view.application is APPLICATION
    assert view.pool is POOL
    assert view.now_s == 10.0


@pytest.mark.parametrize(
    ("seconds", "ends"),
    [(30, [10.0, 20.0, 30.0]), (34, [10.0, 20.0, 30.0, 34.0]), (4, [4.0]), (11, [10.0, 11.0])],
)
def test_the_last_interval_is_as_long_as_what_is_left(seconds: int, ends: list[float]) -> None:
    tape, policy = _simulated(Scripted(), 20.0, seconds=seconds)

    seen = tape.observations
    assert [o.end_s for o in seen] == pytest.approx(ends)
    assert [o.start_s for o in seen] == pytest.approx([0.0, *ends[:-1]])
    assert [v.demand_rows_per_s["parse"] for v in policy.views] == pytest.approx([20.0] * len(ends))
    assert len(tape.decisions) == len(ends)


def test_intervals_that_no_binary_number_can_hold_do_not_leave_a_sliver_at_the_end() -> None:
    """0.1 s, ten times, is not quite 1 s."""
    rows = np.full((1, 10), 2.0)
    settings = SimulatorSettings(step_s=0.1, interval_s=0.1)
    backend = SimulatorBackend(APPLICATION, POOL, settings, rows)
    tape = Tape()
    loop = ControlLoop(application=APPLICATION, pool=POOL, policy=Scripted(), interval_s=0.1)
    loop.run(backend, tape, backend.duration_s)

    seen = tape.observations
    assert len(seen) == 10
    assert [o.offered_rows for o in seen] == pytest.approx([2.0] * 10)


def test_the_loop_goes_on_from_where_the_clock_stands() -> None:
    rows = np.full((1, 40), 2.0)
    backend = SimulatorBackend(APPLICATION, POOL, SimulatorSettings(interval_s=INTERVAL_S), rows)
    first, second = Tape(), Tape()
    _loop(Scripted()).run(backend, first, 20.0)
    _loop(Scripted()).run(backend, second, 40.0)
    _loop(Scripted()).run(backend, second, 40.0)  # it is that time already

    assert [o.end_s for o in first.observations] == [10.0, 20.0]
    assert [o.end_s for o in second.observations] == [30.0, 40.0]
    assert [outcome.interval for outcome, _ in second.outcomes] == [3]  # nobody remembers a promise for interval 2


# --- a world that is no simulator -----------------------------------------------------------------------------------------


@dataclass
class WaitingClock:
    """Time as a person's watch would tell it, with a late bell: every wait takes a quarter of a second too long. It may ring
    once before the time."""

    time_s: float = 1000.0
    woken_at_s: float = math.inf
    waits: list[float] = field(default_factory=list)

    def now_s(self) -> float:
        return self.time_s

    def advance_to(self, time_s: float) -> None:
        self.waits.append(time_s)
        self.time_s = min(time_s, self.woken_at_s) + 0.25
        self.woken_at_s = math.inf


@dataclass
class CannedBackend:
    """Shows observations written by hand, and writes down what it is asked for."""

    clock: WaitingClock = field(default_factory=WaitingClock)
    busy: Sequence[float] = (0.5,) * 10
    requested: Allocation = field(default_factory=lambda: allocation(APPLICATION, hosts=2))
    applied: list[tuple[Action, ...]] = field(default_factory=list)
    shown: int = 0

    def observe(self) -> Observation:
        self.shown += 1
        end_s = self.clock.now_s()
        return observation(
            index=self.shown - 1,
            application=APPLICATION,
            allocation=self.requested,
            utilisation=self.busy[self.shown - 1],
            rows=400.0,
            start_s=end_s - INTERVAL_S,
            end_s=end_s,
        )

    def apply(self, actions: Sequence[Action]) -> None:
        self.applied.append(tuple(actions))


def test_any_backend_will_do() -> None:
    """Wall-clock time that starts anywhere and runs late, canned figures, and a backend that never does as it is told."""
    backend = CannedBackend(busy=(0.9, 0.4, 0.85))
    wanted = allocation(APPLICATION, hosts=3)

    def relieve(view: View) -> Decision:
        return Decision(planned=wanted, reason="too hot", expected=Expectation(utilisation=0.45))

    tape = Tape()
    _loop(Scripted({0: relieve, 1: relieve})).run(backend, tape, 1030.0)

    assert backend.clock.waits == [1010.0, 1020.0, 1030.0]
    assert backend.applied == [(AddHosts(("host-2",)),), (AddHosts(("host-2",)),), ()]
    assert [(o.interval, o.verdict, t) for o, t in tape.outcomes] == [
        (1, "as expected", 1020.25),
        (2, "busiest host 0.85 instead of 0.45", 1030.25),
    ]


@dataclass
class Hasty(Scripted):
    decides_early: ClassVar[bool] = True


@pytest.mark.parametrize(
    ("policy", "woken_at_s", "ends_s"),
    [
        (Hasty(), 1006.0, [1006.25, 1010.25, 1020.25]),
        (Hasty(), 1001.0, [1003.583, 1010.25, 1020.25]),
        (Hasty(), 1008.0, [1008.25, 1020.25]),
        (Scripted(), 1006.0, [1010.25, 1020.25]),
    ],
    ids=["early, and again when it was due", "not too early", "not twice within a moment", "a policy that waits"],
)
def test_a_decision_comes_early_when_the_backend_says_that_it_should(
    policy: Scripted, woken_at_s: float, ends_s: list[float]
) -> None:
    backend, tape = CannedBackend(clock=WaitingClock(woken_at_s=woken_at_s)), Tape()
    _loop(policy).run(backend, tape, 1020.0)

    assert [o.end_s for o in tape.observations] == pytest.approx(ends_s, abs=0.001)


def test_a_clock_that_is_past_the_end_is_not_waited_for() -> None:
    backend, tape = CannedBackend(), Tape()
    _loop(Scripted()).run(backend, tape, 999.0)

    assert backend.clock.waits == []
    assert tape.order == []


def _hold(view: View) -> Decision:
    return Decision(planned=view.requested, reason="hold")


def _loop(policy: Scripted, forecast: Callable[[Observation], Forecast | None] | None = None) -> ControlLoop:
    given = {} if forecast is None else {"forecast": forecast}
    return ControlLoop(application=APPLICATION, pool=POOL, policy=policy, interval_s=INTERVAL_S, **given)


def _simulated(policy: Scripted, rows_per_s: float, *, seconds: int, pool: Pool = POOL) -> tuple[Tape, Scripted]:
    """The policy in charge of the simulator, for as long as rows come."""
    rows = np.full((1, seconds), rows_per_s)
    backend = SimulatorBackend(APPLICATION, pool, SimulatorSettings(interval_s=INTERVAL_S), rows)
    tape = Tape()
    loop = ControlLoop(application=APPLICATION, pool=pool, policy=policy, interval_s=INTERVAL_S)
    loop.run(backend, tape, backend.duration_s)
    return tape, policy


# --- people and files that have a say ---------------------------------------------------------------------------------------


def test_what_people_hold_still_stays_whatever_the_policy_decides() -> None:
    """`count` is pinned while interval 1 is decided on; the policy wants three replicas all the time."""
    three = OperatorAllocation(("host-0",) * 3, (0, 1, 2, 0))

    def want_three(view: View) -> Decision:
        return Decision(planned=view.requested.with_operator("count", three), reason="three, always")

    steerings = iter([UNSTEERED, Steering(pins={"count": 2}), Steering(pins={"count": 2}), UNSTEERED])
    rows = np.full((1, 40), 10.0)
    backend = SimulatorBackend(APPLICATION, POOL, SimulatorSettings(interval_s=INTERVAL_S), rows)
    tape = Tape()
    loop = ControlLoop(
        application=APPLICATION,
        pool=POOL,
        policy=Scripted(dict.fromkeys(range(4), want_three)),
        interval_s=INTERVAL_S,
        steering=lambda: next(steerings),
    )
    loop.run(backend, tape, backend.duration_s)

    assert [d.planned.operators["count"].replicas for _, d, _ in tape.decisions] == [3, 2, 2, 3]
    assert [d.reason for _, d, _ in tape.decisions] == ["three, always"] * 4
    assert [[str(w) for w in d.why_not] for _, d, _ in tape.decisions][1] == [
        "operator: not 3 replicas of count, because pinned to 2 by hand"
    ]


def test_who_is_in_charge_may_change_and_remembers_nothing_then() -> None:
    first, second = Scripted(), Scripted()
    wider = Pool(host=POOL.host, min_hosts=2, max_hosts=3)
    seen: list[Charge] = []

    def recharged(charge: Charge) -> Charge:
        seen.append(charge)
        match len(seen):
            case 2:
                return replace(charge, policy=second)
            case 4:
                return replace(charge, pool=wider)
        return charge

    rows = np.full((1, 50), 10.0)
    backend = SimulatorBackend(APPLICATION, POOL, SimulatorSettings(interval_s=INTERVAL_S), rows)
    loop = ControlLoop(application=APPLICATION, pool=POOL, policy=first, interval_s=INTERVAL_S, recharged=recharged)
    loop.run(backend, Tape(), backend.duration_s)

    assert first.memories == [100]
    assert second.memories == [100, 101, 102, 103], "other bounds are no other policy"
    assert [v.pool for v in second.views] == [POOL, POOL, wider, wider]


def test_a_decision_keeps_the_forecast_it_was_made_by() -> None:
    def steady(observation: Observation) -> Forecast | None:
        ahead = np.array([observation.end_s])
        return Forecast(interval_s=INTERVAL_S, model="steady", mean={"source": ahead}, upper={"source": ahead})

    backend, tape = CannedBackend(), Tape()
    _loop(Scripted(), forecast=steady).run(backend, tape, 1020.0)

    assert [d.foreseen.mean["source"].item() for _, d, _ in tape.decisions if d.foreseen] == [1010.25, 1020.25]
