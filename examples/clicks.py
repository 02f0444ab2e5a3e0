"""Clicks per page, live: a stream whose rate rises and falls, an operator without state, and one that counts.

    springtide run examples/clicks.py --policy local-thresholds --until-drained

Rows come from a trace that is replayed, so the exact answer can be computed in batch: see `answer`.
"""

import os
from pathlib import Path

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

import springtide

TRACE = os.environ.get("CLICKS_TRACE", "generator:steps:levels=200/1500/200,hold_s=30")
PAGES = springtide.KeyDistribution(keys=500, zipf=0.8)
RESULTS = Path(os.environ.get("CLICKS_RESULTS", "springtide-clicks/results"))


def clicks(spark: SparkSession) -> DataFrame:
    return springtide.replay(spark, TRACE, keys=PAGES)


def valid(rows: DataFrame) -> DataFrame:
    return rows.where("value % 10 != 0")


def per_page(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").agg(F.count("*").alias("clicks"), F.sum("value").alias("value"))


def save(counts: DataFrame, batch_id: int) -> None:
    """One folder for each batch: a batch that comes again replaces its own."""
    counts.write.mode("overwrite").parquet(str(RESULTS / f"batch={batch_id}"))


def answer(spark: SparkSession) -> DataFrame:
    """What the counts must be when all rows are in."""
    return per_page(valid(springtide.replayed(spark, TRACE, keys=PAGES)))


app = springtide.Application("clicks", slo=springtide.SLO(latency_s=5))
source = app.source("clicks", clicks, ingest_time="offered_at")
checked = app.operator("valid", valid, source)
counted = app.operator("per-page", per_page, checked, shards=8, output_mode="update")
app.sink(counted, save)
