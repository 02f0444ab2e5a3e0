"""From what queries recorded and Spark's status store knows to the counts of an interval.

Cost: one look at the status store for each batch of the interval, none for batches before it. What each number is:

* rows: from the edges' own entries, or counted on the way from a source;
* busy time: the run time of tasks; what a replica's own task took is the replica's, what was read for it is shared by all;
* a shard's part in a task's time, and its rows: by the bytes that the shuffle sent to it;
* state: the size of one shard's files in the checkpoint, another shard each time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pyarrow import fs

from springtide.backends.spark.jvm.status import Task
from springtide.backends.spark.offsets import is_edge, rows_reached
from springtide.backends.spark.query import BatchRecord, OperatorQuery
from springtide.model.application import Operator
from springtide.model.observation import FloatArray, ShardLoads


@dataclass(kw_only=True, eq=False)
class OperatorCounts:
    """One operator over one interval, while it is counted."""

    processed_rows: float = 0.0
    emitted_rows: float = 0.0
    dropped_rows: float = 0.0
    age_s: float = 0.0
    busy_s: float = 0.0
    replica_busy_s: FloatArray
    shard_busy_s: FloatArray
    shard_rows: FloatArray
    moved_shards: int = 0


class OperatorMeter:
    """Measures one operator's query, interval after interval."""

    def __init__(self, operator: Operator, query: OperatorQuery, replicas: int) -> None:
        self._operator, self._query = operator, query
        self._replicas = replicas  # of the last batch, or those to begin with
        self._shares = np.full(operator.shards, 1 / operator.shards)
        self._state_bytes = np.zeros(operator.shards)
        self._sampled = 0
        self.last_tasks: list[Task] = []  # those that were the replicas of the last batch

    def count(
        self, records: Sequence[BatchRecord], tasks: Mapping[str, Sequence[Task]], host_busy_s: dict[str, float]
    ) -> OperatorCounts:
        """Add up the batches that ended in an interval; every executor's busy time goes to `host_busy_s`."""
        if records:
            self._replicas = records[-1].routing.allocation.replicas
        replicas = self._replicas
        shards = self._operator.shards
        counts = OperatorCounts(replica_busy_s=np.zeros(replicas), shard_busy_s=np.zeros(shards), shard_rows=np.zeros(shards))
        for record in records:
            self._add(counts, record, tasks[record.tag], host_busy_s)
            self.last_tasks = [t for t in tasks[record.tag] if t.last_stage]
        return counts

    def _add(self, counts: OperatorCounts, record: BatchRecord, tasks: Sequence[Task], host_busy_s: dict[str, float]) -> None:
        counts.processed_rows += record.rows_in - record.rows_set_aside
        counts.dropped_rows += record.rows_set_aside
        counts.emitted_rows += record.rows_out
        counts.moved_shards += record.moved_shards
        counts.age_s += float((record.ingested.ages_s(record.finished_s) * record.ingested.rows).sum())
        for task in tasks:
            counts.busy_s += task.run_s
            host_busy_s[task.executor] = host_busy_s.get(task.executor, 0.0) + task.run_s
        shares = self._shard_shares(record)
        counts.shard_rows += record.rows_in * shares
        self._share_time(counts, record, tasks, shares)

    def _shard_shares(self, record: BatchRecord) -> FloatArray:
        if record.shard_bytes is not None and record.shard_bytes.sum() > 0:
            self._shares = record.shard_bytes / record.shard_bytes.sum()
        return self._shares

    def _share_time(self, counts: OperatorCounts, record: BatchRecord, tasks: Sequence[Task], shares: FloatArray) -> None:
        """Time of a batch by replica, and by shard."""
        routing, replicas = record.routing, len(counts.replica_busy_s)
        own = [t for t in tasks if t.last_stage]
        placed = len(own) == len(routing.task_replicas)
        shared_s = sum(t.run_s for t in tasks if not (t.last_stage and placed))
        counts.replica_busy_s += shared_s / replicas
        counts.shard_busy_s += shared_s * shares
        for task in own if placed else ():
            replica = routing.task_replicas[task.index]
            if replica < replicas:
                counts.replica_busy_s[replica] += task.run_s
            group = list(routing.groups[task.index])
            if group:
                part = shares[group]
                counts.shard_busy_s[group] += task.run_s * (part / part.sum() if part.sum() > 0 else 1 / len(group))

    def loads(self, counts: OperatorCounts, backlog_rows: float) -> ShardLoads:
        """Per shard for a keyed operator, per replica for any other."""
        if self._operator.keyed:
            return ShardLoads(
                rows=counts.shard_rows,
                busy_s=counts.shard_busy_s,
                backlog_rows=backlog_rows * self._shares,
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

    def backlog(self) -> tuple[dict[str, float], list[str]]:
        """Rows that wait at each input, and the inputs that do not say."""
        waiting: dict[str, float] = {}
        silent: list[str] = []
        for name, log in self._query.wiring.upstream.items():
            waiting[name] = float(log.rows_between(self._query.consumed(name), log.last))
        if self._query.wiring.source_names:
            lags = _source_lags(self._query.progress())  # nothing before the first batch
            for name, lag in zip(self._query.wiring.source_names, lags, strict=False):
                if lag is None:
                    silent.append(name)
                waiting[name] = lag or 0.0
        return waiting, silent


def _source_lags(progress: Mapping[str, object] | None) -> list[float | None]:
    """Rows between what is there and what was read, for each source that is not an edge; None where offsets do not
    count rows.
    """
    found: list[float | None] = []
    sources = [] if progress is None else progress["sources"]
    for source in sources:  # type: ignore[attr-defined]
        end, latest = (json.loads(text) if text else None for text in (source.endOffset, source.latestOffset))
        if is_edge(end):
            continue
        reached, offered = rows_reached(end), rows_reached(latest)
        found.append(None if reached is None or offered is None else max(0.0, offered - reached))
    return found
