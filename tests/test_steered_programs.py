"""Runs in a user's own program, and who is in charge of a live one, but for Spark: a simulated application stands in for it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

import factories
from springtide.backends.simulator.backend import SimulatorBackend, VirtualClock
from springtide.backends.simulator.settings import SimulatorSettings
from springtide.backends.spark.backend import SparkBackend
from springtide.backends.spark.controlled import Controlled, control
from springtide.journal.controls import ControlRequest, append_control
from springtide.journal.reading import read_journal
from springtide.journal.records import ControlRecord, ObservationRecord
from springtide.live import LiveRun
from springtide.loop import Charge, as_before, no_forecast
from springtide.model.allocation import HostType, Pool
from springtide.plan.registry import make_policy

APP = factories.application()
POOL = Pool(host=HostType(cores=4, start_s=0.0, release_s=0.0), max_hosts=3)
INTERVAL_S = 10.0


class StoppableClock:
    """Virtual time that can be stopped, as wall-clock time can; `then` is called with every interval that begins."""

    def __init__(self, clock: VirtualClock, end_s: float, then: Callable[[int], None]) -> None:
        self._clock, self._end_s, self._then = clock, end_s, then
        self._intervals = 0
        self.stopped = False

    def now_s(self) -> float:
        return self._clock.now_s()

    def advance_to(self, time_s: float) -> None:
        self._then(self._intervals)
        self._intervals += 1
        self._clock.advance_to(time_s)
        self.stopped = self.stopped or time_s >= self._end_s

    def stop(self) -> None:
        self.stopped = True


class StandIn:
    """What `Controlled` needs of a backend on Spark."""

    def __init__(self, intervals: int, then: Callable[[int], None]) -> None:
        seconds = round(intervals * INTERVAL_S)
        self._backend = SimulatorBackend(APP, POOL, SimulatorSettings(interval_s=INTERVAL_S), np.full((1, seconds), 10.0))
        self.application, self.pool = APP, POOL
        self.clock = StoppableClock(self._backend.clock, float(seconds), then)
        self.observe, self.apply = self._backend.observe, self._backend.apply

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def failures(self) -> dict[str, str]:
        return {}


def test_a_query_in_a_users_own_program_is_steered_beside_its_journal(tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"

    def ask(interval: int) -> None:
        if interval == 2:
            append_control(journal, ControlRequest(do="pin", operator="count", replicas=3, who="ada"))

    backend = cast("SparkBackend", StandIn(6, ask))
    running = Controlled(backend, control("static", {}, INTERVAL_S, journal))
    assert running.awaitTermination(60)

    kept = read_journal(journal)
    records = list(kept)
    assert kept.run.live
    assert kept.run.pool is not None
    assert [(r.do, r.interval) for r in records if isinstance(r, ControlRecord)] == [("pin", 2)]
    replicas = [r.operators[1].replicas for r in records if isinstance(r, ObservationRecord)]
    assert replicas == [1, 1, 1, 3, 3, 3]


def test_without_a_journal_there_is_nothing_to_steer_by(tmp_path: Path) -> None:
    running = Controlled(cast("SparkBackend", StandIn(2, lambda _: None)), control("static", {}, INTERVAL_S, None))
    assert running.awaitTermination(60)
    assert list(tmp_path.iterdir()) == []


# --- who is in charge of a live run -----------------------------------------------------------------------------------------


def recharged(recharge: Callable[[Charge], Charge], before: Charge) -> tuple[Charge, Any]:
    """Who is in charge after `before`, and the backend that was told of it."""
    backend = SimpleNamespace(application=APP)
    live = LiveRun(
        application=cast("Any", None),
        pool=POOL,
        policy=before.policy,
        policy_name="any",
        folder="x",
        recharged=recharge,
    )
    with ExitStack() as forecasts:
        return live._recharged(cast("SparkBackend", backend), forecasts)(before), backend


def charge(policy: str, **fields: Any) -> Charge:
    return Charge(application=APP, pool=POOL, policy=make_policy(policy, {}), **fields)


def test_a_policy_that_looks_ahead_gets_a_forecast_when_it_comes_into_charge() -> None:
    tide = make_policy("tide", {})
    now, _ = recharged(lambda before: replace(before, policy=tide), charge("static"))

    assert now.policy is tide
    assert now.forecast is not no_forecast


def test_a_forecast_that_has_learnt_goes_on_until_nobody_looks_at_it() -> None:
    def learnt(_: object) -> None: ...

    before = charge("tide", forecast=learnt)
    other = make_policy("proactive", {})
    assert recharged(lambda b: replace(b, policy=other), before)[0].forecast is learnt
    assert recharged(lambda b: replace(b, policy=make_policy("static", {})), before)[0].forecast is no_forecast


def test_rows_are_late_by_the_objective_in_force() -> None:
    stricter = replace(APP, slo=replace(APP.slo, latency_s=1.0))
    now, backend = recharged(lambda before: replace(before, application=stricter), charge("static"))

    assert backend.application.slo.latency_s == now.application.slo.latency_s == 1.0


def test_nothing_is_done_while_nothing_changes() -> None:
    before = charge("static")
    now, backend = recharged(as_before, before)
    assert now is before
    assert backend.application is APP
