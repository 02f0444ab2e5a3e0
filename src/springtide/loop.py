"""observe -> analyze -> plan -> execute, over any backend, until a given time.

A decision is due at the end of every interval. Where the backend says that it should not wait, a policy that `decides_early`
gets a shorter interval, and the next decision is due when this one would have been.

Who is in charge may change while it runs, and people may hold things still: both are values that the loop asks for at the
end of every interval, wherever they come from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from springtide.analyze.demand import Flows, gains
from springtide.analyze.outcome import compare
from springtide.execute.diff import actions, trigger_actions
from springtide.model.allocation import Pool
from springtide.model.application import Application
from springtide.model.decision import Decision
from springtide.model.observation import Observation
from springtide.model.protocols import AnyPolicy, Backend, Forecast, Recorder, View
from springtide.model.steering import UNSTEERED, Steering
from springtide.plan.parameters import wants
from springtide.plan.steering import steered

# What sums of interval lengths may be off by: no interval is so short.
ROUNDING = 1e-6
_LEAST_PART = 1 / 3  # of an interval: a decision that comes early comes no sooner than that after the one before


def no_forecast(_: Observation) -> Forecast | None:
    return None


def unsteered() -> Steering:
    return UNSTEERED


def never() -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class Charge:
    """Who decides, for which objective, within which bounds, and knowing what of the future."""

    application: Application
    pool: Pool
    policy: AnyPolicy
    forecast: Callable[[Observation], Forecast | None] = no_forecast


def as_before(charge: Charge) -> Charge:
    return charge


@dataclass(frozen=True, kw_only=True)
class ControlLoop:
    """One decision at the end of every interval, and its outcome one interval later.

    `recharged` says who is in charge from this interval on, given who was; a policy that comes into charge remembers nothing.
    """

    application: Application
    pool: Pool
    policy: AnyPolicy
    interval_s: float
    forecast: Callable[[Observation], Forecast | None] = no_forecast
    steering: Callable[[], Steering] = unsteered
    recharged: Callable[[Charge], Charge] = as_before

    def run(self, backend: Backend, recorder: Recorder, until_s: float, stop: Callable[[], bool] = never) -> None:
        clock = backend.clock
        charge = Charge(application=self.application, pool=self.pool, policy=self.policy, forecast=self.forecast)
        memory = charge.policy.start()
        previous: Decision | None = None
        flows = Flows()
        due_s = before_s = clock.now_s()
        while until_s - clock.now_s() > ROUNDING * self.interval_s and not stop():
            due_s = self._next_due_s(due_s, clock.now_s())
            clock.advance_to(min(due_s, until_s))
            sooner_s = before_s + _LEAST_PART * self.interval_s if wants(charge.policy, "decides_early") else due_s
            least_s = min(sooner_s, due_s, until_s)
            while least_s - clock.now_s() > ROUNDING * self.interval_s and not stop():
                clock.advance_to(least_s)
            before_s = clock.now_s()

            observation = backend.observe()
            recorder.observation(observation)
            if previous is not None:
                recorder.outcome(compare(previous.expected, observation), observation.end_s)

            before, charge = charge, self.recharged(charge)
            if charge.policy is not before.policy:
                memory = charge.policy.start()
            flows = flows.then(observation)
            view = seen(charge, observation, flows)
            if observation.warming:
                decision = Decision(
                    planned=observation.requested,
                    reason="the first batches run: nothing has been measured yet",
                    trigger_s=observation.trigger_s,
                )
            else:
                decision, memory = charge.policy.decide(view, memory)
            decision = steered(view, replace(decision, foreseen=view.forecast), self.steering())
            if view.forecast is not None and view.forecast.note:
                decision = decision.noting(view.forecast.note)
            if decision.planned is not observation.requested:
                decision.planned.check(self.application)

            wanted = (
                *actions(observation.requested, decision.planned),
                *trigger_actions(observation, decision.trigger_s),
            )
            backend.apply(wanted)
            recorder.decision(observation, decision, wanted)
            previous = decision

    def _next_due_s(self, due_s: float, now_s: float) -> float:
        """By the clock's own hours, whatever a decision takes; an interval that is missed is left out. Where a decision came
        early, the next one is due when that one was, unless that is very soon."""
        return due_s if due_s - now_s > _LEAST_PART * self.interval_s else max(due_s + self.interval_s, now_s)


def seen(charge: Charge, observation: Observation, flows: Flows) -> View:
    """What the policy in charge may look at."""
    rates = {name: rows / observation.interval_s for name, rows in observation.source_rows.items()}
    gained = gains(charge.application, flows)
    return View(
        application=charge.application,
        pool=charge.pool,
        observation=observation,
        demand_rows_per_s={
            o.name: sum(rate * gained[source][o.name] for source, rate in rates.items()) for o in charge.application.operators
        },
        gains=gained,
        forecast=None if observation.warming else charge.forecast(observation),
    )
