"""An application as one would write it without Springtide: plain Structured Streaming queries of the same functions.

Operators run in one query as long as Spark can: until a second one that keeps state, a stream that two read, or one that has a
sink. Between two queries there is a folder of Parquet files, which the first appends to and the second reads as a stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from springtide.backends.spark.application import Application, OperatorNode, Save


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Operators in one query."""

    operators: tuple[OperatorNode, ...]

    @property
    def last(self) -> OperatorNode:
        return self.operators[-1]

    @property
    def shards(self) -> int:
        return max(node.shards for node in self.operators)

    def output(self, *inputs: DataFrame) -> DataFrame:
        df = self.operators[0].function(*inputs)
        for node in self.operators[1:]:
            df = node.function(df)
        return df


def chains(application: Application) -> list[Chain]:
    """The queries of an application, upstream first."""
    readers: dict[str, int] = {}
    for node in application.operators.values():
        for name in node.inputs:
            readers[name] = readers.get(name, 0) + 1
    found: dict[str, Chain] = {}  # by the name of the last operator
    for node in application.operators.values():
        before = found.get(node.inputs[0])
        alone = readers[node.inputs[0]] == 1 and node.inputs[0] not in application.sinks
        if before is not None and alone and len(node.inputs) == 1 and not (before.shards and node.shards):
            del found[node.inputs[0]]
            found[node.name] = Chain((*before.operators, node))
        else:
            found[node.name] = Chain((node,))
    return list(found.values())


@contextmanager
def plainly_running(spark: SparkSession, application: Application, folder: Path) -> Iterator[list[StreamingQuery]]:
    """The queries, upstream first, all of them started."""
    queries: list[StreamingQuery] = []
    schemas: dict[str, DataFrame] = {}
    all_chains = chains(application)
    try:
        for chain in all_chains:
            inputs = [_input(spark, application, folder, schemas, name) for name in chain.operators[0].inputs]
            df = schemas[chain.last.name] = chain.output(*inputs)
            read = any(chain.last.name in other.operators[0].inputs for other in all_chains)
            save = partial(_saved, folder / chain.last.name if read else None, application.sinks.get(chain.last.name, []))
            queries.append(_started(spark, chain, df, save, folder))
        yield queries
    finally:
        for query in queries:
            query.stop()


def _input(spark: SparkSession, application: Application, folder: Path, before: dict[str, DataFrame], name: str) -> DataFrame:
    if name in application.sources:
        return application.sources[name].read(spark)
    (folder / name).mkdir(parents=True, exist_ok=True)
    return spark.readStream.schema(before[name].schema).parquet(str(folder / name))


def _started(spark: SparkSession, chain: Chain, df: DataFrame, save: Save, folder: Path) -> StreamingQuery:
    """A query keeps the number of shuffle partitions that the session had when it began."""
    spark.conf.set("spark.sql.shuffle.partitions", str(chain.shards or 2))
    name = "+".join(node.name for node in chain.operators)
    mode = next((node.output_mode for node in chain.operators if node.shards), "append")
    writer = df.writeStream.queryName(name).outputMode(mode).foreachBatch(save)
    return writer.option("checkpointLocation", str(folder / "checkpoints" / name)).start()


def _saved(edge: Path | None, sinks: Sequence[Save], df: DataFrame, batch_id: int) -> None:
    several = len(sinks) + (edge is not None) > 1
    rows = df.persist() if several else df
    if edge is not None:
        rows.write.mode("append").parquet(str(edge))
    for save in sinks:
        save(rows, batch_id)
    if several:
        rows.unpersist()
