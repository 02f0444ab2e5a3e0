"""A query that exists, made elastic with three changed lines."""

from __future__ import annotations

from pathlib import Path

import pyspark.sql.functions as F
import pytest
from live_world import Kept, Load, answer, wait_for_answer
from pyspark.sql import SparkSession

import springtide
from springtide.errors import SpringtideError

pytestmark = pytest.mark.spark


def test_a_query_keeps_its_plan_its_checkpoint_and_its_sink(spark: SparkSession, tmp_path: Path) -> None:
    load, kept = Load("generator:steps:levels=300,hold_s=4", max_rows_per_batch=200), Kept()
    counts = load.stream(spark).groupBy("key").agg(F.count("*").alias("rows"))
    truth = answer(load.batch(spark).groupBy("key").agg(F.count("*").alias("rows")))

    query = (
        springtide.elastic(counts.writeStream, slo_s=5, max_hosts=2, interval_s=1.0)
        .outputMode("update")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .foreachBatch(kept.save)
        .start()
    )
    try:
        wait_for_answer(query, kept, truth)
    finally:
        query.stop()
    assert not query.isActive
    assert (tmp_path / "checkpoint" / "commits" / "0").exists()


def test_what_an_elastic_query_cannot_do_is_said(spark: SparkSession) -> None:
    rate = spark.readStream.format("rate").load()
    with pytest.raises(SpringtideError, match="foreachBatch"):
        springtide.elastic(rate.writeStream).format("parquet")
    with pytest.raises(SpringtideError, match="sink function"):
        springtide.elastic(rate.writeStream).start()
    with pytest.raises(SpringtideError, match="no policy"):
        springtide.elastic(rate.writeStream, policy="best")
