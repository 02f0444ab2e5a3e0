"""A simulated application, and how long each turn of the control loop over it takes.

A turn is what the loop does between two waits: observe, compare, forecast, decide, apply, and write all of it down. Simulating
the interval, which live Spark would do elsewhere, does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from springtide.backends.simulator.backend import SimulatorBackend
from springtide.model.action import Action
from springtide.model.decision import Decision, Outcome
from springtide.model.observation import Observation
from springtide.model.protocols import Recorder


class Turning:
    """A backend and its clock: one interval of virtual time after the other, without a rest.

    `between` is called before each with the number of turns done; what it takes is nobody's.
    """

    def __init__(self, backend: SimulatorBackend, between: Callable[[int], None]) -> None:
        self._backend = backend
        self._between = between
        self._began_s: float | None = None
        self.took_s: list[float] = []

    @property
    def clock(self) -> Turning:
        return self

    def now_s(self) -> float:
        return self._backend.clock.now_s()

    def advance_to(self, time_s: float) -> None:
        if self._began_s is not None:
            self.took_s.append(time.perf_counter() - self._began_s)
        self._between(len(self.took_s))
        self._backend.clock.advance_to(time_s)
        self._began_s = time.perf_counter()

    def observe(self) -> Observation:
        return self._backend.observe()

    def apply(self, actions: Sequence[Action]) -> None:
        self._backend.apply(actions)


class Seldom:
    """A recorder that passes on one interval every `every_s`, whole, and remembers when."""

    def __init__(self, recorder: Recorder, every_s: float) -> None:
        self._recorder = recorder
        self._every_s = every_s
        self._due_s = 0.0
        self._passes = False
        self.written_at_s: dict[int, float] = {}

    def observation(self, observation: Observation) -> None:
        now_s = time.time()
        self._passes = now_s >= self._due_s
        if self._passes:
            self._due_s = now_s + self._every_s
            self.written_at_s[observation.index] = now_s
            self._recorder.observation(observation)

    def decision(self, observation: Observation, decision: Decision, actions: Sequence[Action]) -> None:
        if self._passes:
            self._recorder.decision(observation, decision, actions)

    def outcome(self, outcome: Outcome, time_s: float) -> None:
        if self._passes:
            self._recorder.outcome(outcome, time_s)
