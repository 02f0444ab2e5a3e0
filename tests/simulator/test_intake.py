"""What stands before the application sees its queues, and decides step by step what comes in."""

from __future__ import annotations

import numpy as np
import pytest
from worlds import one_operator, simulate, steady

from springtide.backends.simulator.backend import SimulatorBackend
from springtide.backends.simulator.intake import Queues
from springtide.backends.simulator.settings import SimulatorSettings
from springtide.execute.diff import actions
from springtide.model.allocation import HostType, OperatorAllocation, Pool, spread
from springtide.model.application import Application, KeyDistribution, Operator
from springtide.model.observation import FloatArray

COUNT = Application(
    name="count", operators=(Operator(name="count", service_time_s=0.01, shards=8, keys=KeyDistribution(keys=8, zipf=0.0)),)
)
POOL = Pool(host=HostType(cores=4), min_hosts=2, max_hosts=2)


class Half:
    """Lets half of the rows in, and keeps the others for ever."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.waiting: list[float] = []
        self.arrangements: list[FloatArray] = []

    def rearranged(self, queues: Queues) -> None:
        routing = queues.routing(0)
        self.arrangements.append(np.bincount(routing.replicas, weights=routing.shares, minlength=queues.replica_slots))

    def let_in(self, step: int, made: FloatArray, queues: Queues) -> FloatArray:
        self.steps.append(step)
        self.waiting.append(float(queues.waiting_rows().sum()))
        return made / 2


def behind(intake: Half, rows_per_s: float = 300.0) -> SimulatorBackend:
    settings = SimulatorSettings(step_s=0.5, interval_s=2.0)
    start = spread(COUNT, ("host-0", "host-1"), {"count": 2})
    made = np.full((1, 8), rows_per_s * 0.5)
    return SimulatorBackend(COUNT, POOL, settings, made, start=start, intake=intake)


def test_the_application_gets_what_is_let_in_and_policies_are_told_what_was_made() -> None:
    half = Half()
    backend = behind(half)
    backend.clock.advance_to(2.0)
    seen = backend.observe()
    assert seen.operators["count"].offered_rows == pytest.approx(300.0)
    assert seen.source_rows == {"source": pytest.approx(600.0)}
    assert half.steps == [0, 1, 2, 3]


def test_it_sees_what_waits_when_a_step_begins() -> None:
    half = Half()
    backend = behind(half, rows_per_s=1200.0)  # 600 rows/s come in, and two replicas do 200
    backend.clock.advance_to(2.0)
    assert half.waiting == pytest.approx([0.0, 200.0, 400.0, 600.0])


def test_it_is_told_when_rows_go_elsewhere() -> None:
    half = Half()
    backend = behind(half)
    backend.clock.advance_to(1.0)
    requested = backend.observe().requested
    moved = OperatorAllocation(requested.operators["count"].replica_hosts, (0,) * 8)
    backend.apply(actions(requested, requested.with_operator("count", moved)))
    backend.clock.advance_to(2.0)
    assert len(half.arrangements) == 2
    assert (half.arrangements[0] > 0).sum() == 2
    assert half.arrangements[1][0] == pytest.approx(1.0)


def test_without_one_everything_comes_in() -> None:
    assert simulate(one_operator(), steady(50, seconds=10)).processed() == pytest.approx(500.0)
