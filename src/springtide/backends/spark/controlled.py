"""What runs under a policy in the background of a user's own program: a backend, its control loop, and its journal."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from springtide.backends.spark.backend import SparkBackend
from springtide.errors import SpringtideError
from springtide.forecast.running.choosing import ForecastOf, Models, forecast_for
from springtide.journal.from_model import application_record, policy_record, pool_record
from springtide.journal.records import RunRecord
from springtide.journal.steered import SteeredJournal
from springtide.loop import ControlLoop, unsteered
from springtide.model.action import Action
from springtide.model.allocation import Pool
from springtide.model.application import Application as ApplicationModel
from springtide.model.decision import Decision, Outcome
from springtide.model.observation import Observation
from springtide.model.protocols import AnyPolicy, Recorder
from springtide.model.steering import Steering
from springtide.plan.parameters import parameters_of
from springtide.plan.registry import make_policy


class Silent:
    """A recorder that keeps nothing."""

    def observation(self, observation: Observation) -> None: ...

    def decision(self, observation: Observation, decision: Decision, actions: Sequence[Action]) -> None: ...

    def outcome(self, outcome: Outcome, time_s: float) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Control:
    """Who decides, how often, and where it is kept."""

    policy: AnyPolicy
    policy_name: str
    interval_s: float
    journal: str | Path | None = None
    models: Models | None = None

    def open_journal(self, application: ApplicationModel, pool: Pool) -> SteeredJournal | None:
        """The journal of a run that is about to begin, if it is to be kept; it can be steered by hand then."""
        if self.journal is None:
            return None
        record = RunRecord(
            created_at=datetime.now(UTC),
            application=application_record(application),
            policy=policy_record(self.policy_name, parameters_of(self.policy)),
            interval_s=self.interval_s,
            step_s=self.interval_s,
            trace="live",
            seed=0,
            pool=pool_record(pool),
            live=True,
        )
        return SteeredJournal(self.journal, record)

    def forecast(self, application: ApplicationModel) -> AbstractContextManager[ForecastOf]:
        return forecast_for(
            self.policy,
            self.interval_s,
            models=self.models,
            sources=[source.name for source in application.sources],
            journal=None if self.journal is None else Path(self.journal),
        )


def control(
    policy: str | AnyPolicy,
    parameters: Mapping[str, object] | None,
    interval_s: float,
    journal: str | Path | None,
    models: str | Path | Models | None = None,
) -> Control:
    """Control as a user asks for it: a policy is named, or is one; so are trained models, by their folder."""
    if not isinstance(policy, str) and parameters:
        raise SpringtideError("parameters= go with the name of a policy; this one is made already")
    return Control(
        policy=make_policy(policy, parameters or {}) if isinstance(policy, str) else policy,
        policy_name=policy if isinstance(policy, str) else type(policy).__name__,
        interval_s=interval_s,
        journal=journal,
        models=Models(folder=Path(models)) if isinstance(models, str | Path) else models,
    )


class Controlled:
    """Queries that run, and the control loop behind them, which ends with them."""

    def __init__(self, backend: SparkBackend, control: Control) -> None:
        self.backend = backend
        self._error: Exception | None = None
        with ExitStack() as undone:
            # A journal or a model that is refused is refused before anything runs.
            journal = control.open_journal(backend.application, backend.pool)
            self._recorder: Recorder = Silent() if journal is None else undone.enter_context(journal)
            steering: Callable[[], Steering] = unsteered if journal is None else journal.steering
            forecast = undone.enter_context(control.forecast(backend.application))
            backend.start()
            self._opened = undone.pop_all()  # from here on they are the thread's to close
        self._loop = ControlLoop(
            application=backend.application,
            pool=backend.pool,
            policy=control.policy,
            interval_s=control.interval_s,
            forecast=forecast,
            steering=steering,
        )
        self._thread = threading.Thread(target=self._control, name="springtide", daemon=True)
        self._thread.start()

    def _control(self) -> None:
        try:
            with self._opened:
                self._loop.run(self.backend, self._recorder, math.inf, self._over)
        except Exception as error:  # the queries go on as they are; `awaitTermination` tells
            self._error = error

    def _over(self) -> bool:
        return self.backend.clock.stopped or len(self.backend.failures()) == len(self.backend.application.operators)

    @property
    def isActive(self) -> bool:
        return not self._over()

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """Wait until every query has stopped, or for so many seconds; the error that ended one, if any, is raised."""
        self._thread.join(timeout)
        for name, why in self.backend.failures().items():
            raise SpringtideError(f"query {name!r} has stopped: {why}")
        if self._error is not None:
            raise SpringtideError(f"the query runs, but nothing changes it any more: {self._error}") from self._error
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Stop after the batches that run."""
        self.backend.clock.stop()
        self._thread.join()  # the loop first: it acts on the hosts that stopping the queries lets go
        self.backend.stop()
