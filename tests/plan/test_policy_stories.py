"""Stories in virtual time, told to every registered policy: whatever comes, these things must hold.

Hosts of 4 cores that take 30 s to come, decisions every 30 s, an hour or two. The application takes 2 ms and 4 ms a row: one
host is enough for 600 rows/s. A policy added to the registry is told all stories without a word. Where one cannot do what a
story asks, it is named here with the reason, and the test turns around: it must not do it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import pytest

from springtide.backends.simulator.backend import SimulatorBackend
from springtide.backends.simulator.settings import Failure, MicroBatch, ServiceModel, SimulatorSettings
from springtide.loop import ControlLoop
from springtide.model.action import Action
from springtide.model.allocation import HostType, Pool
from springtide.model.application import Application, Edge, Grouping, KeyDistribution, Operator
from springtide.model.decision import Decision, Outcome
from springtide.model.observation import HostState, Observation
from springtide.model.protocols import AnyPolicy, Forecast
from springtide.plan.registry import make_policy, policies
from springtide.simulation import Simulation
from springtide.workload.generators import constant, day_cycle, spikes, steps
from springtide.workload.traces import Trace

STEP_S = 10.0
INTERVAL_S = 30.0
HOUR_S = 3600.0
QUIET, BUSY = 200.0, 1800.0  # rows/s: a third of a host, and three hosts

PARSE = Operator(name="parse", service_time_s=0.002, grouping=Grouping.SHUFFLE, max_replicas=16)
COUNT = Operator(name="count", service_time_s=0.004, shards=32, max_replicas=32, state_bytes_per_shard=1_000_000)
HOT_COUNT = replace(COUNT, keys=KeyDistribution(keys=2000, zipf=0.8, shuffles_per_minute=0.2))


def words(parse: Operator = PARSE, count: Operator = COUNT) -> Application:
    return Application(name="words", operators=(parse, count), edges=(Edge(upstream="parse", downstream="count"),))


POOL = Pool(host=HostType(cores=4, start_s=30.0), min_hosts=1, max_hosts=8)
WORLD = SimulatorSettings(step_s=STEP_S, interval_s=INTERVAL_S, initial_hosts=1)
STARTED_WITH_THREE = replace(WORLD, initial_hosts=3, initial_replicas=6)

# Policies that take their time, beside those of a story: with what makes them quicker.
HURRIED: Mapping[str, Mapping[str, object]] = {
    "ds2": {  # Flink's own windows last for 5 min to an hour
        "stabilisation_interval_s": 60,
        "metrics_window_s": 120,
        "restart_time_s": 30,
        "catch_up_duration_s": 300,
        "scale_down_interval_s": 300,
    },
    # A token in two minutes is one replica in two minutes.
    "hierarchical": {"capacity": 4, "tokens_per_minute": 4, "calm_tokens_per_minute": 4},
}
INERT = {"static": "it changes nothing"}
NEVER_SHRINK = {**INERT, "spark-dynamic-allocation": "every batch has tasks for every executor, so none is ever idle"}

# It takes every forecast for the future itself.
CREDULOUS = {"oracle"}

every_policy = pytest.mark.parametrize("name", policies())


@dataclass
class Tape:
    """A recorder that keeps everything."""

    seen: list[Observation] = field(default_factory=list)
    decided: list[tuple[Decision, Sequence[Action]]] = field(default_factory=list)

    def observation(self, observation: Observation) -> None:
        self.seen.append(observation)

    def decision(self, observation: Observation, decision: Decision, actions: Sequence[Action]) -> None:
        self.decided.append((decision, actions))

    def outcome(self, outcome: Outcome, time_s: float) -> None:
        """Outcomes are not looked at here."""

    def hosts(self, from_s: float, to_s: float) -> list[int]:
        """How many there were, being released or not, at the end of each interval."""
        return [len(o.hosts) for o in self.seen if from_s < o.end_s <= to_s]

    def changes(self, from_s: float, to_s: float) -> int:
        return sum(bool(actions) for o, (_, actions) in zip(self.seen, self.decided, strict=True) if from_s < o.end_s <= to_s)

    def total(self, what: str, operator: str) -> float:
        return float(sum(getattr(o.operators[operator], what) for o in self.seen))


@dataclass(frozen=True)
class Story:
    trace: Callable[[], Trace]
    world: SimulatorSettings = WORLD
    application: Application = field(default_factory=words)
    forecast: Callable[[Observation], Forecast] | None = None

    def told_to(self, name: str, policy: AnyPolicy) -> Tape:
        tape = Tape()
        if self.forecast is None:
            simulation = Simulation(
                trace=self.trace(),
                application=self.application,
                pool=POOL,
                settings=self.world,
                policy=policy,
                policy_name=name,
            )
            simulation.run([tape])
            return tape
        rows = np.array([self.trace().resampled(STEP_S).counts])
        backend = SimulatorBackend(self.application, POOL, self.world, rows)
        loop = ControlLoop(
            application=self.application, pool=POOL, policy=policy, interval_s=INTERVAL_S, forecast=self.forecast
        )
        loop.run(backend, tape, backend.duration_s)
        return tape


def compressed_day() -> Trace:
    """A day in an hour, from midnight to midnight: an hour becomes 150 s."""
    day = day_cycle(seed=7, mean_per_s=800.0, peak_to_mean=2.0, step_s=24 * STEP_S)
    return Trace(name="day", step_s=STEP_S, counts=day.counts / 24)


def liar(observation: Observation) -> Forecast:
    """Ten times the rows that come, for half an hour, and then next to none."""
    rate = observation.offered_rows / observation.interval_s
    said = np.full(10, rate * (10.0 if observation.end_s <= HOUR_S / 2 else 0.01))
    return Forecast(interval_s=observation.interval_s, model="liar", mean={"source": said}, upper={"source": said})


STORIES: Mapping[str, Story] = {
    "constant": Story(lambda: constant(rate_per_s=700.0, duration_s=HOUR_S, step_s=STEP_S)),
    "spike": Story(lambda: steps(levels=(QUIET, BUSY, QUIET), hold_s=HOUR_S / 3, step_s=STEP_S)),
    "slow ramp": Story(lambda: steps(levels=tuple(np.linspace(QUIET, BUSY, 60)), hold_s=60.0, step_s=STEP_S)),
    "day": Story(compressed_day),
    "oscillation": Story(
        lambda: spikes(base_per_s=QUIET, spike_per_s=1200.0, every_s=300.0, width_s=150.0, duration_s=HOUR_S, step_s=STEP_S)
    ),
    "lost host": Story(
        lambda: constant(rate_per_s=700.0, duration_s=HOUR_S, step_s=STEP_S),
        world=replace(STARTED_WITH_THREE, failures=(Failure(at_s=HOUR_S / 3),)),
    ),
    "moving skew": Story(
        lambda: constant(rate_per_s=1000.0, duration_s=HOUR_S, step_s=STEP_S),
        world=replace(WORLD, initial_hosts=2, initial_replicas=4),
        application=words(count=HOT_COUNT),
    ),
    "spike in micro-batches": Story(
        lambda: steps(levels=(QUIET, BUSY, QUIET), hold_s=HOUR_S / 3, step_s=STEP_S),
        world=replace(
            WORLD, service=ServiceModel.MICRO_BATCH, micro_batch=MicroBatch(max_rows=10_000), step_s=1.0, initial_replicas=2
        ),
        application=words(parse=replace(PARSE, grouping=Grouping.KEY)),
    ),
    "wrong forecast": Story(lambda: constant(rate_per_s=700.0, duration_s=HOUR_S, step_s=STEP_S), forecast=liar),
}


@cache
def told(story: str, name: str) -> Tape:
    return STORIES[story].told_to(name, make_policy(name, HURRIED.get(name, {})))


# --- what holds in every story ------------------------------------------------------------------------------------------


@every_policy
@pytest.mark.parametrize("story", STORIES)
def test_no_row_is_lost_and_every_plan_can_be_carried_out(story: str, name: str) -> None:
    tape = told(story, name)
    application = STORIES[story].application
    last = tape.seen[-1]
    for operator in application.operators:
        done = tape.total("processed_rows", operator.name) + tape.total("dropped_rows", operator.name)
        waiting = last.operators[operator.name].backlog_rows
        assert done + waiting == pytest.approx(tape.total("offered_rows", operator.name), rel=1e-6)
    offered = sum(o.offered_rows for o in tape.seen)
    assert tape.total("offered_rows", "parse") == pytest.approx(offered, rel=1e-6)
    for decision, _ in tape.decided:
        decision.planned.check(application)
        assert POOL.min_hosts <= len(decision.planned.hosts) <= POOL.max_hosts
        assert decision.reason
    for observation in tape.seen:
        staying = [h for h in observation.hosts.values() if h.state is not HostState.RELEASING]
        assert 1 <= len(staying) <= POOL.max_hosts


@every_policy
@pytest.mark.parametrize("story", [story for story in STORIES if story != "oscillation"])
def test_rows_are_served_as_fast_as_they_come_in_the_end(story: str, name: str) -> None:
    """In the last third of the story the backlog grows by less than what comes in a minute."""
    tape = told(story, name)
    two_thirds = tape.seen[2 * len(tape.seen) // 3 - 1]
    growth = tape.seen[-1].backlog_rows - two_thirds.backlog_rows
    rate = tape.seen[-1].offered_rows / INTERVAL_S
    if name in INERT and story in ("constant", "slow ramp", "day", "wrong forecast"):
        assert growth > 600 * rate  # so that the test tells something
    elif name in CREDULOUS and story == "wrong forecast":
        assert growth > 60 * rate
    else:
        assert growth < 60 * rate


# --- what holds in one --------------------------------------------------------------------------------------------------


@every_policy
@pytest.mark.parametrize("story", ["spike", "spike in micro-batches"])
def test_hosts_come_with_a_spike_and_go_once_it_is_worked_off(story: str, name: str) -> None:
    tape = told(story, name)
    before = tape.hosts(0, HOUR_S / 4)[-1]  # well before: hosts may come before what is foreseen
    during = max(tape.hosts(HOUR_S / 3, 2 * HOUR_S / 3))
    after = tape.hosts(0, HOUR_S)[-1]
    assert (during > before) == (name not in INERT)
    if tape.seen[-1].backlog_rows < 60 * QUIET or story == "spike":
        assert (after < during) == (name not in NEVER_SHRINK)


@every_policy
def test_there_are_more_hosts_at_noon_than_at_night(name: str) -> None:
    tape = told("day", name)
    night, afternoon = tape.hosts(300, 600), tape.hosts(2250, 2550)  # from 2 to 4 h, and from 15 to 17 h
    assert (min(afternoon) > max(night)) == (name not in INERT)


@every_policy
def test_a_slow_ramp_is_followed(name: str) -> None:
    """It ends where three hosts are busy."""
    assert (told("slow ramp", name).hosts(0, HOUR_S)[-1] >= 3) == (name not in INERT)


@every_policy
def test_under_constant_load_all_is_quiet_in_the_end(name: str) -> None:
    assert told("constant", name).changes(2 * HOUR_S / 3, HOUR_S) <= 2


@every_policy
def test_when_load_oscillates_doing_nothing_would_be_worse(name: str) -> None:
    idle = told("oscillation", "static").total("processed_rows", "count")
    assert told("oscillation", name).total("processed_rows", "count") >= (1.3 * idle if name not in INERT else idle)


@every_policy
def test_the_work_of_a_lost_host_is_served_again(name: str) -> None:
    tape = told("lost host", name)
    failure = next(i for i, o in enumerate(tape.seen) if o.reconfigurations.get("hosts_failed"))
    assert tape.seen[failure].end_s == HOUR_S / 3
    assert tape.seen[-1].backlog_rows < 60 * 700
    for observation in tape.seen[-20:]:
        for operator in observation.operators.values():
            assert operator.processed_rows >= 0.99 * 700 * INTERVAL_S


@every_policy
def test_skew_that_moves_leaves_no_replica_behind_for_long(name: str) -> None:
    """In the last half hour never more than what comes in a minute waits; it does when nothing is done."""
    worst = max(o.backlog_rows for o in told("moving skew", name).seen[60:])
    assert (worst < 60 * 1000) == (name not in INERT)


@every_policy
def test_a_forecast_that_lies_costs_hosts_or_minutes_but_not_the_stream(name: str) -> None:
    tape = told("wrong forecast", name)
    waiting = [o.backlog_rows for o in tape.seen if o.end_s > HOUR_S * 3 / 4]
    if name in INERT:
        assert min(waiting) > 600 * 700
    elif name in CREDULOUS:
        assert min(waiting) > 120 * 700
    else:
        assert min(waiting) < 120 * 700
