"""What a query's plan is, and what it knows of the batch it is in: counts taken on the way, and where its state lies."""

from __future__ import annotations

import json
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, Observation, Row
from pyspark.sql.streaming.query import StreamingQuery

from springtide.backends.spark.jvm.scala import JavaObject, jvm_of


def counted(query: StreamingQuery, name: str) -> dict[str, Any] | None:
    """What `DataFrame.observe(name, ...)` in the query's plan has counted in the batch that is running or was last run."""
    metrics = _execution(query).observedMetrics()
    if not metrics.contains(name):
        return None
    return dict(json.loads(metrics.apply(name).json()))


def state_root(query: StreamingQuery) -> str:
    """Where the query's state lies, spelled as Spark's state stores are named."""
    return str(_execution(query).checkpointLocation())


def checkpoint_root(query: StreamingQuery) -> str:
    """Where the query's checkpoint lies, as a URI."""
    root = str(_running(query).resolvedCheckpointRoot())
    return root.replace("file:/", "file:///", 1) if root.startswith("file:/") and not root.startswith("file://") else root


def counted_by(observation: Observation) -> Row | None:
    """What an observation of a batch DataFrame has counted, or None when nobody ran the DataFrame: it does not wait."""
    if observation._jo is None or not observation._jo.future().isCompleted():
        return None
    return Row(**observation.get)


def source_offsets(query: StreamingQuery) -> list[tuple[Any, Any]]:
    """For each source: where the batch that runs begins, and what the source had when it was planned."""
    running = _running(query)
    context = running.getLatestExecutionContext()
    begins, had = context.startOffsets(), context.latestOffsets()
    sources = running.sources()
    found = []
    for i in range(sources.size()):
        source = sources.apply(i)
        found.append((_offset(begins.get(source)), _offset(had.get(source))))
    return found


def trigger_interval_s(query: StreamingQuery) -> float | None:
    """The trigger interval that a query was started with; None if its batches do not follow one (`availableNow`, `once`)."""
    trigger = _running(query).trigger()
    return float(trigger.intervalMs()) / 1000 if trigger.getClass().getSimpleName() == "ProcessingTimeTrigger" else None


def read_limits(query: StreamingQuery) -> JavaObject:
    """How much a batch takes of each source, as Spark keeps it: a Scala map. The sources are not asked: only Spark may."""
    return _running(query).uniqueSources()


def limit_rows(context: SparkContext, query: StreamingQuery, own: JavaObject, rows: int | None) -> None:
    """Let each of the next batches take at most so many rows of each source that has a limit in rows; None takes that back.

    `own` are the limits that the query began with (`read_limits`). They are never exceeded, and sources without one are left
    alone: some do not understand a limit in rows, and fail. Spark reads its limits when it plans a batch, so this takes effect
    with the next one.
    """
    limits, sources = own, own.keysIterator()
    while rows is not None and sources.hasNext():
        source = sources.next()
        limits = limits.updated(source, _no_more_than(context, own.apply(source), rows))
    getattr(_running(query), "uniqueSources_$eq")(limits)


def _no_more_than(context: SparkContext, own: JavaObject, rows: int) -> JavaObject:
    """A limit in rows, lowered; any other as it is. Sources in Python have limits of their own kind, written as JSON."""
    spark = jvm_of(context).org.apache.spark.sql
    kind = str(own.getClass().getSimpleName())
    if kind == "ReadMaxRows":
        return spark.connector.read.streaming.ReadLimit.maxRows(min(rows, own.maxRows()))
    if kind == "PythonStreamingSourceReadLimit" and (most := json.loads(own.json()).get("max_rows")) is not None:
        text = json.dumps({"_type": "ReadMaxRows", "max_rows": min(rows, most)})
        return spark.execution.datasources.v2.python.PythonStreamingSourceReadLimit(text)
    return own


def _offset(option: JavaObject) -> Any:
    offset = option.get() if option.isDefined() else None
    return None if offset is None else json.loads(offset.json())


def nodes_with_state(df: DataFrame) -> list[str]:
    """The parts of a streaming DataFrame's plan that keep state from batch to batch."""
    found: list[str] = []

    def look(node: JavaObject) -> None:
        kind = str(node.nodeName())
        children = [node.children().apply(i) for i in range(node.children().size())]
        streams = sum(bool(child.isStreaming()) for child in children)
        if streams and (kind in _WITH_STATE or kind.startswith(("FlatMapGroups", "TransformWithState"))):
            found.append(kind)
        if kind == "Join" and streams > 1:
            found.append("join of two streams")
        for child in children:
            look(child)

    look(df._jdf.queryExecution().analyzed())
    return found


_WITH_STATE = ("Aggregate", "Deduplicate", "DeduplicateWithinWatermark", "Distinct", "GlobalLimit")


def _execution(query: StreamingQuery) -> JavaObject:
    return _running(query).lastExecution()


def _running(query: StreamingQuery) -> JavaObject:
    running = query._jsq
    return running.streamingQuery() if running.getClass().getName().endswith("StreamingQueryWrapper") else running
