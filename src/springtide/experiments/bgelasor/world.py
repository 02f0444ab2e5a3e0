"""The setting of Figures 4 and 5: one operator of many instances on the paper's cluster, and who decides how many there are.

An instance is a core. The paper's algorithms start and stop replicas on its seven machines of 36 cores, which are always there:
each replica has a core to itself. `tide` rents cores: its hosts have one core each, and the number of instances is that
of hosts. Instances come and go at once for everybody; what that costs is in the paper's prices.

Rows that have waited for 10 s are discarded: the paper's system lets instances "quickly discard input data to make sure the
latest data receives priority processing", and does not say how quickly. The objective is Springtide's usual one, 90 % within
5 s; the paper has none.

The text is silent on what an instance processes. Algorithm 1 uses one letter, p, for the price of an instance and, in step 1,
for its capability; so it is 8,000 rows/s here, as the price is 8,000. The periodic recording then needs 8.4 instances on
average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from springtide.backends.simulator.settings import SimulatorSettings
from springtide.experiments.bgelasor.loads import Load
from springtide.model.allocation import Allocation, HostType, Pool, new_host_names, spread
from springtide.model.application import Application, Grouping, Operator
from springtide.model.decision import Decision
from springtide.model.observation import FloatArray, Observation
from springtide.model.protocols import AnyPolicy, Forecast, View
from springtide.plan.cost.model import Prices, least_instances
from springtide.plan.horizon.path import Moves, cheapest_path
from springtide.plan.placement.counts import allocate
from springtide.workload.traces import Trace

PRICES = Prices()  # Figure 4: p = 8000, p^u = p^d = 5000, p^r = 100
CAPABILITY_ROWS_PER_S = 8_000.0
MEAN_ROWS_PER_S = 67_000.0  # of the periodic recording, and of every load here
MACHINES, CORES_OF_MACHINE = 7, 36
OPERATOR, SOURCE = "preprocess", "source"
DISCARDED_AFTER_S = 10.0

_STEP_S = 5.0
_CORES = MACHINES * CORES_OF_MACHINE

WAITING = Application(
    name="bgelasor",
    operators=(
        Operator(
            name=OPERATOR, service_time_s=1 / CAPABILITY_ROWS_PER_S, grouping=Grouping.SHARED, max_replicas=_CORES, row_bytes=0
        ),
    ),
)
DISCARDING = replace(WAITING, timeout_s=DISCARDED_AFTER_S)
CLUSTER = Pool(host=HostType(cores=CORES_OF_MACHINE, start_s=0.0, release_s=0.0), min_hosts=MACHINES, max_hosts=MACHINES)
RENTED_CORES = Pool(host=HostType(cores=1, start_s=0.0, release_s=0.0), min_hosts=1, max_hosts=_CORES)


def settings(load: Load) -> SimulatorSettings:
    """A decision at the end of every interval of the recording: an epoch."""
    return SimulatorSettings(step_s=_STEP_S, interval_s=load.interval_s)


def tested(load: Load, days: int) -> Trace:
    """The first days of the test part, as rows that come."""
    first = load.bounds.test
    rates = load.rates_per_s[first : first + round(days * 86_400 / load.interval_s)]
    return Trace(name=load.name, step_s=load.interval_s, counts=rates * load.interval_s, start=load.begin_of(first))


def needs(trace: Trace) -> tuple[int, ...]:
    """The fewest instances that are enough in each epoch."""
    return tuple(least_instances(rows / trace.step_s, CAPABILITY_ROWS_PER_S) for rows in trace.counts.tolist())


def first_allocation(pool: Pool, instances: int) -> Allocation:
    """What the first epoch needs, for everybody."""
    hosts = new_host_names(frozenset(), max(pool.min_hosts, instances if pool is RENTED_CORES else 0))
    return spread(WAITING, hosts, {OPERATOR: instances})


def optimum(least: Sequence[int], prices: Prices = PRICES) -> tuple[int, ...]:
    """The timetable that costs least (equation 5) of all that are enough in every epoch, found exactly.

    >>> optimum((3, 1, 3)), optimum((3, 1, 1, 3))
    ((3, 3, 3), (3, 1, 1, 3))
    """
    sizes = np.arange(min(least), max(least) + 1)
    enough = sizes >= np.array(least)[:, np.newaxis]
    stages = np.where(enough, prices.instance * sizes.astype(np.float64), np.inf)
    moves = Moves(up=prices.startup, down=prices.shutdown, change=prices.reroute)
    return tuple(cheapest_path(stages, sizes, least[0], moves).tolist())


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    """Has as many replicas in each interval as it was told before."""

    name: ClassVar[str] = "timetable"

    numbers: tuple[int, ...]

    def start(self) -> None:
        return None

    def decide(self, view: View, memory: None) -> tuple[Decision, None]:
        number = self.numbers[min(view.observation.index + 1, len(self.numbers) - 1)]
        return Decision(planned=allocate(view, {OPERATOR: number}), reason=f"the timetable has {number}"), memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A policy that is told the rates that will come, where it would have been given a forecast."""

    name: ClassVar[str] = "told"
    foresees: ClassVar[bool] = True

    policy: AnyPolicy

    def start(self) -> Any:
        return self.policy.start()

    def decide(self, view: View, memory: Any) -> tuple[Decision, Any]:
        return self.policy.decide(view, memory)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shown:
    """One of the paper's algorithms, which is shown what the paper shows it.

    `ahead_rows_per_s[i, k]` is what the predictor says, at the end of the epoch i, of the epoch i + 1 + k; without it there is
    whatever forecast the view has. All rates are `headroom` times as high as they are. Rows that wait are only shown where
    `waiting`: the paper's system discards them, and its algorithms look at the input.
    """

    name: ClassVar[str] = "shown"

    policy: AnyPolicy
    ahead_rows_per_s: FloatArray | None = None
    headroom: float = 1.0
    waiting: bool = False

    def start(self) -> Any:
        return self.policy.start()

    def decide(self, view: View, memory: Any) -> tuple[Decision, Any]:
        demand = {operator: self.headroom * rate for operator, rate in view.demand_rows_per_s.items()}
        seen = view.observation if self.waiting else _without_backlog(view.observation)
        shown = replace(view, observation=seen, demand_rows_per_s=demand, forecast=self._forecast(view))
        return self.policy.decide(shown, memory)

    def _forecast(self, view: View) -> Forecast | None:
        forecast = view.forecast
        if self.ahead_rows_per_s is not None:
            ahead = self.ahead_rows_per_s[min(view.observation.index, len(self.ahead_rows_per_s) - 1)]
            interval_s = view.observation.interval_s
            forecast = Forecast(interval_s=interval_s, model=self.name, mean={SOURCE: ahead}, upper={SOURCE: ahead})
        if forecast is None:
            return None
        return replace(forecast, mean={source: self.headroom * rates for source, rates in forecast.mean.items()})


def _without_backlog(observation: Observation) -> Observation:
    return replace(observation, operators={name: replace(o, backlog_rows=0.0) for name, o in observation.operators.items()})
