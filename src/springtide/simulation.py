"""One simulated run, from a trace to a summary: what the command line, the demo, benchmarks and experiments all call."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from springtide.backends.simulator.backend import SimulatorBackend
from springtide.backends.simulator.settings import SimulatorSettings
from springtide.forecast.running.choosing import ForecastOf, Models, forecast_for
from springtide.forecast.running.foresight import Foresight
from springtide.journal.from_model import application_record, policy_record, pool_record
from springtide.journal.records import RunRecord
from springtide.loop import ControlLoop
from springtide.model.allocation import Allocation, Pool
from springtide.model.application import Application, Operator
from springtide.model.observation import FloatArray
from springtide.model.protocols import AnyPolicy, Recorder
from springtide.plan.parameters import parameters_of, wants
from springtide.recording import Everyone
from springtide.report.summary import About, Point, RunSummary, RunTotals
from springtide.workload.traces import Trace

_SOME_TIME = datetime(1970, 1, 1, tzinfo=UTC)  # of a trace that does not tell when it was


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """A trace, what it is fed to, and who is in charge."""

    trace: Trace
    application: Application
    pool: Pool
    settings: SimulatorSettings
    policy: AnyPolicy
    policy_name: str
    seed: int = 0
    start: Allocation | None = None
    models: Models | None = None

    def __post_init__(self) -> None:
        self.settings.check(self.pool)

    def run(self, recorders: Sequence[Recorder] = ()) -> tuple[RunSummary, list[Point]]:
        began_s = time.perf_counter()
        counts = self.trace.resampled(self.settings.step_s).counts
        rows = np.array([counts * source.share for source in self.application.sources])
        backend = SimulatorBackend(self.application, self.pool, self.settings, rows, seed=self.seed, start=self.start)
        totals = RunTotals()
        with self._forecast(rows) as forecast:
            loop = ControlLoop(
                application=self.application,
                pool=self.pool,
                policy=self.policy,
                interval_s=self.settings.interval_s,
                forecast=forecast,
            )
            loop.run(backend, Everyone((totals, *recorders)), backend.duration_s)
        summary = totals.summary(self._about(), backend.latency_of_run(), time.perf_counter() - began_s)
        return summary, totals.points

    def record(self, created_at: datetime) -> RunRecord:
        """What the run's journal begins with."""
        return RunRecord(
            created_at=created_at,
            application=application_record(self.application),
            policy=policy_record(self.policy_name, parameters_of(self.policy)),
            interval_s=self.settings.interval_s,
            step_s=self.settings.step_s,
            trace=self.trace.name,
            seed=self.seed,
            pool=pool_record(self.pool),
        )

    def _forecast(self, rows: FloatArray) -> AbstractContextManager[ForecastOf]:
        """What the policy wants to know of the future: nothing, a forecast, or the future itself."""
        if wants(self.policy, "foresees"):
            foresight = Foresight(
                {source.name: counts for source, counts in zip(self.application.sources, rows, strict=True)},
                step_s=self.settings.step_s,
                interval_s=self.settings.interval_s,
                burst_s=self.settings.interval_s / 2,
            )
            return nullcontext(foresight)
        start = datetime.fromisoformat(self.trace.start) if self.trace.start else _SOME_TIME
        return forecast_for(
            self.policy,
            self.settings.interval_s,
            models=self.models,
            sources=[source.name for source in self.application.sources],
            begins=start if start.tzinfo else start.replace(tzinfo=UTC),
        )

    def _about(self) -> About:
        return About(
            trace=self.trace.name,
            application=self.application.name,
            policy=self.policy_name,
            parameters=parameters_of(self.policy),
            seed=self.seed,
            slo_latency_s=self.application.slo.latency_s,
            slo_percentile=self.application.slo.percentile,
            gaps_filled=self.trace.gaps,
        )


def compile_simulator() -> None:
    """Compile the simulator's kernel now, if no earlier run has left it compiled, so that no run's time includes it."""
    application = Application(name="none", operators=(Operator(name="none", service_time_s=1.0, shards=1),))
    SimulatorBackend(application, Pool(), SimulatorSettings(), np.zeros((1, 1))).clock.advance_to(1.0)
