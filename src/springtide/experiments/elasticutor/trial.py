"""One run of a policy under back-pressure, and the figures that the paper tells of it.

Throughput is what the first operator processed. Latency is the mean time from when the generator makes a row until it leaves
the application: its wait in the generator's buffer, and its way through queues and operators. The warm-up is not counted.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from springtide.experiments.elasticutor import world
from springtide.experiments.elasticutor.backpressure import BackpressureBackend
from springtide.experiments.study import Values
from springtide.forecast.running.choosing import forecast_for
from springtide.loop import ControlLoop
from springtide.model.action import Action
from springtide.model.allocation import Pool
from springtide.model.application import Application
from springtide.model.decision import Decision, Outcome
from springtide.model.observation import Observation
from springtide.model.protocols import AnyPolicy, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A policy on an application: `load` is what the generator makes, as a share of what all cores could do."""

    policy: str
    application: Application
    pool: Pool
    executors: int
    load: float
    duration_s: float
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Timed:
    """A policy, and what each of its decisions took on the wall clock."""

    policy: AnyPolicy
    took_s: list[float] = field(default_factory=list)

    def start(self) -> Any:
        return self.policy.start()

    def decide(self, view: View, memory: Any) -> tuple[Decision, Any]:
        began_s = time.perf_counter()
        decided = self.policy.decide(view, memory)
        self.took_s.append(time.perf_counter() - began_s)
        return decided


@dataclass(slots=True)
class _Count:
    """A `Recorder` that adds up what came after the warm-up, and keeps every interval's throughput."""

    backend: BackpressureBackend
    processed_per_s: list[float] = field(default_factory=list)
    processed: float = 0.0
    left: float = 0.0
    latency_row_s: float = 0.0
    shards_moved: int = 0
    changes: int = 0
    waited_before_row_s: float = 0.0
    remote_before_bytes: float = 0.0

    def observation(self, observation: Observation) -> None:
        first = next(iter(observation.operators.values()))
        self.processed_per_s.append(first.processed_rows / observation.interval_s)
        if observation.end_s <= world.WARM_UP_S:
            self.waited_before_row_s = self.backend.waited_row_s
            self.remote_before_bytes = self.backend.remote_bytes
            return
        self.processed += first.processed_rows
        self.left += observation.latency.rows
        self.latency_row_s += observation.latency.rows * observation.latency.mean_s
        self.shards_moved += observation.reconfigurations.get("shards_moved", 0)

    def decision(self, observation: Observation, decision: Decision, actions: Sequence[Action]) -> None:  # noqa: ARG002
        self.changes += bool(actions) and observation.end_s > world.WARM_UP_S

    def outcome(self, outcome: Outcome, time_s: float) -> None:
        """What became of expectations is not the paper's question."""


def run_trial(trial: Trial) -> tuple[Values, Values]:
    """What the trial found, and what its decisions took."""
    backend = BackpressureBackend(
        trial.application,
        trial.pool,
        world.settings(trial.policy),
        world.generator(trial.application, trial.pool, trial.load, trial.duration_s),
        world.limits(trial.policy, trial.executors),
        seed=trial.seed,
        start=world.start(trial.policy, trial.application, trial.pool, trial.executors),
    )
    policy = world.made_policy(trial.policy, trial.application, trial.executors)
    timed, count = Timed(policy), _Count(backend)
    with forecast_for(policy, world.INTERVAL_S) as forecast:
        loop = ControlLoop(
            application=trial.application, pool=trial.pool, policy=timed, interval_s=world.INTERVAL_S, forecast=forecast
        )
        loop.run(backend, count, trial.duration_s)
    return _found(trial, backend, count), {"scheduling_ms": 1000 * sum(timed.took_s) / len(timed.took_s)}


def _found(trial: Trial, backend: BackpressureBackend, count: _Count) -> Values:
    counted_s = trial.duration_s - world.WARM_UP_S
    waited_s = (backend.waited_row_s - count.waited_before_row_s) / max(count.processed, 1.0)
    state_bytes = trial.application.operators[0].state_bytes_per_shard
    return {
        "throughput_per_s": count.processed / counted_s,
        "latency_ms": 1000 * (waited_s + count.latency_row_s / max(count.left, 1.0)),
        "migrated_mb_per_s": count.shards_moved * state_bytes / counted_s / 1e6,
        "remote_mb_per_s": (backend.remote_bytes - count.remote_before_bytes) / counted_s / 1e6,
        "changes": count.changes,
        "processed_per_s": [round(rate) for rate in count.processed_per_s],
    }
