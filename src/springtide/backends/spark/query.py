"""One operator as a running Structured Streaming query that follows a routing.

Every micro-batch asks what routing is in force, moves the shards that should live elsewhere, and runs the operator's plan as
that many tasks in those places. Nothing else changes while the query runs, so a change costs no restart and takes effect with
the next batch.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyspark.sql.functions as F
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

from springtide.backends.spark.application import OnError, Save
from springtide.backends.spark.counting import counts_name, ingested
from springtide.backends.spark.dead_letters import isolate, reason, set_aside
from springtide.backends.spark.edges.log import EdgeLog, WrittenFile
from springtide.backends.spark.edges.writing import write_files
from springtide.backends.spark.files import Folder
from springtide.backends.spark.fusion import QueryPlan
from springtide.backends.spark.hosts import Fleet
from springtide.backends.spark.jvm.executors import Executor
from springtide.backends.spark.jvm.running import (
    checkpoint_root,
    counted,
    counted_by,
    limit_rows,
    read_limits,
    source_offsets,
    state_root,
    trigger_interval_s,
)
from springtide.backends.spark.jvm.scala import JavaObject
from springtide.backends.spark.jvm.state_places import StateStores, move, state_stores
from springtide.backends.spark.jvm.tasks import partition_count, shuffled_bytes
from springtide.backends.spark.offsets import Offsets, batch_offsets, edge_entries
from springtide.backends.spark.pacing import Pacing
from springtide.backends.spark.placing import placed, spread_out
from springtide.backends.spark.repartitioning import note_unstarted
from springtide.backends.spark.routing import BatchRouting, balanced_shares, batch_routing, in_force, uneven
from springtide.model.allocation import OperatorAllocation
from springtide.model.application import Grouping
from springtide.model.observation import FloatArray
from springtide.monitor.ingest_times import IngestTimes, at_once, joined, nobody

_LOG = logging.getLogger(__name__)
_KEPT_RECORDS = 10_000
_SOURCES_WITHIN_S = 30.0
_COMMIT_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchRecord:
    """What one batch did, as the driver saw it."""

    batch_id: int
    tag: str
    started_s: float
    finished_s: float
    rows_in: float
    rows_out: float
    rows_set_aside: int
    ingested: IngestTimes
    routing: BatchRouting
    shard_bytes: FloatArray | None
    moved_shards: int


@dataclass(frozen=True, slots=True, eq=False)
class TimedBatch:
    """A batch that may have taken time of an interval, whether it is over or not.

    `offsets`, where they were looked up: for each source, where the batch began, and what the source had then.
    """

    tag: str
    routing: BatchRouting
    started_s: float
    offsets: Offsets = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Wiring:
    """What a query is connected to. `inputs` are its streaming DataFrames in the order of the operator's arguments.

    `writer` is there for a plan that somebody else has made, with all that goes with it: its checkpoint is the writer's,
    and its rows are counted by Spark, in its own account of the batch, and not on their way into the plan.
    """

    inputs: tuple[DataFrame, ...]
    upstream: Mapping[str, EdgeLog]
    source_names: tuple[str, ...]
    log: EdgeLog | None
    own_readers: tuple[str, ...]
    sinks: tuple[Save, ...]
    checkpoint: Folder | None
    dead_letters: Folder | None
    trigger_s: float
    writer: DataStreamWriter | None = None


class Stopping(Exception):
    """Raised in a batch that would begin while its query is being stopped; Spark runs it again at the next start."""


@dataclass
class _Work:
    """What a batch needs while it runs."""

    batch_id: int
    tag: str
    routing: BatchRouting
    started_s: float
    moved: int = 0
    set_aside: int = 0
    files: Sequence[WrittenFile] = ()
    emitted: Observation = field(default_factory=Observation)


class OperatorQuery:
    """Runs one query plan. `request` may be called at any time; the next batch follows it."""

    def __init__(
        self, spark: SparkSession, plan: QueryPlan, wiring: Wiring, fleet: Fleet, allocation: OperatorAllocation
    ) -> None:
        self.plan, self.wiring = plan, wiring
        self._spark, self._fleet = spark, fleet
        self._requested = allocation
        self._applied: OperatorAllocation | None = None
        self._lock = threading.Lock()
        self._batch = threading.Lock()  # held while a batch runs
        self._stopping = False
        self._stores: StateStores | None = None
        self._shard_places: dict[int, str] = {}  # executor id, as far as it is known
        self._levels: FloatArray = np.zeros(0)  # how utilised each replica was, for load-balanced grouping
        self._load_per_row = 0.0
        self._whole = False  # whether the last batch left rows in the partitions that they were read in
        self._uneven_with = 0  # replicas among which that made some busier than others
        self._last_rows = 0.0
        self._records: deque[BatchRecord] = deque(maxlen=_KEPT_RECORDS)
        self._now: TimedBatch | None = None  # the batch that runs
        self._over_s = 0.0  # when the last one was over
        self._ended = 0  # batches that have ended, in this run of the query
        self._began = 0
        self._last_begun = -1
        self._consumed: dict[str, int] = {}
        self._allowed_rows = math.inf  # of a batch that is as long as the objective allows
        self._own_limits: JavaObject | None = None  # that the query began with
        self._limited_to: int | None = None
        self._can_limit = True
        self._query: StreamingQuery | None = None
        self.pacing = Pacing(wiring.trigger_s)
        self.failure: str | None = None
        self.told_of_offsets: Callable[[Offsets, float], object] = lambda *_: None

    # --- life ---------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def runs_in_batch(self) -> bool:
        """An operator without state and with one input is applied to each batch's rows, so that they can be grouped anew
        for every batch; any other is part of the streaming plan."""
        return not self.plan.head.stateful and len(self.plan.head.inputs) == 1 and self.wiring.writer is None

    def output(self, *inputs: DataFrame) -> DataFrame:
        df = self.plan.head.function(*inputs)
        for node in self.plan.chain[1:]:
            df = node.function(df)
        return df

    @cached_property
    def schema(self) -> StructType:
        return self.output(*self.wiring.inputs).schema

    def start(self) -> None:
        writer = self._writer().foreachBatch(self._run)
        with _shuffle_partitions(self._spark, self.partitions):
            self._query = writer.start()
        self._await_sources()
        self.pacing.begin()
        if self.wiring.writer is not None:
            interval_s = trigger_interval_s(self._query)
            self.pacing.limit_to(interval_s or 0.0, 0.0 if interval_s is None else math.inf)

    def _await_sources(self) -> None:
        """Each source starts a Python process, and Spark gives up on one after 10 s: they are started one after the other."""
        assert self._query is not None
        deadline = time.monotonic() + _SOURCES_WITHIN_S
        while self._query.isActive and "Initializing" in self._query.status["message"] and time.monotonic() < deadline:
            time.sleep(0.02)

    def _writer(self) -> DataStreamWriter:
        wiring = self.wiring
        if wiring.writer is not None:
            return wiring.writer
        plan = wiring.inputs[0] if self.runs_in_batch else self.output(*wiring.inputs)
        writer = plan.writeStream.queryName(self.name).option("checkpointLocation", self.checkpoint.uri)
        writer = writer.trigger(processingTime=f"{max(0, round(wiring.trigger_s * 1000))} milliseconds")
        return writer if self.runs_in_batch else writer.outputMode(self.plan.head.output_mode)

    @property
    def checkpoint(self) -> Folder:
        """Where Spark keeps what the query has reached; a query of somebody else's has one once it is started."""
        if self.wiring.checkpoint is not None:
            return self.wiring.checkpoint
        assert self._query is not None
        return Folder(checkpoint_root(self._query))

    @property
    def partitions(self) -> int:
        """State partitions of the query's plan; 0 for one without state."""
        return self.plan.head.shards if self.plan.head.stateful else 0

    def stop(self) -> None:
        """Stop between two batches: the batch that runs is finished first."""
        self._stopping = True
        self.pacing.end()
        with self._batch:
            if self._query is not None:
                self._await_commit()
                self._query.stop()
                note_unstarted(self.checkpoint, self._last_begun)

    def _await_commit(self) -> None:
        """A stop interrupts whatever Spark does: let it write down first that the last batch is done."""
        deadline = time.monotonic() + _COMMIT_WITHIN_S
        while self._last_begun >= 0 and self.active and time.monotonic() < deadline:
            if self.checkpoint.read_text(f"commits/{self._last_begun}") is not None:
                return
            time.sleep(0.02)

    @property
    def active(self) -> bool:
        return self._query is not None and bool(self._query.isActive)

    def check_failed(self) -> str | None:
        """Why the query has stopped by itself, if it has."""
        if self.failure is None and self._query is not None and not self._stopping and not self._query.isActive:
            error = self._query.exception()
            self.failure = "it ended" if error is None else reason(error)
        return self.failure

    def progress(self) -> Mapping[str, Any] | None:
        """Spark's own account of the last batch."""
        return None if self._query is None else self._query.lastProgress

    # --- routing ------------------------------------------------------------------------------------------------

    def request(self, allocation: OperatorAllocation) -> None:
        with self._lock:
            self._requested = allocation

    @property
    def applied(self) -> OperatorAllocation | None:
        """What the last batch followed."""
        return self._applied

    def needs(self, host: str) -> bool:
        """Whether the batch that runs uses a host, or the next one would."""
        with self._lock:
            followed = self._applied if self._began > self._ended else None
            coming = in_force(self._requested, self._applied, self._fleet.awaited())
            return any(host in placed.replica_hosts for placed in (followed, coming) if placed is not None)

    def balance(self, utilisation: FloatArray, load_per_row: float) -> None:
        """How busy the replicas are, and how much of one replica's time a row of a second's worth takes."""
        with self._lock:
            self._levels, self._load_per_row = utilisation, load_per_row
            if self._whole and uneven(utilisation):
                self._uneven_with = len(utilisation)

    def allow_rows(self, rows: float) -> None:
        """How many rows a batch may have that is as long as the objective allows, on the hosts there are."""
        with self._lock:
            self._allowed_rows = rows

    def _limit_next_batch(self) -> None:
        """Let the next batch take no more rows than it can process within the objective while hosts are on their way.

        The longer rows wait, the longer a batch is, and hosts that come are not used before it is over. So batches are kept
        short until they have come. Without any on their way, long batches are the ones that do most.
        """
        if self._query is None or self.wiring.upstream or not self.wiring.source_names or not self._can_limit:
            return
        with self._lock:
            waits = bool(self._fleet.awaited().intersection(self._requested.replica_hosts))
            rows = max(1, int(self._allowed_rows)) if waits and math.isfinite(self._allowed_rows) else None
        if rows == self._limited_to:
            return
        try:
            if self._own_limits is None:
                self._own_limits = read_limits(self._query)
            limit_rows(self._spark.sparkContext, self._query, self._own_limits, rows)
        except Py4JError as error:  # another Spark: batches are as long as they are
            self._can_limit = False
            _LOG.warning("%s: batches cannot be limited while hosts start: %s", self.name, reason(error))
        self._limited_to = rows

    def saw_shards(self, batch_id: int, places: Mapping[int, str]) -> None:
        """Where shards were really served in a batch; what is seen of a batch before the last is old."""
        with self._lock:
            if batch_id >= self._last_begun:
                self._shard_places.update(places)

    def batches_begun(self) -> int:
        return self._began

    def passed(self, begun: int) -> bool:
        """Whether every batch that had begun at `begun` is over."""
        return self._ended >= begun or not self.active

    def take_downtime_s(self) -> float:
        """How long the query stood still for a change since the last call: it never does."""
        return 0.0

    def consumed(self, edge: str) -> int:
        """The entry of an edge up to which batches have read."""
        return self._consumed.get(edge, 0)

    @property
    def now(self) -> TimedBatch | None:
        """The batch that runs."""
        return self._now

    def is_idle(self, now_s: float, for_s: float) -> bool:
        """Whether a batch could have begun for so long, and has not, because there is nothing to read.

        Planning a batch takes long on a busy machine, so the time alone does not tell: Spark does.
        """
        if self._query is None or self._now is not None or now_s - self._over_s - self.pacing.trigger_s <= for_s:
            return False
        return not self._query.status["isDataAvailable"]

    def timed_batches(self) -> list[TimedBatch]:
        """Every batch that was not over, or not taken account of, at the last call of `take_records`."""
        now = self._now  # first: a batch that ends meanwhile is among the records then
        found = {r.tag: TimedBatch(r.tag, r.routing, r.started_s) for r in list(self._records)}
        if now is not None:
            found[now.tag] = now
        return list(found.values())

    def take_records(self) -> list[BatchRecord]:
        """What the batches since the last call did; one that Spark has not given account of yet waits for the next call."""
        rows = None if self.wiring.writer is None or self._query is None else _rows_by_batch(self._query)
        found = []
        while self._records and (rows is None or self._records[0].batch_id in rows):
            record = self._records.popleft()
            if rows is not None:
                count = rows[record.batch_id]
                record = replace(record, rows_in=count, ingested=at_once(record.started_s, count))
            found.append(record)
        return found

    # --- one batch ----------------------------------------------------------------------------------------------

    def _run(self, df: DataFrame, batch_id: int) -> None:
        began_s = time.time()
        self.pacing.batch_begins(began_s)
        with self._unless_stopping():
            self._began += 1
            self._last_begun = batch_id
            try:
                self._run_batch(df, batch_id)
            except Exception as error:
                self.failure = reason(error)
                raise
            finally:
                self._now, self._over_s = None, time.time()
                self._ended += 1
            self._limit_next_batch()
        self.pacing.delay_end(began_s)

    @contextmanager
    def _unless_stopping(self) -> Iterator[None]:
        """Hold the batch lock. A stop holds it while it waits for Spark, which waits for us: so we must not wait for it."""
        while not self._batch.acquire(timeout=0.05):
            if self._stopping:
                raise Stopping(self.name)
        try:
            if self._stopping:
                raise Stopping(self.name)
            yield
        finally:
            self._batch.release()

    def _run_batch(self, df: DataFrame, batch_id: int) -> None:
        spark, wiring = df.sparkSession, self.wiring
        before, after = self._read_before(batch_id), self._read_before(batch_id + 1)
        for edge, log in wiring.upstream.items():
            log.committed(self.name, before.get(edge, 0))
        work = _Work(batch_id, f"springtide:{self.name}:{batch_id}", self._next_routing(), time.time())
        if self.plan.head.stateful:
            work.moved = self._move_shards(work.routing)
        offsets = source_offsets(self._query) if wiring.source_names and self._query is not None else ()
        self._now = TimedBatch(work.tag, work.routing, work.started_s, offsets)
        self.told_of_offsets(offsets, work.started_s)
        context = spark.sparkContext
        context.addJobTag(work.tag)
        context.setLocalProperty("spark.scheduler.pool", self.name)
        try:
            rows_out = self._process(df, work)
        finally:
            context.removeJobTag(work.tag)
        finished_s = time.time()
        self._consumed = after
        rows_in, entered = self._input_of(before, after, work.started_s)
        if wiring.log is not None and not wiring.log.has(batch_id):
            wiring.log.publish(batch_id, work.files, entered)
            for reader in wiring.own_readers:
                wiring.log.committed(reader, wiring.log.last)
        self._records.append(
            BatchRecord(
                batch_id=batch_id,
                tag=work.tag,
                started_s=work.started_s,
                finished_s=finished_s,
                rows_in=rows_in,
                rows_out=rows_out,
                rows_set_aside=work.set_aside,
                ingested=entered,
                routing=work.routing,
                shard_bytes=self._shard_bytes(df),
                moved_shards=work.moved,
            )
        )

    def _read_before(self, batch_id: int) -> dict[str, int]:
        """By edge, the entry up to which the batches before this one have read."""
        return edge_entries(batch_offsets(self.checkpoint, batch_id - 1)) if self.wiring.upstream else {}

    def _next_routing(self) -> BatchRouting:
        if self._fleet.wanting():
            self._fleet.refresh()
        running = self._fleet.running()
        with self._lock:
            self._applied = in_force(self._requested, self._applied, self._fleet.awaited())
            return batch_routing(self._applied, running, stateful=self.plan.head.stateful)

    def _move_shards(self, routing: BatchRouting) -> int:
        """Tell Spark of the shards that are to live elsewhere; how many those are."""
        stores = self._state_stores()
        if stores is None:
            return 0
        with self._lock:
            known = dict(self._shard_places)
        wanted: dict[str, list[int]] = {}
        executors: dict[str, Executor] = {}
        for shard, executor in routing.shard_executors().items():
            if known.get(shard) != executor.id:
                wanted.setdefault(executor.id, []).append(shard)
                executors[executor.id] = executor
        for name, shards in wanted.items():
            move(self._spark, stores, shards, executors[name])
            self.saw_shards(self._last_begun, dict.fromkeys(shards, name))
        return sum(shard in known for shards in wanted.values() for shard in shards)

    def _state_stores(self) -> StateStores | None:
        """Known once the first batch has been run."""
        if self._stores is None and self._query is not None:
            found = state_stores(self.checkpoint, state_root(self._query), str(self._query.runId))
            if found.names:
                self._stores = found
        return self._stores

    def _process(self, df: DataFrame, work: _Work) -> float:
        """Run the batch and hand its rows on; how many those are."""
        wiring = self.wiring
        repeated = wiring.log is not None and wiring.log.has(work.batch_id)  # it was handed on before a crash
        if repeated and self.runs_in_batch:
            return 0.0
        rows = self._placed(df, work)
        if wiring.log is None:
            wiring.sinks[0](rows.observe(work.emitted, F.count(F.lit(1)).alias("rows")), work.batch_id)
            counts = counted_by(work.emitted)
            return 0.0 if counts is None else float(counts["rows"])
        if repeated:  # the state must still learn of it
            rows.write.format("noop").mode("overwrite").save()
            return 0.0
        data, folder = wiring.log.folder.folder("data"), wiring.log.attempt_folder(work.batch_id)
        try:
            work.files = write_files(rows, data, folder)
        except PySparkException:
            if self.plan.head.on_error is not OnError.DEAD_LETTER:
                raise
            work.files = write_files(self._without_poison(df, work), data, folder)
        for save in wiring.sinks:
            save(self._read_back(df.sparkSession, work.files), work.batch_id)
        return float(sum(f.rows for f in work.files))

    def _placed(self, df: DataFrame, work: _Work) -> DataFrame:
        """The batch's output, in the tasks and places of its routing."""
        if not self.runs_in_batch:
            return placed(df, work.routing, stateful=self.plan.head.stateful, spread=False)
        self._whole = self._may_stay(df, work.routing)
        if not self._whole:
            df = spread_out(df, self.plan.head, work.routing, self._shares(work.routing))
        return placed(self.output(df), work.routing, stateful=False, spread=not self._whole)

    def _may_stay(self, df: DataFrame, routing: BatchRouting) -> bool:
        """Whether rows may be processed where they are read, which saves a shuffle: each replica gets as many partitions, and
        has not been found busier than others by that."""
        replicas = routing.allocation.replicas
        if self.plan.head.grouping is not Grouping.SHUFFLE or replicas in (1, self._uneven_with):
            return False
        partitions = partition_count(df)
        return partitions > 0 and partitions % replicas == 0

    def _shares(self, routing: BatchRouting) -> FloatArray | None:
        if self.plan.head.grouping is not Grouping.LOAD_BALANCED:
            return None
        with self._lock:
            levels, load = self._levels, self._load_per_row * self._last_rows
        return balanced_shares(levels, load) if len(levels) == routing.allocation.replicas else None

    def _without_poison(self, df: DataFrame, work: _Work) -> DataFrame:
        """The batch without the rows that make the function fail, which are set aside."""
        good, poison = isolate(df.sparkSession, df.toArrow(), self.output)
        if not poison.reasons:
            return self._placed(df, work)  # no row fails by itself: whatever it was, it is for Spark to say
        assert self.wiring.dead_letters is not None
        set_aside(self.wiring.dead_letters, work.batch_id, poison)
        work.set_aside = len(poison.reasons)
        return self._placed(df.sparkSession.createDataFrame(good, df.schema), work)

    def _read_back(self, spark: SparkSession, files: Sequence[WrittenFile]) -> DataFrame:
        """The rows that were just written, so that what several readers get was computed once."""
        assert self.wiring.log is not None
        if not files:
            return spark.createDataFrame([], self.schema)
        data = self.wiring.log.folder.folder("data").uri
        return spark.read.schema(self.schema).parquet(*[f"{data}/{f.path}" for f in files])

    def _input_of(self, before: Mapping[str, int], after: Mapping[str, int], started_s: float) -> tuple[float, IngestTimes]:
        """How many rows the batch read, and when they had entered the application."""
        rows = 0.0
        times: list[IngestTimes] = []
        for edge, log in self.wiring.upstream.items():
            rows += log.rows_between(before.get(edge, 0), after.get(edge, 0))
            times.append(log.ingested_between(before.get(edge, 0), after.get(edge, 0)))
        for name in self.wiring.source_names if self.wiring.writer is None else ():
            counts = None if self._query is None else counted(self._query, counts_name(name))
            if counts and counts["rows"]:
                rows += counts["rows"]
                times.append(ingested(counts, started_s))
        self._last_rows = rows
        return rows, joined(times) if times else nobody()

    def _shard_bytes(self, df: DataFrame) -> FloatArray | None:
        sizes = shuffled_bytes(df) if self.plan.head.stateful else None
        return np.array(sizes, dtype=np.float64) if sizes is not None and len(sizes) == self.plan.head.shards else None


def _rows_by_batch(query: StreamingQuery) -> dict[int, float]:
    """Rows read by each of the last batches, of which Spark keeps a fixed number."""
    return {progress["batchId"]: float(progress["numInputRows"]) for progress in query.recentProgress}


@contextmanager
def _shuffle_partitions(spark: SparkSession, shards: int) -> Iterator[None]:
    """A query takes its number of state partitions from the session when it starts, and keeps it."""
    if not shards:
        yield
        return
    key = "spark.sql.shuffle.partitions"
    with _STARTING:
        before = spark.conf.get(key)
        spark.conf.set(key, str(shards))
        try:
            yield
        finally:
            spark.conf.set(key, str(before))


_STARTING = threading.Lock()
