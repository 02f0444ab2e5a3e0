"""What `tide` learns of an application from each interval: a few numbers, none of which a user has to give.

* ceiling: how busy cores may be so that latency stays within the objective. Waiting grows as 1/(1 - utilisation), in a queue
  (M/M/1: service time / (1 - utilisation)) as in micro-batches (a batch of fixed part o and rows that take a share u of the
  time lasts o / (1 - u)), so one measured pair of latency and utilisation gives the utilisation at which the objective is
  reached.
* unevenness: the busiest host's load over the mean, because it is the busiest that is late.
* upkeep: the cores that must be paid for at least for each core of work, which is more than one where the smallest pool is idle
  most of the time. Late work is dear there, because there is so little work.
* misses: how often more came than the forecast held likely.
* gain: whether hosts that were added let more rows through.
* late: how much was late of what may be, so that the rest is not paid for (`tide.spending`).
* stops: for how long a change stops the application.
* bursts: whether sources have theirs at the same time (`tide.bursts`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from springtide.model.observation import Observation
from springtide.model.protocols import View
from springtide.plan.horizon.work import Work, overdue_core_s
from springtide.plan.tide.bursts import Bursts
from springtide.plan.tide.spending import Late

HIGHEST_CEILING, LOWEST_CEILING = 0.95, 0.5
HIGHEST_UPKEEP = 10.0
STEADY = 0.5  # of the objective's latency: a longer backlog says nothing about the ceiling, and has to be worked off

_LEARNING = 0.1  # the share of a new measurement in what is learned
_REMEMBERED = 0.9997  # of the work seen before, with each interval
_BUSY = 0.3  # a pool that is less busy than this says nothing about the ceiling and the unevenness
_LEAST_GAIN = 0.2  # of what added hosts should have let through
_JUDGED_AFTER, _NO_MORE_FOR = 4, 10  # intervals
_JUDGED_AFTER_S = 60.0  # at the latest


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Hosts that were added, when they should run, and the rows that left the application before that."""

    running_s: float
    before: int
    factor: float
    rows_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stops:
    """For how long the application stood still so far, and how many changes that was for."""

    stopped_s: float = 0.0
    changes: int = 0

    @property
    def each_s(self) -> float:
        return self.stopped_s / self.changes if self.changes else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TideMemory:
    ceiling: float = 0.9
    unevenness: float = 1.0
    work_cores: float = 0.0
    least_cores: float = 0.0
    misses: float = 0.0
    likely_rate_per_s: float = math.inf  # that the last forecast held likely, at most, for this interval
    late: Late = field(default_factory=Late)
    stops: Stops = field(default_factory=Stops)
    bursts: Bursts = field(default_factory=Bursts)
    growth: Growth | None = None
    no_more_until_s: float = -math.inf
    allowance: float = math.nan  # changes that may still be made; not a number before the first decision
    last_s: float = 0.0

    @property
    def capacity(self) -> float:
        """Of one core, with which the objective is kept."""
        return self.ceiling / self.unevenness

    @property
    def upkeep(self) -> float:
        if self.work_cores <= 0:
            return HIGHEST_UPKEEP
        return min(max(1.0, self.least_cores / self.work_cores), HIGHEST_UPKEEP)

    @property
    def distrusts(self) -> bool:
        """Whether more than was likely has come of late: one interval in twenty is all right."""
        return self.misses > 0.5 * _LEARNING


def learned(view: View, memory: TideMemory, work: Work, late_share: float) -> TideMemory:
    """With what this interval showed."""
    memory = _judged(view, memory)
    bursts = memory.bursts.then(view)
    rate = view.observation.offered_rows / view.observation.interval_s
    least = view.pool.min_hosts * view.pool.host.cores
    return replace(
        _measured(view, memory),
        misses=memory.misses + _LEARNING * ((rate > memory.likely_rate_per_s) - memory.misses),
        likely_rate_per_s=_likely_rate_per_s(view, bursts.together),
        bursts=bursts,
        late=memory.late.then(view.observation, late_share),
        stops=replace(memory.stops, stopped_s=memory.stops.stopped_s + view.observation.downtime_s),
        work_cores=_REMEMBERED * memory.work_cores + work.now,
        least_cores=_REMEMBERED * memory.least_cores + max(least, work.now / HIGHEST_CEILING),
    )


def grown(view: View, memory: TideMemory, hosts: int) -> TideMemory:
    """With hosts that are being added, whose effect will be judged; those that join them are judged with them."""
    if memory.growth is not None:
        return replace(memory, growth=replace(memory.growth, factor=max(memory.growth.factor, hosts / memory.growth.before)))
    growth = Growth(
        running_s=view.now_s + view.pool.host.start_s,
        before=len(view.requested.hosts),
        factor=hosts / len(view.requested.hosts),
        rows_per_s=_leaving_rows_per_s(view.observation),
    )
    return replace(memory, growth=growth)


def _likely_rate_per_s(view: View, together: float) -> float:
    if view.forecast is None:
        return math.inf
    middle, upper = (sum(float(rates[0]) for rates in of.values()) for of in (view.forecast.mean, view.forecast.upper))
    return middle + together * (upper - middle)


def _measured(view: View, memory: TideMemory) -> TideMemory:
    """With the ceiling and the unevenness from an interval in which nothing changed and work did not pile up."""
    seen = view.observation
    running = seen.running_hosts
    busy = sum(h.utilisation for h in running) / len(running) if running else 0.0
    if busy < _BUSY or seen.requested != seen.observed or overdue_core_s(view, STEADY) > 0:
        return memory
    memory = replace(memory, unevenness=_closer(memory.unevenness, max(h.utilisation for h in running) / busy))
    allowed_s = view.application.slo.latency_s
    if 0 < seen.latency.slo_s < allowed_s:
        reached = 1 - seen.latency.slo_s * (1 - min(busy, HIGHEST_CEILING)) / allowed_s
        memory = replace(memory, ceiling=_closer(memory.ceiling, min(max(reached, LOWEST_CEILING), HIGHEST_CEILING)))
    return memory


def _closer(known: float, measured: float) -> float:
    return known + _LEARNING * (measured - known)


def _judged(view: View, memory: TideMemory) -> TideMemory:
    """Whether hosts that were added have let more rows through, once they have run for some intervals."""
    growth, interval_s = memory.growth, view.observation.interval_s
    if growth is None or view.now_s < growth.running_s + min(_JUDGED_AFTER * interval_s, _JUDGED_AFTER_S):
        return memory
    hoped = growth.rows_per_s * (growth.factor - 1)
    gained = _leaving_rows_per_s(view.observation) - growth.rows_per_s
    helped = gained >= _LEAST_GAIN * hoped or overdue_core_s(view, STEADY) <= 0
    until_s = memory.no_more_until_s if helped else view.now_s + _NO_MORE_FOR * interval_s
    return replace(memory, growth=None, no_more_until_s=until_s)


def _leaving_rows_per_s(seen: Observation) -> float:
    return seen.latency.rows / seen.interval_s
