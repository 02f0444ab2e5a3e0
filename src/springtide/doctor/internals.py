"""Whether this Spark does what Springtide asks of its internals, tried with a small stateful query on two real executors.

What Spark has no public API for may change with any version (see `backends.spark.jvm`). So each such thing is used here as a
run uses it, one in each batch, and what came of it is looked at; at the end every sum of the query must be exact. A thing that
fails is a finding, and the batch is run without it, so that the others can still be tried.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from springtide.backends.spark.cluster.embedded import SETTINGS, session
from springtide.backends.spark.files import Folder
from springtide.backends.spark.jvm.executors import Executor, cordon, executors, kill, request_total
from springtide.backends.spark.jvm.running import checkpoint_root, counted, nodes_with_state, source_offsets, state_root
from springtide.backends.spark.jvm.scala import jvm_of
from springtide.backends.spark.jvm.state_places import move, state_stores
from springtide.backends.spark.jvm.status import Task, tasks_by_tag
from springtide.backends.spark.jvm.tasks import arranged, place_of, shuffled_bytes
from springtide.backends.spark.repartitioning import kept_partitions, last_committed, repartition
from springtide.backends.spark.warming import warm_up
from springtide.doctor.finding import Finding, first_line, ok, problem, warning
from springtide.errors import SpringtideError
from springtide.model.application import KeyDistribution
from springtide.workload.replay import replay, replayed, waiting_replays

SHARDS, EXECUTORS = 4, 2
ROWS_A_BATCH, BATCHES = 200, 6
_TRACE = f"generator:steps:levels={ROWS_A_BATCH},hold_s={BATCHES}"
_KEYS = KeyDistribution(keys=60, zipf=0.9)
_PATIENCE_S = 240.0  # of a machine that has other things to do
_COUNTED = "springtide_doctor"
_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_STORE = "spark.sql.streaming.stateStore.providerClass"


class Unlike(Exception):
    """Something was done without an error, and did not come out as it must."""


def tried(memory_mb: int = 600) -> list[Finding]:
    """Start Spark, try everything, and stop it: in half a minute to a minute."""
    findings: list[Finding] = []
    began_s = time.monotonic()
    try:
        with _scratch_session(memory_mb) as (spark, scratch):
            _wait(lambda: len(executors(spark.sparkContext)) == EXECUTORS, f"{EXECUTORS} executors are there")
            findings.append(
                ok("Spark", f"{EXECUTORS} executors in {time.monotonic() - began_s:.0f} s", needed_for="every live run")
            )
            findings += _Trial(spark, scratch).findings()
    except SpringtideError:
        raise
    except Exception as error:  # whatever Spark may raise, it is a finding
        findings.append(
            problem(
                "Spark",
                first_line(error),
                "see Java, memory and ports above, and Spark's own lines",
                needed_for="every live run",
            )
        )
    return findings


@contextmanager
def _scratch_session(memory_mb: int) -> Iterator[tuple[SparkSession, Path]]:
    """A session whose every file is gone with it."""
    with tempfile.TemporaryDirectory(prefix="springtide-doctor-", ignore_cleanup_errors=True) as folder:
        scratch = Path(folder)
        settings = {
            "spark.local.dir": str(scratch / "local"),
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            "spark.sql.shuffle.partitions": str(SHARDS),
        }
        with session("springtide-doctor", executors=EXECUTORS, memory_mb=memory_mb, settings=settings) as spark:
            yield spark, scratch


@dataclass
class _Trial:
    """One query of a few batches. In each batch something is done that a run does; `_found` has what came of it."""

    spark: SparkSession
    scratch: Path
    _found: list[Finding] = field(default_factory=list)
    _said: dict[int, tuple[int, int]] = field(default_factory=dict)  # by key: rows and their sum
    _query: StreamingQuery | None = None
    _started: threading.Event = field(default_factory=threading.Event)

    def findings(self) -> list[Finding]:
        self._classes()
        try:
            self._run()
            self._answer()
        except Exception as error:
            self._found.append(
                problem(
                    "query",
                    first_line(error),
                    "this Spark cannot be used: take a version that is known",
                    needed_for="every run",
                )
            )
        else:
            self._after()
        return self._found

    # --- the query -----------------------------------------------------------------------------------------------

    @property
    def checkpoint(self) -> Path:
        return self.scratch / "checkpoint"

    def _run(self) -> None:
        with waiting_replays(max_rows_per_batch=ROWS_A_BATCH):
            rows = replay(self.spark, _TRACE, keys=_KEYS)
        sums = _sums(rows.observe(_COUNTED, F.count(F.lit(1)).alias("rows")))
        self._try("plans", "telling operators with state from others", lambda: _plan(sums))
        writer = sums.writeStream.outputMode("update").option("checkpointLocation", str(self.checkpoint))
        query = writer.foreachBatch(self._batch).start()
        self._query = query
        self._started.set()
        try:
            # A batch that Spark has not committed yet keeps it from partitioning the state anew.
            _wait(lambda: self._committed() >= BATCHES or not query.isActive, f"{BATCHES} batches are committed")
            if not query.isActive:
                raise query.exception() or Unlike("the query has ended by itself")
        finally:
            query.stop()

    def _committed(self) -> int:
        """How many batches Spark has committed: it does so after `_batch` has returned."""
        return last_committed(Folder(str(self.checkpoint))) + 1

    def _batch(self, df: DataFrame, batch_id: int) -> None:
        _wait(self._started.is_set, "the query has started")
        for row in self._batch_rows(df, batch_id):
            self._said[row["key"]] = (row["rows"], row["sum"])

    def _batch_rows(self, df: DataFrame, batch_id: int) -> list[Row]:
        """The batch's rows, run as its turn wants it; as Spark would, if that fails."""
        kept: list[Row] = []
        for check, needed_for, turn in self._turns(df, batch_id):
            self._try(check, needed_for, lambda turn=turn: turn(kept))  # type: ignore[misc]
        return kept or df.collect()

    def _turns(self, df: DataFrame, batch_id: int) -> list[tuple[str, str, Callable[[list[Row]], str]]]:
        """What is tried in a batch, and what would not work without it. Each turn may leave the batch's rows in the list."""
        match batch_id:
            case 0:
                return [
                    ("tasks", "measuring how busy replicas and hosts are", lambda kept: self._status(df, kept)),
                    ("counts", "counting the rows that come, and rates", lambda _: self._counts()),
                    ("offsets", "backlog and latency", lambda _: self._offsets()),
                    ("shuffles", "the load of each shard", lambda _: _shuffles(df)),
                ]
            case 1:
                return [("replicas", "changing replicas without a restart", lambda kept: self._regrouped(df, kept))]
            case 2:
                return [("places", "running replicas on chosen hosts", lambda kept: self._placed(df, kept))]
            case 3:
                return [("shards", "moving state between hosts without a restart", lambda kept: self._moved(df, kept))]
            case 4:
                return [
                    ("releasing", "draining a host before it goes", lambda _: self._cordoned()),
                    ("executors", "adding and releasing hosts", lambda _: self._replaced()),
                    ("warming", "giving new hosts work only when they are ready", lambda _: self._warmed()),
                ]
        return []

    def _try(self, check: str, needed_for: str, attempt: Callable[[], str]) -> None:
        try:
            self._found.append(ok(check, attempt(), needed_for=needed_for))
        except Exception as error:  # a Spark that behaves otherwise may raise anything
            self._found.append(problem(check, first_line(error), _ADVICE, needed_for=needed_for))

    # --- what is tried -------------------------------------------------------------------------------------------

    def _classes(self) -> None:
        for check, setting, needed_for in (
            ("checkpoint files", _MANAGER, "short batches: Spark's default starts a process for each file"),
            ("state store", _STORE, "state that is larger than memory, and quick moves"),
        ):
            self._try(check, needed_for, lambda setting=setting: _loaded(self.spark, SETTINGS[setting]))  # type: ignore[misc]

    def _status(self, df: DataFrame, kept: list[Row]) -> str:
        tasks = self._tasks_of(lambda: kept.extend(df.collect()), SHARDS)
        return f"{SHARDS} shards ran as {len(tasks)} tasks, and the status store has their times"

    def _counts(self) -> str:
        counts = counted(self._running, _COUNTED)
        if not counts or counts["rows"] != ROWS_A_BATCH:
            raise Unlike(f"a batch of {ROWS_A_BATCH} rows was counted as {counts}")
        return f"{ROWS_A_BATCH} rows were counted on their way"

    def _offsets(self) -> str:
        (found,) = source_offsets(self._running)
        if found[1] is None:
            raise Unlike("the source's offsets are not known while a batch runs")
        return "the source's offsets are known while a batch runs"

    def _regrouped(self, df: DataFrame, kept: list[Row]) -> str:
        groups = [[0, 3], [1, 2]]
        self._tasks_of(lambda: kept.extend(arranged(df, groups, None).collect()), len(groups))
        return f"{SHARDS} shards ran as {len(groups)} tasks"

    def _placed(self, df: DataFrame, kept: list[Row]) -> str:
        executor = self._executors()[-1]
        places = [place_of(executor.host, executor.id)] * 2
        tasks = self._tasks_of(lambda: kept.extend(arranged(df, [[0, 1], [2, 3]], places).collect()), 2)
        _all_on(executor, tasks)
        return f"both tasks ran on executor {executor.id}, as was asked for"

    def _moved(self, df: DataFrame, kept: list[Row]) -> str:
        stores = state_stores(Folder(checkpoint_root(self._running)), state_root(self._running), str(self._running.runId))
        if not stores.names:
            raise Unlike("the checkpoint does not say which state stores there are")
        executor = self._executors()[0]
        move(self.spark, stores, range(SHARDS), executor)
        tasks = self._tasks_of(lambda: kept.extend(df.collect()), SHARDS)
        _all_on(executor, tasks)
        return f"all {SHARDS} shards moved to executor {executor.id}"

    def _cordoned(self) -> str:
        executor = self._executors()[0]
        cordon(self.spark.sparkContext, executor.id)
        tasks = self._tasks_of(lambda: self.spark.range(8, numPartitions=8).write.format("noop").mode("overwrite").save(), 8)
        if any(task.executor == executor.id for task in tasks):
            raise Unlike(f"executor {executor.id} was given tasks after it was to get none")
        return f"executor {executor.id} got no more tasks, and stayed"

    def _replaced(self) -> str:
        """Let the first executor go, for good, and ask for another: the next batch loads the state that it held."""
        context, gone = self.spark.sparkContext, self._executors()[0].id
        if not kill(context, [gone]):
            raise Unlike("killExecutors was refused")
        _wait(lambda: gone not in executors(context), f"executor {gone} has gone")
        if not request_total(context, EXECUTORS):
            raise Unlike("requestTotalExecutors was refused")
        _wait(lambda: len(executors(context)) == EXECUTORS, "another executor has come")
        return f"executor {gone} went, and {self._executors()[-1].id} came"

    def _warmed(self) -> str:
        newest = self._executors()[-1]
        warm_up(self.spark, newest)
        return f"executor {newest.id} has run a job of its own"

    def _answer(self) -> None:
        rows = replayed(self.spark, _TRACE, keys=_KEYS)
        exact = {row["key"]: (row["rows"], row["sum"]) for row in _sums(rows).collect()}

        def compare() -> str:
            wrong = sum(self._said.get(key) != sums for key, sums in exact.items()) + len(self._said.keys() - exact.keys())
            if wrong:
                raise Unlike(f"{wrong} of {len(exact)} sums are wrong after these changes")
            return f"{BATCHES * ROWS_A_BATCH:,} rows in {BATCHES} batches, and all {len(exact)} sums are exact"

        self._try("state", "losing no row and doubling none", compare)

    def _after(self) -> None:
        self._try("changelogs", "small checkpoints, and quick moves", self._changelogs)
        try:
            self._found.append(ok("resharding", self._repartitioned(), needed_for=_RESHARDING))
        except Exception as error:
            self._found.append(
                warning(
                    "resharding", first_line(error), "all else works: choose the number of shards once", needed_for=_RESHARDING
                )
            )

    def _changelogs(self) -> str:
        written = sum(1 for _ in (self.checkpoint / "state").rglob("*.changelog"))
        if not written:
            raise Unlike("no changelog is in the checkpoint")
        return f"{written} are in the checkpoint"

    def _repartitioned(self) -> str:
        folder = Folder(str(self.checkpoint))
        repartition(self.spark, folder, SHARDS // 2)
        if kept_partitions(folder) != SHARDS // 2:
            raise Unlike(f"the state still has {kept_partitions(folder)} partitions")
        return f"{SHARDS} shards became {SHARDS // 2}"

    # --- what it is told by --------------------------------------------------------------------------------------

    @property
    def _running(self) -> StreamingQuery:
        assert self._query is not None
        return self._query

    def _executors(self) -> list[Executor]:
        """The oldest first."""
        return sorted(executors(self.spark.sparkContext).values(), key=lambda e: int(e.id))

    def _tasks_of(self, job: Callable[[], Any], expected: int) -> list[Task]:
        """The tasks of a job's last stage, of which there must be so many, once the status store has heard of their end."""
        context, tag = self.spark.sparkContext, f"springtide-doctor:{time.monotonic_ns()}"
        context.addJobTag(tag)
        try:
            job()
        finally:
            context.removeJobTag(tag)

        def ended() -> list[Task]:
            return [t for t in tasks_by_tag(context, [tag])[tag] if t.last_stage and t.ended_s is not None]

        _wait(lambda: len(ended()) >= expected, f"the status store has {expected} tasks of a job that ran", within_s=20.0)
        if len(ended()) != expected:
            raise Unlike(f"{len(ended())} tasks ran in the place of {expected}")
        return ended()


_ADVICE = "this Spark behaves differently: take a version that is known (`springtide doctor --quick` names them)"
_RESHARDING = "`springtide reshard`, and the baseline `--scaling resource-centric`"


def _sums(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").agg(F.count("*").alias("rows"), F.sum("value").alias("sum"))


def _plan(sums: DataFrame) -> str:
    found = nodes_with_state(sums)
    if found != ["Aggregate"]:
        raise Unlike(f"an aggregation was taken for {found}")
    return "an aggregation is seen to keep state"


def _shuffles(df: DataFrame) -> str:
    sizes = shuffled_bytes(df)
    if sizes is None or len(sizes) != SHARDS or not sum(sizes):
        raise Unlike(f"a shuffle to {SHARDS} shards was told as {sizes}")
    return f"a shuffle sent {sum(sizes):,} bytes to {SHARDS} shards"


def _loaded(spark: SparkSession, name: str) -> str:
    jvm = jvm_of(spark.sparkContext)
    jvm.java.lang.Class.forName(name, True, jvm.java.lang.Thread.currentThread().getContextClassLoader())
    return name.rpartition(".")[2]


def _all_on(executor: Executor, tasks: list[Task]) -> None:
    elsewhere = sorted({task.executor for task in tasks if task.executor != executor.id})
    if elsewhere:
        raise Unlike(f"tasks that belonged on executor {executor.id} ran on {', '.join(elsewhere)}")


def _wait(condition: Callable[[], bool], what: str, *, within_s: float = _PATIENCE_S) -> None:
    deadline_s = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise Unlike(f"waited {within_s:.0f} s in vain until {what}")
        time.sleep(0.05)
