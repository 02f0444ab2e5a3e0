"""From what queries recorded and Spark's status store knows to the counts of an interval.

Cost: one look at the status store for each batch of the interval, none for batches before it. What each number is:

* rows: from the edges' own entries, or counted on the way from a source;
* busy time: the run time of tasks within the interval, those that still run too; what a replica's own task took is the
  replica's, what was read for it is shared by all;
* what batches cost: from tasks of batches that nothing unusual happened to, neither an executor's first ones nor a shard's move
  (`monitor.batch_costs`);
* backlog: what edges hold, and what sources said last; while a batch runs they are not asked, and taken to go on as before;
* a shard's rows: by the bytes that shuffles sent to it of late; its time: by what shards and rows cost;
* state: the size of one shard's files in the checkpoint, another shard each time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyarrow import fs

from springtide.backends.spark.jvm.status import Task
from springtide.backends.spark.query import BatchRecord, OperatorQuery, TimedBatch
from springtide.backends.spark.routing import BatchRouting
from springtide.backends.spark.source_readings import SourceReadings, offsets_at_end
from springtide.model.application import Operator
from springtide.model.observation import FloatArray, ShardLoads
from springtide.monitor.batch_costs import BatchMoments, BatchSample, LearnedCosts
from springtide.monitor.capacity import OperatorBatches, sum_by_replica
from springtide.monitor.shard_weights import ShardWeights

_NOTHING_COMES_S = 1.0  # a query that has begun no batch for so long after it could have has nothing to read
_COLD_BATCHES = 3  # of an executor, in which code is compiled and Python workers start


@dataclass(kw_only=True, eq=False)
class OperatorCounts:
    """One operator over one interval, while it is counted."""

    read_rows: float = 0.0
    processed_rows: float = 0.0
    emitted_rows: float = 0.0
    dropped_rows: float = 0.0
    age_s: float = 0.0
    replica_busy_s: FloatArray
    moved_shards: int = 0
    batches: int = 0


@dataclass(frozen=True, slots=True)
class Slots:
    """The slots of all executors that run: `count` of them, `cores` each."""

    count: int
    cores: int

    def busiest_s(self, tasks: Sequence[Task]) -> float:
        """How long the tasks of one stage take on the executor where they take longest."""
        run_s: dict[str, list[float]] = {}
        for task in tasks:
            run_s.setdefault(task.executor, []).append(task.run_s)
        return max((max(*each, sum(each) / self.cores) for each in run_s.values()), default=0.0)


class OperatorMeter:
    """Measures one operator's query, interval after interval."""

    def __init__(self, operator: Operator, query: OperatorQuery, replicas: int, longest_batch_s: float) -> None:
        self._operator, self._query = operator, query
        self.sources = SourceReadings(query.wiring.source_names)
        self._longest_batch_s = longest_batch_s
        self._learned = LearnedCosts.begin()
        self._batches_of: Counter[str] = Counter()  # by executor
        self._around_s = 0.0  # what Spark does before and after a batch's function
        self._replicas = replicas  # of the last batch, or those to begin with
        self._weights = ShardWeights.even(operator.shards)
        self._state_bytes = np.zeros(operator.shards)
        self._sampled = 0
        self._routes: tuple[int, ...] = ()  # of the last batch
        self.last_tasks: list[Task] = []  # those that were the replicas of the last batch

    def count(
        self,
        records: Sequence[BatchRecord],
        timed: Sequence[TimedBatch],
        tasks: Mapping[str, Sequence[Task]],
        span_s: tuple[float, float],
        host_busy_s: dict[str, float],
    ) -> OperatorCounts:
        """Add up an interval: the rows of the batches that ended in it, and the time that tasks took between its two ends,
        in whichever batch; every executor's goes to `host_busy_s`."""
        if records:
            self._replicas = records[-1].routing.allocation.replicas
        replicas = self._replicas
        counts = OperatorCounts(replica_busy_s=np.zeros(replicas))
        for record in records:
            self._add(counts, record)
            self.last_tasks = [t for t in tasks[record.tag] if t.last_stage]
        for batch in timed:
            self._share_time(counts, batch.routing, tasks[batch.tag], span_s)
            for task in tasks[batch.tag]:
                host_busy_s[task.executor] = host_busy_s.get(task.executor, 0.0) + task.busy_between(*span_s)
        return counts

    def learn(self, records: Sequence[BatchRecord], tasks: Mapping[str, Sequence[Task]], slots: Slots) -> None:
        """Learn what batches cost from those that ended."""
        self._around_s = _around_s(self._query.progress(), self._around_s)
        samples = [sample for record in records if (sample := self._sample(record, tasks[record.tag], slots)) is not None]
        self._learned = self._learned.then(BatchMoments.of(samples))

    def _sample(self, record: BatchRecord, tasks: Sequence[Task], slots: Slots) -> BatchSample | None:
        """A batch as its costs are learned from it; None if something unusual happened to it, or to what is known of it."""
        there = {task.executor for task in tasks}
        cold = any(self._batches_of[executor] < _COLD_BATCHES for executor in there)
        self._batches_of.update(there)
        own = [task for task in tasks if task.last_stage]
        if cold or record.moved_shards or not own or any(task.ended_s is None for task in tasks):
            return None
        fed = [task for task in tasks if not task.last_stage]
        groups = record.routing.groups
        as_routed = len(own) == len(groups)
        task_shards = np.array([len(groups[t.index]) if as_routed else 0 for t in own], dtype=np.float64)
        shares = np.full(len(own), 1 / len(own))
        if as_routed and task_shards.any():
            of_shards = self._shares(record)
            shares = np.array([of_shards[list(groups[t.index])].sum() for t in own])
        return BatchSample(
            rows=record.rows_in,
            duration_s=record.finished_s - record.started_s + self._around_s,
            task_shards=task_shards,
            task_rows=record.rows_in * shares,
            task_s=np.array([t.run_s for t in own]),
            feeding_s=sum(t.run_s for t in fed),
            busiest_s=slots.busiest_s(fed) + slots.busiest_s(own),
            mean_s=sum(t.run_s for t in tasks) / max(1, slots.count),
        )

    @property
    def is_warm(self) -> bool:
        """Whether what batches cost has been learned from one."""
        return self._learned.batches > 0

    @property
    def service_time_s(self) -> float:
        """What one row more takes."""
        return self._learned.costs.row_s.value

    def allowed_rows(self, slots: int) -> float:
        """The rows of a batch that is as long as the objective allows; infinite while nothing is known of batches."""
        if not self.is_warm:
            return math.inf
        shards = self._operator.shards if self._operator.keyed else 0
        return self._learned.costs.rows_within(self._longest_batch_s, tasks=self._replicas, shards=shards, slots=max(1, slots))

    def batches(self, counts: OperatorCounts, load: float) -> OperatorBatches:
        """What batches cost, and what each replica of the last one had to do in the interval, of so many rows."""
        replicas = len(counts.replica_busy_s)
        busy_s = counts.replica_busy_s
        shares = busy_s / busy_s.sum() if busy_s.sum() > 0 else np.full(replicas, 1 / replicas)
        served = np.zeros(replicas)
        routes = self._routes
        if self._operator.keyed and len(routes) == self._operator.shards and max(routes) < replicas:
            served = np.bincount(routes, minlength=replicas).astype(np.float64)
            shares = sum_by_replica(self._weights.shares, routes, replicas)
        return OperatorBatches(
            costs=self._learned.costs, longest_s=self._longest_batch_s, replica_rows=shares * load, replica_shards=served
        )

    def _add(self, counts: OperatorCounts, record: BatchRecord) -> None:
        counts.processed_rows += record.rows_in - record.rows_set_aside
        counts.dropped_rows += record.rows_set_aside
        counts.emitted_rows += record.rows_out
        counts.moved_shards += record.moved_shards
        counts.batches += 1
        counts.age_s += float((record.ingested.ages_s(record.finished_s) * record.ingested.rows).sum())
        self._routes = record.routing.allocation.shard_replicas
        counts.read_rows += record.rows_in
        self._weights = self._weights.then(record.rows_in * self._shares(record), record.finished_s)

    def _shares(self, record: BatchRecord) -> FloatArray:
        """Each shard's share of the rows of a batch, by what the shuffle sent to it; as of late if that is not known."""
        sent = record.shard_bytes
        return self._weights.shares if sent is None or sent.sum() <= 0 else np.asarray(sent / sent.sum())

    def _share_time(
        self, counts: OperatorCounts, routing: BatchRouting, tasks: Sequence[Task], span_s: tuple[float, float]
    ) -> None:
        """A batch's time within the interval, by replica."""
        replicas = len(counts.replica_busy_s)
        own = [t for t in tasks if t.last_stage]
        whole = all(t.ended_s is not None for t in tasks)  # else the other replicas' tasks may still come
        placed = len(own) == len(routing.task_replicas) or (not whole and len(own) < len(routing.task_replicas))
        shared_s = sum(t.busy_between(*span_s) for t in tasks if not (t.last_stage and placed))
        counts.replica_busy_s += shared_s / replicas
        for task in own if placed else ():
            replica = routing.task_replicas[task.index]
            if replica < replicas:
                counts.replica_busy_s[replica] += task.busy_between(*span_s)

    def loads(self, counts: OperatorCounts, backlog_rows: float) -> ShardLoads:
        """Per shard for a keyed operator, per replica for any other."""
        if self._operator.keyed:
            costs, rows = self._learned.costs, counts.read_rows * self._weights.shares
            return ShardLoads(
                rows=rows,
                busy_s=costs.shard_s.value * counts.batches + costs.row_s.value * rows,
                backlog_rows=backlog_rows * self._weights.shares,
                state_bytes=self._state_bytes.copy(),
            )
        replicas = len(counts.replica_busy_s)
        busy = counts.replica_busy_s
        shares = busy / busy.sum() if busy.sum() > 0 else np.full(replicas, 1 / replicas)
        return ShardLoads(
            rows=counts.processed_rows * shares,
            busy_s=busy.copy(),
            backlog_rows=backlog_rows * shares,
            state_bytes=np.zeros(replicas),
        )

    def sample_state(self) -> None:
        """Look at the size of one more shard."""
        if not self._query.plan.head.stateful:
            return
        shard = self._sampled % self._operator.shards
        self._sampled += 1
        filesystem, path = self._query.checkpoint.path(f"state/0/{shard}")
        files = filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True, recursive=True))
        size = float(sum(info.size or 0 for info in files))
        if self._sampled <= self._operator.shards:  # until each has been seen once, the others are taken to be alike
            self._state_bytes[shard:] = size
        self._state_bytes[shard] = size

    # --- backlog ------------------------------------------------------------------------------------------------

    def backlog(self, now_s: float) -> tuple[dict[str, float], list[str]]:
        """Rows that wait at each input, those of the batch that runs among them, and the inputs that do not say."""
        waiting: dict[str, float] = {}
        silent: list[str] = []
        for name, log in self._query.wiring.upstream.items():
            waiting[name] = float(log.rows_between(self._query.consumed(name), log.last))
        now = self._query.now
        offsets, asked_s = offsets_at_end(self._query.progress()) if now is None else (now.offsets, now.started_s)
        self.sources.read(offsets, asked_s)
        for name, rows in self.sources.count(offsets, now_s, idle=self._idle(now_s)).items():
            waiting[name] = 0.0 if rows is None else rows
            if rows is None:
                silent.append(name)
        return waiting, silent

    def take_arrived_rows(self) -> float | None:
        """Rows that its sources have offered between the last two looks at the backlog; None where they do not say, or edges
        bring rows too."""
        arrived = self.sources.take_arrived()
        return None if self._query.wiring.upstream else arrived

    def likely_rows(self, now_s: float, seconds: float) -> float | None:
        """What its sources bring in so many seconds by what they said last; None if they say nothing, or nothing comes."""
        rates = self.sources.rates_per_s.values()
        if not rates or self._query.wiring.upstream or self._idle(now_s) or min(rates) <= 0:
            return None
        return sum(rates) * seconds

    def _idle(self, now_s: float) -> bool:
        return self._query.is_idle(now_s, _NOTHING_COMES_S)


def _around_s(progress: Mapping[str, Any] | None, before_s: float) -> float:
    """What the last batch took beside its function: planning it, and writing down that it is done."""
    durations = {} if progress is None else progress["durationMs"]
    if "addBatch" not in durations:
        return before_s
    around_s = float(durations["triggerExecution"] - durations["addBatch"]) / 1000
    return max(0.0, around_s if before_s == 0.0 else before_s + 0.2 * (around_s - before_s))
