"""What `tide` learns of an application from each interval: a few numbers, none of which a user has to give.

* ceiling: how busy cores may be so that latency stays within the objective. Waiting grows as 1/(1 - utilisation), in a queue
  (M/M/1: service time / (1 - utilisation)) as in micro-batches (a batch of fixed part o and rows that take a share u of the
  time lasts o / (1 - u)), so one measured pair of latency and utilisation gives the utilisation at which the objective is
  reached. Of an application without batches.
* unevenness: the busiest host's load over the mean, because it is the busiest that is late. Of an application without batches.
* bias: the latency that was measured over the latency that the model of batches predicts for the same demand and hosts.
* missed: for how many intervals the objective has been missed while nothing changed and no backlog was being worked off.
* upkeep: the cores that must be paid for at least for each core of work, which is more than one where the smallest pool is idle
  most of the time. Late work is dear there, because there is so little work.
* misses: how often more came than the forecast held likely.
* gain: whether hosts that were added let more rows through.
* late: how much was late of what may be, so that the rest is not paid for (`tide.spending`).
* floor: hosts that the objective has been found to need, whatever the model says.
* eased: for how many intervals the objective has been met with a wide margin while nothing changed.
* trial: one host fewer than the model asks for, because it may be wrong and the margin is wide (`tide.trials`).
* stops: for how long a change stops the application.
* starts: how long hosts take to start (`tide.starting`).
* bursts: whether sources have theirs at the same time (`tide.bursts`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from springtide.model.protocols import View
from springtide.plan.horizon.work import Work, overdue_core_s
from springtide.plan.sizing.batches import BatchModel
from springtide.plan.tide.bursts import Bursts
from springtide.plan.tide.capacity import STEADY, BatchCapacity, Capacity, QueueCapacity, estimate_response_s
from springtide.plan.tide.spending import Late
from springtide.plan.tide.starting import Starts

HIGHEST_CEILING, LOWEST_CEILING = 0.95, 0.5
HIGHEST_UPKEEP = 10.0
HIGHEST_BIAS, LOWEST_BIAS = 3.0, 0.5
LONG_MISSED = 3  # intervals, after which something is done whatever the model says
_FEW_BATCHES = 6

_LEARNING = 0.1  # the share of a new measurement in what is learned
_REMEMBERED = 0.9997  # of the work seen before, with each interval
_BUSY = 0.3  # a pool that is less busy than this says nothing about the ceiling and the unevenness
_DRAINING = 0.95  # of what waited before: a backlog that becomes less is being worked off
_LEAST_GAIN = 0.2  # of what added hosts should have let through
_JUDGED_AFTER, _NO_MORE_FOR = 4, 10  # intervals
_JUDGED_LATENCIES = 3.0  # of the objective: some batches
_JUDGED_AFTER_S = 60.0  # of use, at the latest
_AS_MUCH = 0.8  # of the work for which hosts were needed
_NO_MORE_THAN = 1.2  # times the rate at which fewer hosts are tried
_WIDE_MARGIN = 0.65  # of the objective's latency, that is met with it
FLOOR_S = 600.0  # after which fewer hosts are tried again
_SURGE = 1.5  # times the work of the interval before
_LEAST_RECENT, _MOST_RECENT = 3, 64  # intervals, of which what came is kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Hosts that were added, the rows that left the application before that, and how many have left since they are in use."""

    before: int
    factor: float
    rows_per_s: float
    judged_by_s: float
    rows: float = 0.0
    used_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """Hosts that were needed for so much work whatever the model says: no fewer for as much, until it is tried again."""

    hosts: int = 0
    cores: float = math.inf
    until_s: float = -math.inf

    def at(self, now_s: float, cores: float) -> int:
        return self.hosts if now_s < self.until_s and cores > _AS_MUCH * self.cores else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Hosts that are enough for a rate, as far as it has been seen, whatever the model says; none if `hosts` is 0. The next
    trial begins no sooner than `next_s`: after each that failed, twice as late (`tide.trials`)."""

    hosts: int = 0
    rows_per_s: float = 0.0
    next_s: float = -math.inf
    failures: int = 0

    def at(self, rows_per_s: float, most: int) -> int:
        return self.hosts if self.hosts and rows_per_s < _NO_MORE_THAN * self.rows_per_s else most


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
    bias: float = 1.0
    missed: int = 0
    eased: int = 0
    overdue_core_s: float = 0.0  # that waited at the end of the last interval
    work_cores: float = 0.0
    least_cores: float = 0.0
    misses: float = 0.0
    likely_rate_per_s: float = math.inf  # that the last forecast held likely, at most, for this interval
    late: Late = field(default_factory=Late)
    stops: Stops = field(default_factory=Stops)
    bursts: Bursts = field(default_factory=Bursts)
    starts: Starts = field(default_factory=Starts)
    floor: Floor = Floor()
    trial: Trial = Trial()
    recent_cores: tuple[float, ...] = ()  # of work, in the last intervals
    leaving_rows_per_s: float = 0.0
    growth: Growth | None = None
    no_more_until_s: float = -math.inf
    allowance: float = math.nan  # changes that may still be made; not a number before the first decision
    last_s: float = 0.0

    def capacity(self, view: View, late_share: float) -> Capacity:
        """What hosts can do, by what is known so far."""
        model = BatchModel.of(view)
        cores = view.pool.host.cores
        if model is None:
            return QueueCapacity(cores=cores, ceiling=self.ceiling, unevenness=self.unevenness)
        return BatchCapacity(
            model=model,
            cores=cores,
            late_share=late_share,
            latency_s=view.application.slo.latency_s,
            bias=self.bias,
            doubt_s=estimate_response_s(view, self.starts.takes_s(view.pool.host.start_s)),
        )

    def most_recent_cores(self, within_s: float, interval_s: float) -> float:
        """The most work of any interval within the last seconds, and of the last three at least."""
        intervals = max(_LEAST_RECENT, math.ceil(within_s / interval_s)) if within_s > 0 else 0
        return max(self.recent_cores[len(self.recent_cores) - min(intervals, len(self.recent_cores)) :], default=0.0)

    def surge_cores(self, rising_cores: float | None) -> float:
        """Work that may be on its way where much more comes than in the two intervals before; 0 where it does not.

        `rising_cores` is what sources that rose in this interval bring at its end, if that is known. Else what rose is taken to
        have done so in the middle of the interval. Hosts that are asked for an interval later come an interval later.
        """
        *earlier, now = (0.0, *self.recent_cores)[-_LEAST_RECENT:]
        before = max(earlier, default=0.0)
        surge = 2 * now - before if rising_cores is None else rising_cores
        return surge if (surge + before) / 2 > _SURGE * before > 0 else 0.0

    def is_new_to(self, view: View) -> bool:
        """Whether so few batches have been seen that costs may still be those of a cold start, and nothing is late."""
        seen = view.observation
        batches = [operator.costs.batches for operator in seen.operators.values() if operator.costs is not None]
        kept = seen.latency.slo_s <= view.application.slo.latency_s and overdue_core_s(view, 1.0) <= 0
        return bool(batches) and min(batches) < _FEW_BATCHES and kept

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
    capacity = memory.capacity(view, late_share)
    memory = _judged(view, memory, capacity)
    bursts = memory.bursts.then(view)
    rate = view.observation.offered_rows / view.observation.interval_s
    least = view.pool.min_hosts * view.pool.host.cores
    return replace(
        _compared(view, memory, capacity) if isinstance(capacity, BatchCapacity) else _measured(view, memory),
        misses=memory.misses + _LEARNING * ((rate > memory.likely_rate_per_s) - memory.misses),
        likely_rate_per_s=_likely_rate_per_s(view, bursts.together),
        bursts=bursts,
        starts=memory.starts.then(view),
        leaving_rows_per_s=_leaving_rows_per_s(view, memory),
        recent_cores=(*memory.recent_cores, work.now)[-_MOST_RECENT:],
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
        before=len(view.requested.hosts),
        factor=hosts / len(view.requested.hosts),
        rows_per_s=memory.leaving_rows_per_s,
        judged_by_s=view.now_s + memory.starts.takes_s(view.pool.host.start_s) + 2 * _JUDGED_AFTER_S,
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


def _compared(view: View, memory: TideMemory, capacity: BatchCapacity) -> TideMemory:
    """With the latency that was measured beside the one that the model predicts, in an interval in which nothing changed.

    A backlog makes rows late that the model knows nothing of, unless it stays: then the model is wrong.
    """
    seen, slo = view.observation, view.application.slo
    if seen.latency.rows <= 0 or seen.requested != seen.observed:
        return replace(memory, missed=0, eased=0) if seen.requested != seen.observed else memory
    overdue = overdue_core_s(view, capacity.steady)
    drains = overdue < _DRAINING * memory.overdue_core_s
    missed = 0 if seen.latency.slo_s <= slo.latency_s else memory.missed if drains else memory.missed + 1
    eased = memory.eased + 1 if seen.latency.slo_s <= _WIDE_MARGIN * slo.latency_s and overdue <= 0 else 0
    memory = replace(memory, missed=missed, eased=eased, overdue_core_s=overdue)
    if overdue > 0 and missed < LONG_MISSED:
        return memory
    predicted_s = capacity.latency_at(len(seen.running_hosts), slo.percentile) / memory.bias
    off = min(max(seen.latency.slo_s / predicted_s, LOWEST_BIAS), HIGHEST_BIAS)
    return replace(memory, bias=_closer(memory.bias, off))


def _closer(known: float, measured: float) -> float:
    return known + _LEARNING * (measured - known)


def _judged(view: View, memory: TideMemory, capacity: Capacity) -> TideMemory:
    """Whether hosts that were added have let more rows through, once they have been in use for some intervals."""
    growth, seen = memory.growth, view.observation
    if growth is None:
        return memory
    if view.now_s > growth.judged_by_s:  # they are not used as planned, so nothing can be said
        return replace(memory, growth=None)
    if seen.requested != seen.observed:
        return memory
    growth = replace(
        growth,
        rows=growth.rows + seen.latency.rows,
        used_s=growth.used_s + seen.interval_s,
    )
    enough_s = max(_JUDGED_AFTER * seen.interval_s, _JUDGED_LATENCIES * view.application.slo.latency_s)
    if growth.used_s < min(enough_s, _JUDGED_AFTER_S):
        return replace(memory, growth=growth)
    hoped = growth.rows_per_s * (growth.factor - 1)
    gained = growth.rows / growth.used_s - growth.rows_per_s
    helped = gained >= _LEAST_GAIN * hoped or overdue_core_s(view, capacity.steady) <= 0
    until_s = memory.no_more_until_s if helped else view.now_s + _NO_MORE_FOR * seen.interval_s
    return replace(memory, growth=None, no_more_until_s=until_s)


def _leaving_rows_per_s(view: View, memory: TideMemory) -> float:
    """Rows that leave, of late: a batch lets its rows go all at once, so an interval has none or many."""
    seen = view.observation
    over_s = max(_JUDGED_AFTER * seen.interval_s, _JUDGED_LATENCIES * view.application.slo.latency_s)
    share = 1.0 if memory.leaving_rows_per_s <= 0 else 1 - math.exp(-seen.interval_s / over_s)
    return memory.leaving_rows_per_s + share * (seen.latency.rows / seen.interval_s - memory.leaving_rows_per_s)
