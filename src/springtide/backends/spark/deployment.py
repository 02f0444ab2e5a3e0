"""An application's queries, wired together: its folder, its edges, what each query reads and writes.

<folder>/<query>/checkpoint/      Spark's
<folder>/<query>/edge/            what the query sends on
<folder>/<query>/dead-letters/    rows that were set aside
<folder>/<query>/operator.json    what must not change between two starts
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from springtide.backends.spark.application import Application, OnError, Save
from springtide.backends.spark.counting import counting
from springtide.backends.spark.edges.log import EdgeLog
from springtide.backends.spark.edges.source import read_edge
from springtide.backends.spark.files import Folder
from springtide.backends.spark.fusion import QueryPlan, fused
from springtide.backends.spark.hosts import Fleet
from springtide.backends.spark.jvm.running import nodes_with_state
from springtide.backends.spark.query import OperatorQuery, Wiring
from springtide.backends.spark.restarting import RestartingQuery
from springtide.backends.spark.scaling import Scaling
from springtide.errors import SpringtideError
from springtide.model.allocation import OperatorAllocation

KEPT = "operator.json"
_SINKS = "sinks"


@dataclass(frozen=True)
class Deployment:
    """Queries that run together, upstream first."""

    spark: SparkSession
    queries: Mapping[str, OperatorQuery]

    def start(self) -> None:
        for query in self.queries.values():
            query.start()

    def stop(self) -> None:
        """Stop every query between two batches, downstream last, so that what was sent on is still taken in."""
        context = self.spark.sparkContext
        context.setLogLevel("OFF")  # Spark logs a batch that is not begun because of the stop as an error
        try:
            for query in self.queries.values():
                with suppress(PySparkException):
                    query.stop()
        finally:
            context.setLogLevel("ERROR")


def deployed(
    spark: SparkSession,
    application: Application,
    folder: Folder,
    fleet: Fleet,
    placed: Mapping[str, OperatorAllocation],
    scaling: Scaling = Scaling.ELASTIC,
) -> Deployment:
    """The queries of an application with its state under `folder`; nothing runs yet."""
    plans = fused(application)
    for plan in plans:
        if scaling is not Scaling.RESOURCE_CENTRIC:
            check_shards(folder.folder(plan.name), plan, application.name)
    kind = RestartingQuery if scaling is Scaling.RESOURCE_CENTRIC else OperatorQuery
    wires = _Wires(spark, application, folder, plans)
    for plan in plans:
        query = kind(spark, plan, wires.wiring(plan), fleet, placed[plan.name])
        _check_state(query)
        wires.queries[plan.name] = query
    return Deployment(spark, wires.queries)


class _Wires:
    """What each query reads and writes."""

    def __init__(self, spark: SparkSession, application: Application, folder: Folder, plans: list[QueryPlan]) -> None:
        self._spark, self._application, self._folder = spark, application, folder
        self._by_output = {plan.last.name: plan for plan in plans}
        self._logs: dict[str, EdgeLog] = {}
        self.queries: dict[str, OperatorQuery] = {}

    def wiring(self, plan: QueryPlan) -> Wiring:
        folder = self._folder.folder(plan.name)
        sinks: tuple[Save, ...] = tuple(self._application.sinks.get(plan.last.name, ()))
        readers = [p.name for p in self._by_output.values() if plan.last.name in p.head.inputs]
        if plan.last.edge is not None:
            sinks, readers = (plan.last.edge.write, *sinks), []
        log = None
        own: tuple[str, ...] = ()
        if readers or len(sinks) > 1 or plan.head.on_error is OnError.DEAD_LETTER:
            own = () if readers else (_SINKS,)
            log = EdgeLog(folder.folder("edge"), [*readers, *own])
            self._logs[plan.last.name] = log
        inputs = [self._input(name, plan) for name in plan.head.inputs]
        return Wiring(
            inputs=tuple(inputs),
            upstream={name: self._logs[name] for name in plan.head.inputs if self._is_edge(name)},
            source_names=tuple(name for name in plan.head.inputs if not self._is_edge(name)),
            log=log,
            own_readers=own,
            sinks=sinks,
            checkpoint=folder.folder("checkpoint"),
            dead_letters=folder.folder("dead-letters"),
            trigger_s=self._application.trigger_s,
        )

    def _is_edge(self, name: str) -> bool:
        """An edge of ours; a user's own stream in an edge's place is read as a source."""
        return name in self._by_output and self._by_output[name].last.edge is None

    def _input(self, name: str, plan: QueryPlan) -> DataFrame:
        if name in self._application.sources:
            source = self._application.sources[name]
            return counting(_streaming(source.read(self._spark), f"source {name!r}"), name, source.ingest_time)
        upstream = self._by_output[name]
        edge = upstream.last.edge
        if edge is not None:
            entered = getattr(edge, "ingest_time", None)
            return counting(_streaming(edge.read(self._spark), f"edge {name!r}"), name, entered)
        query = self.queries[upstream.name]
        return read_edge(
            self._spark,
            self._logs[name].folder,
            name,
            query.schema,
            most_tasks=plan.head.max_replicas,
            max_rows=plan.head.max_rows_per_batch,
        )


def _streaming(df: DataFrame, where: str) -> DataFrame:
    if not isinstance(df, DataFrame) or not df.isStreaming:
        raise SpringtideError(f"{where}: expected a streaming DataFrame (spark.readStream...), not {type(df).__name__}")
    return df


def _check_state(query: OperatorQuery) -> None:
    """Refuse an operator whose function keeps state without shards, and name the operator in what Spark refuses."""
    try:
        plan = query.output(*query.wiring.inputs)
        _ = query.schema
    except PySparkException as error:
        first = str(error).splitlines()[0]
        raise SpringtideError(f"operator {query.name!r}: its function cannot be applied to its input: {first}") from error
    kept = nodes_with_state(plan)
    if kept and not query.plan.head.stateful:
        raise SpringtideError(
            f"operator {query.name!r} keeps state ({kept[0]}), so it needs a fixed number of shards: give it shards=8, say"
        )


def check_shards(folder: Folder, plan: QueryPlan, application: str) -> None:
    """Keep the number of shards of the first start, and refuse another one."""
    shards = plan.head.shards if plan.head.stateful else 0
    kept = folder.read_json(KEPT)
    if kept is None:
        folder.create()
        folder.write_json(KEPT, {"shards": shards})
    elif kept["shards"] != shards:
        raise SpringtideError(
            f"operator {plan.name!r} of {application!r} was first started with {kept['shards']} shards, in which its state is"
            f" kept; the code says {shards}. Put {kept['shards']} back, or stop the application and run"
            f" springtide reshard {folder.uri} --shards {shards}"
        )
