"""Streams of the user's own in the place of an edge: a table whose batches appear whole and once, and a Kafka topic."""

from __future__ import annotations

import sys
from pathlib import Path

import pyspark.sql.functions as F
import pytest
from live_world import Drained, Kept, Load, answer, running, wait_until
from pyspark.cloudpickle import register_pickle_by_value
from pyspark.sql import DataFrame, SparkSession

import springtide
from springtide.errors import SpringtideError
from springtide.model.observation import Observation

pytestmark = pytest.mark.spark
register_pickle_by_value(sys.modules[__name__])

TRACE = "generator:constant:rate_per_s=100,duration_s=6"
COLUMNS = "key long, value long, offered_at timestamp"


def kept_columns(rows: DataFrame) -> DataFrame:
    return rows.where("value % 10 != 0").select("key", "value", "offered_at")


def per_key(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").agg(F.count("*").alias("rows"), F.sum("value").alias("value"))


def test_a_table_takes_the_place_of_an_edge(spark: SparkSession, tmp_path: Path) -> None:
    load, kept = Load(TRACE), Kept()
    table = springtide.Table(str(tmp_path / "table"), COLUMNS, ingest_time="offered_at")
    app = springtide.Application("with-table")
    source = app.source("rows", load.stream, ingest_time="offered_at")
    checked = app.operator("valid", kept_columns, source, edge=table)
    app.sink(app.operator("count", per_key, checked, shards=4, output_mode="update"), kept.save)
    rows = kept_columns(load.batch(spark))
    drained, longest_s = Drained("count", rows.count()), [0.0]

    def over(seen: Observation) -> bool:
        longest_s.append(seen.latency.max_s)
        return drained(seen)

    with running(spark, app, tmp_path / "app") as backend:
        wait_until(backend, over)

    assert kept.latest() == answer(per_key(rows))
    # Others may read it: nothing is doubled in it, and nothing is deleted.
    assert spark.read.parquet(f"{tmp_path}/table/batch-*").count() == rows.count()
    assert max(longest_s) > 0.1, "latency counts from when rows entered, not from when they left the table"


def test_a_batch_that_comes_again_is_not_written_again(spark: SparkSession, tmp_path: Path) -> None:
    table = springtide.Table(str(tmp_path), "id long")

    table.write(spark.range(10), 3)
    table.write(spark.range(10), 3)

    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith("batch")) == ["batch-000000003"]
    assert spark.read.schema("id long").parquet(f"{tmp_path}/batch-*").count() == 10


def test_what_was_half_written_before_a_crash_is_neither_read_nor_in_the_way(spark: SparkSession, tmp_path: Path) -> None:
    half = tmp_path / "_staging" / "batch-000000000"
    spark.range(3).write.parquet(str(half))
    table = springtide.Table(str(tmp_path), "id long")
    stream = table.read(spark)
    kept = Kept()

    query = stream.writeStream.foreachBatch(kept.save).option("checkpointLocation", f"{tmp_path}/checkpoint")
    query.trigger(availableNow=True).start().awaitTermination()
    assert kept.rows() == []

    table.write(spark.range(5), 0)
    query.trigger(availableNow=True).start().awaitTermination()
    assert sorted(kept.rows()) == [(i,) for i in range(5)]


def test_rows_come_out_of_a_topic_as_they_went_in(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(1, "a", None), (2, None, 0.5)], "key long, page string, price double")
    topic = springtide.KafkaTopic("nowhere:9092", "clicks", rows.schema.simpleString(), key="key")

    encoded = topic.encoded(rows)

    assert [row.key for row in encoded.collect()] == ["1", "2"]
    assert topic.decoded(encoded).collect() == rows.collect()


def test_a_spark_without_the_kafka_package_is_told_how_to_get_it(spark: SparkSession) -> None:
    with pytest.raises(SpringtideError, match=r"^topic 'clicks': .*spark-sql-kafka") as refused:
        springtide.KafkaTopic("nowhere:9092", "clicks", "id long").read(spark)
    assert "\n" not in str(refused.value)
