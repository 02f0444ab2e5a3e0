"""Getting a new executor ready before work is given to it.

An executor that has just started is slow: its JVM has yet to load classes, and its first Python worker to import its
libraries, and a batch waits for its slowest task. A small job that runs there first takes that time while the others go on.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import SparkSession

from springtide.backends.spark.jvm.executors import Executor
from springtide.backends.spark.jvm.tasks import arranged, place_of


def warm_up(spark: SparkSession, executor: Executor) -> None:
    """Run what a batch runs, on no data to speak of: a shuffle, a Python worker, Arrow and Parquet."""
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", "springtide-warm-up")
    rows = spark.range(64, numPartitions=1).repartitionById(1, F.lit(0))
    there = arranged(rows, None, [place_of(executor.host, executor.id)])
    there.mapInArrow(_through_parquet, "id long").collect()


def _through_parquet(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq  # noqa: PLC0415 - to be imported there, in the worker

    for batch in batches:
        buffer = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_batches([batch]), buffer)
        yield from pq.read_table(pa.BufferReader(buffer.getvalue())).to_batches()
