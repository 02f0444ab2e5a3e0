"""The seams of Springtide: Clock, Backend, Policy, Forecaster, Recorder; and the View that a policy decides from.

Rules: a policy is parameters plus one pure function; its memory is passed in and out; same view and memory, same
answer. A backend is a clock, `observe` and `apply`; the loop cannot tell the simulator from Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeVar

from springtide.model.action import Action
from springtide.model.allocation import Allocation, Pool
from springtide.model.application import Application
from springtide.model.decision import Decision, Outcome
from springtide.model.observation import FloatArray, Observation
from springtide.model.windows import Windows

Memory = TypeVar("Memory")

FORESIGHT = "foresight"  # the model of a forecast that is the future itself


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forecast:
    """Rates in rows per second of each source's next intervals: `mean[k]` is k + 1 intervals ahead.

    `upper` is a high quantile. A model that knows more of the distribution gives more of it: `quantiles[source][i]` are the
    rates that will be exceeded with the probability 1 - `levels[i]`. `note` tells what is wrong with it, if anything is.
    """

    interval_s: float
    model: str
    mean: dict[str, FloatArray]
    upper: dict[str, FloatArray]
    levels: tuple[float, ...] = ()
    quantiles: dict[str, FloatArray] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """All that a policy may look at. `demand_rows_per_s` is what each operator is offered once every row of the
    present source rate has come through the DAG; `gains[source][operator]` is how much of that one row per second of a
    source makes; `forecast` is absent when no model is to be trusted."""

    application: Application
    pool: Pool
    observation: Observation
    demand_rows_per_s: dict[str, float]
    gains: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    forecast: Forecast | None = None

    @property
    def now_s(self) -> float:
        return self.observation.end_s

    def demand_at(self, source_rates_per_s: Mapping[str, float]) -> dict[str, float]:
        """Rows per second that each operator would be offered at other rates of the sources."""
        return {
            o.name: sum(rate * self.gains.get(source, {}).get(o.name, 0.0) for source, rate in source_rates_per_s.items())
            for o in self.application.operators
        }

    @property
    def requested(self) -> Allocation:
        """What policies plan from: whatever has been asked for already need not be asked for again."""
        return self.observation.requested


class Clock(Protocol):
    """Time as an input: wall-clock time live, virtual time in the simulator."""

    def now_s(self) -> float: ...

    def advance_to(self, time_s: float) -> None:
        """Return once it is `time_s`, or sooner if something has happened that a decision should not wait for."""
        ...


class Backend(Protocol):
    """Something that runs an application and can be changed while it does."""

    @property
    def clock(self) -> Clock: ...

    def observe(self) -> Observation:
        """Everything measured since the last call."""
        ...

    def apply(self, actions: Sequence[Action]) -> None:
        """Begin to carry the actions out; what came of them is seen in later observations."""
        ...


class Policy(Protocol[Memory]):
    """Decides what should run where."""

    def start(self) -> Memory: ...

    def decide(self, view: View, memory: Memory) -> tuple[Decision, Memory]: ...


AnyPolicy = Policy[Any]


class Forecaster(Protocol):
    """Learns from windows of a series, and continues it."""

    def fit(self, train: Windows, validation: Windows, seed: int) -> Self:
        """The forecaster that has learnt. What it learns by is `train`; `validation` tells it when to stop, and how well it
        does. The same windows and seed give the same forecaster."""
        ...

    def predict(self, past: FloatArray, steps: int) -> FloatArray:
        """The next `steps` rates after each row of past ones: one row for each, on the scale of the past."""
        ...


class Recorder(Protocol):
    """Keeps what happened: the journal, a list in a test, or both."""

    def observation(self, observation: Observation) -> None: ...

    def decision(self, observation: Observation, decision: Decision, actions: Sequence[Action]) -> None: ...

    def outcome(self, outcome: Outcome, time_s: float) -> None: ...
