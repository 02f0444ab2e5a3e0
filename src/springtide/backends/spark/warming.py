"""Getting a new executor ready before work is given to it.

An executor that has just started is slow: its JVM has yet to load classes, and its first Python worker to import its
libraries, and a batch waits for its slowest task. A small job that runs there first takes that time while the others go on.
It has a task for each of the executor's slots, so that Spark gives no task of a batch to the executor meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import SparkSession

from springtide.backends.spark.jvm.executors import Executor
from springtide.backends.spark.jvm.tasks import arranged, place_of

_ROCKSDB = "reflect('org.rocksdb.RocksDB', 'loadLibrary')"


def warm_up(spark: SparkSession, executor: Executor) -> None:
    """Run what a batch runs, on no data to speak of: a Python worker, pandas, Arrow and Parquet, a state store's library,
    and a shuffle."""
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", "springtide-warm-up")
    slots = executor.cores
    places = [place_of(executor.host, executor.id)] * slots
    stateful = "RocksDB" in str(spark.conf.get("spark.sql.streaming.stateStore.providerClass", ""))
    rows = spark.range(64 * slots, numPartitions=slots).selectExpr("id", f"{_ROCKSDB if stateful else 'null'} as loaded")
    worked = arranged(rows, None, places).mapInArrow(_through_parquet, "id long")
    arranged(worked.repartitionById(slots, F.expr(f"int(id % {slots})")), None, places).collect()


def _through_parquet(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq  # noqa: PLC0415 - to be imported there, in the worker

    for batch in batches:
        buffer = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_batches([batch]), buffer)
        table = pq.read_table(pa.BufferReader(buffer.getvalue())).select(["id"])
        table.to_pandas()
        yield from table.to_batches()
