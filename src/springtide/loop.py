"""observe -> analyze -> plan -> execute, over any backend, until a given time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from springtide.analyze.demand import Flows, gains
from springtide.analyze.outcome import compare
from springtide.execute.diff import actions
from springtide.model.allocation import Pool
from springtide.model.application import Application
from springtide.model.decision import Decision
from springtide.model.observation import Observation
from springtide.model.protocols import AnyPolicy, Backend, Forecast, Recorder, View

# What sums of interval lengths may be off by: no interval is so short.
ROUNDING = 1e-6


def no_forecast(_: Observation) -> Forecast | None:
    return None


def never() -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class ControlLoop:
    """One decision at the end of every interval, and its outcome one interval later."""

    application: Application
    pool: Pool
    policy: AnyPolicy
    interval_s: float
    forecast: Callable[[Observation], Forecast | None] = no_forecast

    def run(self, backend: Backend, recorder: Recorder, until_s: float, stop: Callable[[], bool] = never) -> None:
        clock = backend.clock
        memory = self.policy.start()
        previous: Decision | None = None
        flows = Flows()
        due_s = clock.now_s()
        while until_s - clock.now_s() > ROUNDING * self.interval_s and not stop():
            # By the clock's own hours, whatever a decision takes; an interval that is missed is left out.
            due_s = max(due_s + self.interval_s, clock.now_s())
            clock.advance_to(min(due_s, until_s))

            observation = backend.observe()
            recorder.observation(observation)
            if previous is not None:
                recorder.outcome(compare(previous.expected, observation), observation.end_s)

            flows = flows.then(observation)
            view = self._view(observation, flows)
            decision, memory = self.policy.decide(view, memory)
            if view.forecast is not None and view.forecast.note:
                decision = decision.noting(view.forecast.note)
            if decision.planned is not observation.requested:
                decision.planned.check(self.application)

            wanted = actions(observation.requested, decision.planned)
            backend.apply(wanted)
            recorder.decision(observation, decision, wanted)
            previous = decision

    def _view(self, observation: Observation, flows: Flows) -> View:
        rates = {name: rows / observation.interval_s for name, rows in observation.source_rows.items()}
        gained = gains(self.application, flows)
        return View(
            application=self.application,
            pool=self.pool,
            observation=observation,
            demand_rows_per_s={
                o.name: sum(rate * gained[source][o.name] for source, rate in rates.items()) for o in self.application.operators
            },
            gains=gained,
            forecast=self.forecast(observation),
        )
