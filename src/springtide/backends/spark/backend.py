"""Live Spark as a backend: the same protocol as the simulator's, so the loop cannot tell them apart.

`apply` changes what is requested and returns; queries follow with their next batch, hosts when Spark has them. What came
of it is seen in later observations, and named in their events where it did not come out as planned.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from pyspark.sql import SparkSession

from springtide.backends.spark.application import Application
from springtide.backends.spark.cluster.embedded import check_session
from springtide.backends.spark.deployment import Deployment, deployed
from springtide.backends.spark.files import Folder
from springtide.backends.spark.fusion import described, fused
from springtide.backends.spark.hosts import Fleet
from springtide.backends.spark.jvm.status import Task, tasks_by_tag
from springtide.backends.spark.measuring import OperatorCounts, OperatorMeter, Slots
from springtide.backends.spark.offsets import Offsets
from springtide.backends.spark.query import BatchRecord, OperatorQuery
from springtide.backends.spark.scaling import Scaling
from springtide.backends.spark.warming import warm_up
from springtide.errors import require
from springtide.execute.carrying_out import operator_after, require_operator
from springtide.model.action import Action, AddHosts, MoveShards, ReleaseHosts, SetReplicas, SetTriggerInterval
from springtide.model.allocation import Allocation, OperatorAllocation, Pool, new_host_names, spread
from springtide.model.application import Application as ApplicationModel
from springtide.model.batch import longest_batches_s
from springtide.model.change import moved_units
from springtide.model.observation import HostObservation, Latency, Observation, OperatorObservation
from springtide.monitor.capacity import OperatorBatches, count_rows_due, measure_host_utilisation
from springtide.monitor.interval import IntervalCounts, TriggerInterval, operator_observations
from springtide.monitor.latency_histogram import LatencyCounts, bin_of, no_latency, summarise


def level_offered_rows(came: float, owed: float, likely: float | None) -> tuple[float, float]:
    """Rows offered in an interval, and those that came until its end and have not been counted; fewer than 0 if too many have.

    A source is asked when a batch is planned only, and taken to go on as before until then. What was counted too much or too
    little is made up for bit by bit, beside what is `likely` by what the source said last: a rate that is a little off for some
    intervals misleads nobody, one of 0 or of three times as much does.

    >>> level_offered_rows(came=-500.0, owed=0.0, likely=200.0), level_offered_rows(came=200.0, owed=-650.0, likely=200.0)
    ((150.0, -650.0), (150.0, -600.0))
    >>> level_offered_rows(came=600.0, owed=0.0, likely=200.0), level_offered_rows(came=200.0, owed=300.0, likely=200.0)
    ((300.0, 300.0), (220.0, 280.0))
    >>> level_offered_rows(came=-500.0, owed=0.0, likely=None), level_offered_rows(came=10.0, owed=20.0, likely=None)
    ((0.0, -500.0), (30.0, 0.0))
    """
    total = came + owed
    if likely is None:
        offered = max(0.0, total)
    else:
        made_up = min(max(owed, -_LOWER * likely), _MADE_UP * likely)
        offered = max(min(came, (1 + _HIGHER) * likely) + made_up, (1 - _LOWER) * likely)
    return offered, total - offered


_LOG = logging.getLogger(__name__)
_LOWER, _HIGHER, _MADE_UP = 0.25, 0.5, 0.1  # of what is likely
_WARM_AFTER_S = 40.0  # at the latest


class WallClock:
    """Seconds since the run began. Waiting ends early when the run is told to stop, or woken."""

    def __init__(self) -> None:
        self._began_s = time.time()
        self._stopped = False
        self._changed = threading.Condition()
        self._woken = False

    def now_s(self) -> float:
        return time.time() - self._began_s

    def epoch_s(self, time_s: float) -> float:
        """A time of this clock by everybody's calendar."""
        return self._began_s + time_s

    def advance_to(self, time_s: float) -> None:
        with self._changed:
            while not (self._stopped or self._woken) and (left_s := time_s - self.now_s()) > 0:
                self._changed.wait(left_s)
            self._woken = False

    def wake(self) -> None:
        """End the wait of now, or the next one: something has happened that a decision should not wait for."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    @property
    def stopped(self) -> bool:
        return self._stopped


@dataclass(slots=True)
class _Leaving:
    """A host that is being released, and the batch of each query that may still need it."""

    host: str
    begun: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Start:
    """What an application begins with."""

    hosts: int = 1
    replicas: Mapping[str, int]
    scaling: Scaling = Scaling.ELASTIC


Deploy = Callable[[Fleet, Mapping[str, OperatorAllocation]], Deployment]


def backend_for(
    spark: SparkSession,
    application: Application,
    pool: Pool,
    folder: str,
    *,
    hosts: int = 1,
    scaling: Scaling = Scaling.ELASTIC,
) -> SparkBackend:
    """An application on Spark, with its state under `folder`."""
    plans = fused(application)
    replicas = {plan.name: min(plan.head.replicas, plan.head.shards or plan.head.replicas) for plan in plans}

    def deploy(fleet: Fleet, placed: Mapping[str, OperatorAllocation]) -> Deployment:
        return deployed(spark, application, Folder(folder), fleet, placed, scaling)

    return SparkBackend(
        spark, described(application, plans), pool, deploy, Start(hosts=hosts, replicas=replicas, scaling=scaling)
    )


class SparkBackend:
    """Runs an application's queries in the session `spark`.

    `deploy` makes the queries, given the hosts they run on and where each operator begins. Whoever wants to know of every
    batch sets `told_of_batch`: it is called with the operator's name, the batch and its tasks, once the batch is over.
    """

    def __init__(self, spark: SparkSession, application: ApplicationModel, pool: Pool, deploy: Deploy, start: Start) -> None:
        check_session(spark, start.scaling)
        self.application = application
        self.pool = pool
        self._spark = spark
        self._clock = WallClock()
        hosts = start.hosts
        adopting = start.scaling is Scaling.DYNAMIC_ALLOCATION
        self._fleet = Fleet(spark.sparkContext, self._clock.now_s, partial(warm_up, spark), adopting=adopting)
        require(
            pool.min_hosts <= hosts <= pool.max_hosts,
            f"{hosts} hosts to begin with is not between {pool.min_hosts} and {pool.max_hosts}",
        )
        self._requested = spread(self.application, new_host_names(frozenset(), hosts), dict(start.replicas))
        self._observed = self._requested
        self._deployment = deploy(self._fleet, self._requested.operators)
        self._queries = self._deployment.queries
        longest_s = longest_batches_s(self.application)
        self._meters = {
            o.name: OperatorMeter(o, self._queries[o.name], self._observed.operators[o.name].replicas, longest_s[o.name])
            for o in self.application.operators
        }
        for name, query in self._queries.items():
            query.told_of_offsets = partial(self._offsets_read, name)
        self._leaving: dict[str, _Leaving] = {}
        self._done: Counter[str] = Counter()
        self._notes: list[str] = []
        self._said: set[str] = set()
        self._told: set[tuple[str, str]] = set()
        self._backlog: dict[tuple[str, str], float] = {}
        self._owed: dict[str, float] = {}  # rows that came and have not been counted, less those that were counted and did not
        self._run_latency = no_latency()
        self._batches: dict[str, OperatorBatches] = {}  # of the interval that is being observed
        self._observed_from_s = 0.0
        self._intervals = 0
        self.told_of_batch: Callable[[str, BatchRecord, Sequence[Task]], None] = lambda *_: None

    # --- life ---------------------------------------------------------------------------------------------------

    @property
    def clock(self) -> WallClock:
        return self._clock

    def start(self) -> None:
        """Start everything, or nothing: a query that cannot be started takes those before it with it."""
        try:
            self._fleet.begin(self._requested.hosts)
            self._deployment.start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop every query after the batch it is in; the application can be started again from its folder."""
        self._clock.stop()
        self._fleet.end()
        self._deployment.stop()
        for leaving in self._leaving.values():
            if leaving.begun:  # it gets no more tasks, and nothing runs any more that could need it
                self._fleet.let_go(leaving.host)
        self._leaving.clear()

    def failures(self) -> dict[str, str]:
        """Operators that have stopped by themselves, with what their function said."""
        return {name: why for name, query in self._queries.items() if (why := query.check_failed()) is not None}

    def latency_of_run(self) -> Latency:
        return summarise(self._run_latency, self.application.slo.percentile)

    # --- actions ------------------------------------------------------------------------------------------------

    def apply(self, actions: Sequence[Action]) -> None:
        """Everything that is asked for, or an `InvalidValue` and nothing."""
        if not actions:
            return
        planned = self._after(actions)
        planned.check(self.application)
        require(
            len(planned.hosts) <= self.pool.max_hosts,
            f"{len(planned.hosts)} hosts were asked for, but the pool has {self.pool.max_hosts}",
        )
        for action in actions:
            if isinstance(action, AddHosts):
                self._fleet.add(action.hosts)
                self._done["hosts_added"] += len(action.hosts)
        for name, placed in planned.operators.items():
            if placed != self._requested.operators[name]:
                self._count(self._requested.operators[name], placed)
                self._queries[name].request(placed)
        for action in actions:
            if isinstance(action, SetTriggerInterval):
                self._queries[action.operator].pacing.set(action.trigger_s)
        self._requested = planned
        for action in actions:
            if isinstance(action, ReleaseHosts):
                self._leaving.update({host: _Leaving(host) for host in action.hosts})
        self._let_go()

    def _after(self, actions: Iterable[Action]) -> Allocation:
        hosts = list(self._requested.hosts)
        operators = dict(self._requested.operators)
        for action in actions:
            match action:
                case AddHosts(names):
                    for name in names:
                        require(name not in hosts and name not in self._leaving, f"host {name!r} exists already")
                    hosts += names
                case ReleaseHosts(names):
                    hosts = [h for h in hosts if h not in names]
                case SetReplicas() | MoveShards():
                    operators[action.operator] = operator_after(action, operators)
                case SetTriggerInterval():
                    require_operator(action.operator, operators)
        return Allocation(tuple(hosts), operators)

    def _count(self, old: OperatorAllocation, new: OperatorAllocation) -> None:
        if new.replicas > old.replicas:
            self._done["scale_outs"] += 1
        elif new.replicas < old.replicas:
            self._done["scale_ins"] += 1
        elif not moved_units(old, new):
            self._done["regroupings"] += 1

    def _let_go(self) -> None:
        """Drain the hosts that are to go, one step further: no routing uses it, then no new task, then no batch that
        knew it.
        """
        for leaving in list(self._leaving.values()):
            if any(query.active and query.needs(leaving.host) for query in self._queries.values()):
                continue
            if not leaving.begun:
                self._fleet.release([leaving.host])
                leaving.begun = {name: query.batches_begun() for name, query in self._queries.items()}
            if all(query.passed(leaving.begun[name]) for name, query in self._queries.items()):
                self._fleet.let_go(leaving.host)
                self._done["hosts_released"] += 1
                del self._leaving[leaving.host]

    # --- measurement --------------------------------------------------------------------------------------------

    def observe(self) -> Observation:
        self._fleet.refresh()
        self._let_go()
        start_s, end_s = self._observed_from_s, self._clock.now_s()
        timed = {name: query.timed_batches() for name, query in self._queries.items()}
        records = {name: query.take_records() for name, query in self._queries.items()}
        executor_busy_s: dict[str, float] = {}
        tags = {batch.tag for each in timed.values() for batch in each}
        tags.update(record.tag for each in records.values() for record in each)
        tasks = tasks_by_tag(self._spark.sparkContext, tags)
        span_s = (self._clock.epoch_s(start_s), self._clock.epoch_s(end_s))
        counts = {
            name: self._meters[name].count(records[name], timed[name], tasks, span_s, executor_busy_s) for name in self._queries
        }
        slots = Slots(len(self._fleet.running()) * self.pool.host.cores, self.pool.host.cores)
        for name, meter in self._meters.items():
            meter.learn(records[name], tasks, slots)
        for name, each in records.items():
            for record in each:
                self.told_of_batch(name, record, tasks[record.tag])
        self._look_at_places(records)
        operators, source_rows = self._operators(counts, end_s - start_s, span_s[1])
        latency = self._latency(records)
        observation = Observation(
            index=self._intervals,
            start_s=start_s,
            end_s=end_s,
            source_rows=source_rows,
            operators=operators,
            hosts=self._hosts(executor_busy_s, end_s - start_s),
            latency=summarise(latency, self.application.slo.percentile),
            observed=self._observed,
            requested=self._requested,
            core_s=self._fleet.take_core_s(),
            downtime_s=sum(query.take_downtime_s() for query in self._queries.values()),
            reconfigurations=self._take_done(counts),
            events=self._take_notes(),
            warming=self._warming(),
            rising_rows_per_s=self._rising_rows_per_s(),
        )
        for name, query in self._queries.items():
            seen = observation.operators[name]
            query.balance(np.array(seen.replica_utilisation), seen.service_time_s / observation.interval_s)
            query.allow_rows(self._meters[name].allowed_rows(slots.count))
        self._observed_from_s = end_s
        self._intervals += 1
        return observation

    def _warming(self) -> bool:
        """Whether no operator has run a batch yet that its costs can be learned from."""
        return self._clock.now_s() < _WARM_AFTER_S and not any(meter.is_warm for meter in self._meters.values())

    def _offsets_read(self, name: str, offsets: Offsets, at_s: float) -> None:
        """Called in the thread that runs the batch, which must go on whatever offsets look like."""
        try:
            rose = self._meters[name].sources.read(offsets, at_s)
        except Exception:
            _LOG.warning("%s: what its sources offer cannot be read from their offsets", name, exc_info=True)
            return
        if rose:
            self._clock.wake()

    def _rising_rows_per_s(self) -> dict[str, float] | None:
        """Sources that have begun to bring more; None if none of them says how many rows it has offered."""
        told = [rising for meter in self._meters.values() if (rising := meter.sources.rising_rows_per_s) is not None]
        known = {source.name for source in self.application.sources}
        return {name: rate for each in told for name, rate in each.items() if name in known} if told else None

    def _operators(
        self, counts: dict[str, OperatorCounts], interval_s: float, now_s: float
    ) -> tuple[dict[str, OperatorObservation], dict[str, float]]:
        """Every operator's observation, and the rows that each source offered."""
        names = list(self._queries)
        offered: dict[str, float] = {}
        waiting: dict[str, float] = {}
        source_rows = {source.name: 0.0 for source in self.application.sources}
        for name in names:
            self._meters[name].sample_state()
            backlog, silent = self._meters[name].backlog(now_s)
            self._say_silent(silent)
            grown = 0.0
            for stream, rows in backlog.items():
                before = self._backlog.get((name, stream), 0.0)
                self._backlog[name, stream] = rows
                grown += rows - before
            waiting[name] = sum(backlog.values())
            came = self._meters[name].take_arrived_rows()
            if came is None:
                came = counts[name].processed_rows + counts[name].dropped_rows + grown
            likely = self._meters[name].likely_rows(now_s, interval_s)
            offered[name], self._owed[name] = level_offered_rows(came, self._owed.get(name, 0.0), likely)
            for source in self._queries[name].wiring.source_names:
                if source in source_rows and source_rows[source] == 0.0:
                    source_rows[source] = offered[name]
        batches = {}
        for name in names:
            load = count_rows_due(
                offered=offered[name],
                processed=counts[name].processed_rows,
                backlog=waiting[name],
                interval_s=interval_s,
                latency_s=self.application.slo.latency_s,
            )
            batches[name] = self._meters[name].batches(counts[name], load)
        replicas = np.array([len(counts[n].replica_busy_s) for n in names])
        after = np.cumsum(replicas)
        columns = IntervalCounts(
            names=names,
            offered_rows=np.array([offered[n] for n in names]),
            processed_rows=np.array([counts[n].processed_rows for n in names]),
            # Each of its followers gets all that an operator sends on.
            emitted_rows=np.array([counts[n].emitted_rows * max(1, len(self.application.outputs(n))) for n in names]),
            dropped_rows=np.array([counts[n].dropped_rows for n in names]),
            backlog_rows=np.array([waiting[n] for n in names]),
            age_s=np.array([counts[n].age_s for n in names]),
            service_time_s=np.array([self._meters[n].service_time_s for n in names]),
            # What was read for a replica elsewhere is counted as its own: nobody is busier than all the time.
            replica_busy_s=np.minimum(interval_s, np.concatenate([counts[n].replica_busy_s for n in names])),
            replica_first=after - replicas,
            replica_after=after,
            shards=[self._meters[n].loads(counts[n], waiting[n]) for n in names],
            batches=list(batches.values()),
            triggers=[TriggerInterval(self._queries[n].pacing.trigger_s, self._queries[n].pacing.bounds_s) for n in names],
        )
        self._batches = batches
        return operator_observations(columns, interval_s), source_rows

    def overcounted(self) -> tuple[float, dict[str, float]]:
        """Rows that were counted and have not come: from all sources, and at each operator."""
        first = {source: name for name in reversed(list(self._queries)) for source in self._queries[name].wiring.source_names}
        known = {source.name for source in self.application.sources}
        sources = sum(-self._owed.get(name, 0.0) for source, name in first.items() if source in known)
        return sources, {name: -rows for name, rows in self._owed.items()}

    def _latency(self, records: dict[str, list[BatchRecord]]) -> LatencyCounts:
        """Rows leave with the batch of an operator that has a sink."""
        rows, summed, longest, late = np.zeros_like(self._run_latency.rows), 0.0, 0.0, 0.0
        for name, query in self._queries.items():
            if not query.wiring.sinks:
                continue
            for record in records[name]:
                ages_s = record.ingested.ages_s(record.finished_s)
                for age_s, weight in zip(ages_s.tolist(), record.ingested.rows.tolist(), strict=True):
                    rows[bin_of(age_s)] += weight
                    summed += age_s * weight
                    longest = max(longest, age_s)
                    late += weight * (age_s > self.application.slo.latency_s)
        counted = LatencyCounts(rows=rows, sum_s=summed, max_s=longest, late_rows=late)
        self._run_latency = self._run_latency.plus(counted)
        return counted

    def _look_at_places(self, records: dict[str, list[BatchRecord]]) -> None:
        """Where the last batch of each operator really ran."""
        operators = dict(self._observed.operators)
        for name, query in self._queries.items():
            if records[name]:
                operators[name] = self._seen(query, records[name][-1])
        hosts = [h.name for h in self._fleet.hosts() if h.executor is not None]
        used = {h for placed in operators.values() for h in placed.replica_hosts}
        self._observed = Allocation(tuple(dict.fromkeys([*hosts, *sorted(used)])), operators)

    def _seen(self, query: OperatorQuery, record: BatchRecord) -> OperatorAllocation:
        routing = record.routing
        hosts = list(routing.allocation.replica_hosts)
        tasks = self._meters[query.name].last_tasks
        if len(tasks) != len(routing.task_replicas):
            return routing.allocation
        shards: dict[int, str] = {}
        for task in tasks:
            replica = routing.task_replicas[task.index]
            host = self._fleet.host_of(task.executor)
            shards.update(dict.fromkeys(routing.groups[task.index], task.executor))
            if host and host != hosts[replica]:
                self._notes.append(f"{query.name}: replica {replica} ran on {host}, not on {hosts[replica]} as planned")
                hosts[replica] = host
        if query.plan.head.stateful:
            query.saw_shards(record.batch_id, shards)
        return OperatorAllocation(tuple(hosts), routing.allocation.shard_replicas)

    def _hosts(self, executor_busy_s: dict[str, float], interval_s: float) -> dict[str, HostObservation]:
        utilisation = measure_host_utilisation(self._observed, self._batches, self.pool.host.cores, interval_s)
        busy_s: dict[str, float] = {}
        for executor, seconds in executor_busy_s.items():
            host = self._fleet.host_of(executor)
            if host is not None:
                busy_s[host] = busy_s.get(host, 0.0) + seconds
        return {
            host.name: HostObservation(
                name=host.name,
                state=host.state,
                cores=self.pool.host.cores,
                utilisation=utilisation.get(host.name, 0.0),
                busy_share=min(1.0, busy_s.get(host.name, 0.0) / (interval_s * self.pool.host.cores)),
                memory_bytes=0.0 if host.executor is None else float(host.executor.memory_bytes),
                network_bytes_per_s=0.0,
            )
            for host in self._fleet.hosts()
        }

    def _say_silent(self, sources: Iterable[str]) -> None:
        """Once for each source that does not report its lag."""
        for name in sources:
            if name not in self._said and self._intervals > 0:
                self._said.add(name)
                self._notes.append(f"source {name} does not say in rows how far behind it is read: its backlog counts as 0")

    def _take_done(self, counts: dict[str, OperatorCounts]) -> dict[str, int]:
        moved = sum(c.moved_shards for c in counts.values())
        if moved:
            self._done["shards_moved"] += moved
        done = dict(self._done)
        self._done.clear()
        return done

    def _take_notes(self) -> tuple[str, ...]:
        notes, losses = self._fleet.take_notes()
        if losses:
            self._done["hosts_failed"] += losses
        for name, why in self.failures().items():
            if (name, why) not in self._told:
                self._told.add((name, why))
                notes.append(f"operator {name} has stopped: {why}")
        notes += self._notes
        self._notes = []
        return tuple(notes)
