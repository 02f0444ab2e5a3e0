"""Clicks per page, live: a stream whose rate rises and falls, an operator that asks a slow service, and one that counts.

    springtide run examples/clicks.py --policy local-thresholds --until-drained     # ride the stream
    python examples/clicks.py                                                       # is what it counted right?

Rows come from a trace that is replayed, so the exact answer can be computed in batch, and compared: see `answer`.
"""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

import springtide

TRACE = os.environ.get("CLICKS_TRACE", "generator:steps:levels=100/600/100,hold_s=60")
RESULTS = Path(os.environ.get("CLICKS_RESULTS", "springtide-clicks/results"))
PAGES = springtide.KeyDistribution(keys=500, zipf=0.8)
SERVICE_S = 0.003  # what the service takes for one click: at 600 clicks/s, 1.8 executors wait for it all the time


def clicks(spark: SparkSession) -> DataFrame:
    """A batch takes as many rows as 4 executors score in 1 s: one that took minutes could not be changed for minutes."""
    return springtide.replay(spark, TRACE, keys=PAGES, max_rows_per_batch=1200)


def scored(rows: DataFrame) -> DataFrame:
    """Clicks with the score that a service gives them."""
    return rows.mapInPandas(ask, "page long, score long")


def ask(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for batch in batches:
        time.sleep(SERVICE_S * len(batch))
        yield pd.DataFrame({"page": batch["key"], "score": batch["value"] % 10})


def per_page(rows: DataFrame) -> DataFrame:
    return rows.groupBy("page").agg(F.count("*").alias("clicks"), F.sum("score").alias("score"))


def save(counts: DataFrame, batch_id: int) -> None:
    """One folder for each batch: a batch that comes again replaces its own."""
    counts.write.mode("overwrite").parquet(str(RESULTS / f"batch={batch_id}"))


app = springtide.Application("clicks", slo=springtide.SLO(latency_s=5))
source = app.source("clicks", clicks, ingest_time="offered_at")
known = app.operator("scored", scored, source)
counted = app.operator("per-page", per_page, known, shards=8, output_mode="update")
app.sink(counted, save)


def answer(spark: SparkSession) -> DataFrame:
    """What the counts must be when all rows are in."""
    rows = springtide.replayed(spark, TRACE, keys=PAGES)
    return per_page(rows.select(F.col("key").alias("page"), (F.col("value") % 10).alias("score")))


def found(spark: SparkSession) -> DataFrame:
    """What the counts are: the last that was said of each page."""
    said = spark.read.parquet(str(RESULTS))
    last = said.groupBy("page").agg(F.max_by(F.struct("clicks", "score"), "batch").alias("last"))
    return last.select("page", "last.*")


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = SparkSession.builder.master("local[2]").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    wrong = answer(session).exceptAll(found(session)).count() + found(session).exceptAll(answer(session)).count()
    total = found(session).agg(F.sum("clicks"), F.count("*")).first()
    print(f"{total[0]:,} clicks on {total[1]:,} pages: {wrong} pages differ from the batch answer")
    raise SystemExit(wrong > 0)
