"""One live run, from an application to a summary: what the command line, benchmarks and experiments all call."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from springtide.backends.spark.application import Application
from springtide.backends.spark.backend import SparkBackend, backend_for
from springtide.backends.spark.controlled import Control
from springtide.backends.spark.fusion import described, fused
from springtide.backends.spark.scaling import Scaling
from springtide.errors import SpringtideError
from springtide.forecast.running.choosing import ForecastOf, Models, forecast_for
from springtide.journal.steered import SteeredJournal
from springtide.loop import Charge, ControlLoop, as_before, no_forecast, unsteered
from springtide.model.allocation import Pool
from springtide.model.observation import Observation
from springtide.model.protocols import AnyPolicy, Recorder
from springtide.model.steering import Steering
from springtide.plan.parameters import parameters_of, wants
from springtide.recording import Everyone
from springtide.report.summary import About, Overcounted, Point, RunSummary, RunTotals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LiveResult:
    """What came of a run. `drained`: the sources had fallen silent, and nothing waited. `failures` by operator."""

    summary: RunSummary
    points: list[Point]
    failures: dict[str, str]
    drained: bool


@dataclass(frozen=True, kw_only=True)
class LiveRun:
    """An application, the hosts it may have, and who is in charge: to begin with, and as people and files say later."""

    application: Application
    pool: Pool
    policy: AnyPolicy
    policy_name: str
    folder: str
    hosts: int = 1
    interval_s: float = 5.0
    scaling: Scaling = Scaling.ELASTIC
    models: Models | None = None
    journal: Path | None = None
    steering: Callable[[], Steering] = unsteered
    recharged: Callable[[Charge], Charge] = as_before

    def open_journal(self, path: Path) -> SteeredJournal:
        """A journal for this run, which models may be trained from, and which it can be steered beside."""
        model = described(self.application, fused(self.application))
        control = Control(policy=self.policy, policy_name=self.policy_name, interval_s=self.interval_s, journal=path)
        journal = control.open_journal(model, self.pool)
        assert journal is not None
        return journal

    def run(
        self,
        spark: SparkSession,
        recorders: Sequence[Recorder] = (),
        *,
        for_s: float = math.inf,
        until_drained: bool = False,
        silence_s: float = 0.0,
        began: Callable[[SparkBackend], None] = lambda _: None,
    ) -> LiveResult:
        """Run until the time is over, or, if asked for, until the sources are silent and nothing waits, or until every operator
        has failed. Silence lasts two intervals, and at least `silence_s`.
        """
        began_s = time.perf_counter()
        backend = backend_for(spark, self.application, self.pool, self.folder, hosts=self.hosts, scaling=self.scaling)
        totals, silence = RunTotals(), Silence(silence_s)
        failures: dict[str, str] = {}

        def over() -> bool:
            failures.update(backend.failures())
            return (
                backend.clock.stopped or len(failures) == len(backend.application.operators) or (until_drained and silence.long)
            )

        everyone = Everyone((totals, silence, *recorders))
        with ExitStack() as forecasts:
            loop = ControlLoop(
                application=backend.application,
                pool=self.pool,
                policy=self.policy,
                interval_s=self.interval_s,
                forecast=forecasts.enter_context(self._forecast(backend, self.policy)),
                steering=self.steering,
                recharged=self._recharged(backend, forecasts),
            )
            backend.start()
            began(backend)
            try:
                loop.run(backend, everyone, for_s, over)
                if not totals.points:  # it was told to stop before its first interval was over
                    everyone.observation(backend.observe())
            finally:
                backend.stop()
        about = About(
            trace="live",
            application=self.application.name,
            policy=self.policy_name,
            parameters=parameters_of(self.policy),
            seed=0,
            slo_latency_s=self.application.slo.latency_s,
            slo_percentile=self.application.slo.percentile,
            live=True,
        )
        sources, operators = backend.overcounted()
        overcounted = Overcounted(sources=sources, operators=operators)
        return LiveResult(
            summary=totals.summary(about, backend.latency_of_run(), time.perf_counter() - began_s, overcounted),
            points=totals.points,
            failures=failures,
            drained=silence.long and not failures,
        )

    def _recharged(self, backend: SparkBackend, forecasts: ExitStack) -> Callable[[Charge], Charge]:
        """Who is in charge, with what it needs to know of the future; and rows are late by the objective in force."""

        def recharged(before: Charge) -> Charge:
            now = self.recharged(before)
            if now is before:
                return before
            backend.application = now.application
            return dataclasses.replace(now, forecast=self._forecast_after(before, now.policy, backend, forecasts))

        return recharged

    def _forecast_after(self, before: Charge, policy: AnyPolicy, backend: SparkBackend, forecasts: ExitStack) -> ForecastOf:
        """What has learnt goes on learning, as long as somebody looks at it."""
        if not wants(policy, "looks_ahead"):
            return no_forecast
        if before.forecast is not no_forecast:
            return before.forecast
        try:
            return forecasts.enter_context(self._forecast(backend, policy))
        except SpringtideError:  # of the models: the run has begun, and goes on with a forecast that learns from it
            return forecasts.enter_context(forecast_for(policy, self.interval_s))

    def _forecast(self, backend: SparkBackend, policy: AnyPolicy) -> AbstractContextManager[ForecastOf]:
        return forecast_for(
            policy,
            self.interval_s,
            models=self.models,
            sources=[source.name for source in backend.application.sources],
            journal=self.journal,
        )


class Silence:
    """A recorder that notices when nothing has come and nothing waits, two intervals in a row and for at least `least_s`, after
    something had come."""

    def __init__(self, least_s: float = 0.0) -> None:
        self._least_s = least_s
        self._seen = False
        self._quiet = 0
        self._quiet_s = 0.0

    @property
    def long(self) -> bool:
        return self._seen and self._quiet >= 2 and self._quiet_s >= self._least_s

    def observation(self, observation: Observation) -> None:
        moving = observation.offered_rows > 0 or observation.backlog_rows > 0
        moving = moving or any(o.processed_rows > 0 for o in observation.operators.values())
        self._seen = self._seen or moving
        self._quiet = 0 if moving else self._quiet + 1
        self._quiet_s = 0.0 if moving else self._quiet_s + observation.interval_s

    def decision(self, *_: object) -> None: ...

    def outcome(self, *_: object) -> None: ...
