"""The micro-benchmark's calculator as a streaming query: exact in many small batches, and in one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import springtide
from springtide.applications.micro_benchmark.application import MicroBenchmark
from springtide.applications.micro_benchmark.checksum import summed

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LONG_AGO = 1_700_000_000.0
BENCHMARK = MicroBenchmark(
    trace="generator:steps:levels=100/300/100,hold_s=5", keys=200, zipf=0.8, buckets=16, shards=2, cost_us_per_tuple=20.0
)
KEYS = springtide.KeyDistribution(keys=200, zipf=0.8, shuffles_per_minute=2.0)


def run(spark: SparkSession, folder: Path, max_rows_per_batch: int | None) -> Any:
    """Read the whole stream; tell how many batches it took."""
    stream = springtide.replay(
        spark,
        BENCHMARK.trace,
        keys=KEYS,
        payload_bytes=128,
        seed=7,
        max_rows_per_batch=max_rows_per_batch,
        started_at=LONG_AGO,
    )
    writer = BENCHMARK.calculator().calculated(stream).writeStream.outputMode("update")
    writer = writer.foreachBatch(BENCHMARK.sums(folder).save).option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(180)
    return sum(progress["numInputRows"] > 0 for progress in query.recentProgress)


@pytest.mark.parametrize(("max_rows_per_batch", "batches"), [(900, 3), (None, 1)])
def test_counts_and_checksums_are_exact(
    spark: SparkSession, tmp_path: Path, max_rows_per_batch: int | None, batches: int
) -> None:
    assert run(spark, tmp_path, max_rows_per_batch) == batches
    (checked,) = BENCHMARK.check(spark, tmp_path)
    assert (checked.rows, checked.wrong) == (200, 0)


def test_a_result_that_is_missing_is_found_out(spark: SparkSession, tmp_path: Path) -> None:
    tuples = springtide.replayed(spark, BENCHMARK.trace, keys=KEYS, payload_bytes=128, seed=7)
    found: Any = tuples.select("row", "key", "value", "payload").toPandas()
    right = summed(found)
    BENCHMARK.sums(tmp_path).save(spark.createDataFrame(right[right["key"] != 5]), 0)
    (checked,) = BENCHMARK.check(spark, tmp_path)
    assert checked.wrong == 1
    assert checked.first_wrong.startswith("(5, ")
