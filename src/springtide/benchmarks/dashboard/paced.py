"""A simulated application in real time, and how long each turn of the control loop over it takes.

A turn is what the loop does between two waits: observe, compare, forecast, decide, apply, and write all of it down. Simulating
the interval, which live Spark would do elsewhere, is done before the wait and does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from springtide.backends.simulator.backend import SimulatorBackend
from springtide.model.action import Action
from springtide.model.observation import Observation


class Paced:
    """A backend and its clock: one interval of virtual time every `pace_s` of real time.

    `between` is called before each wait with the number of turns done; what it takes is nobody's.
    """

    def __init__(self, backend: SimulatorBackend, pace_s: float, between: Callable[[int], None]) -> None:
        self._backend = backend
        self._pace_s = pace_s
        self._between = between
        self._began_s = 0.0
        self.took_s: list[float] = []
        self.observed_at_s: list[float] = []

    @property
    def clock(self) -> Paced:
        return self

    def now_s(self) -> float:
        return self._backend.clock.now_s()

    def advance_to(self, time_s: float) -> None:
        if self.observed_at_s:
            self.took_s.append(time.perf_counter() - self._began_s)
        self._between(len(self.took_s))
        due_s = time.monotonic() + self._pace_s
        self._backend.clock.advance_to(time_s)
        time.sleep(max(0.0, due_s - time.monotonic()))
        self._began_s = time.perf_counter()

    def observe(self) -> Observation:
        self.observed_at_s.append(time.time())
        return self._backend.observe()

    def apply(self, actions: Sequence[Action]) -> None:
        self._backend.apply(actions)
