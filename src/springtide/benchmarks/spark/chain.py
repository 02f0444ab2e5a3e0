"""Case `chain`: how long a row takes through four queries, one behind the other, the last of which keeps state."""

from __future__ import annotations

import time

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

from springtide.backends.spark.application import Application, Save
from springtide.backends.spark.scaling import Scaling
from springtide.benchmarks.figures import Bar, Figure, figure
from springtide.benchmarks.spark.bed import Bed, watched
from springtide.errors import SpringtideError
from springtide.model.application import KeyDistribution
from springtide.workload.generators import constant
from springtide.workload.replay import replay

CASE = "chain"
LATENCY_BAR = Bar(limit=3.0)

SHARDS = 4
KEYS = 10_000
ROWS_PER_S = 2000.0
_WINDOW_S = 15.0


def measure(bed: Bed) -> list[Figure]:
    windows, warm_s = (1, 10.0) if bed.quick else (4, 90.0)
    with watched(bed, application, Scaling.ELASTIC) as running:
        bed.say(f"{CASE}: warming up")
        running.settle(at_least_s=warm_s)
        running.backend.observe()
        bed.say(f"{CASE}: measuring {windows} x {_WINDOW_S:.0f} s")
        found, offered = [], []
        for _ in range(windows):
            time.sleep(_WINDOW_S)
            seen = running.backend.observe()
            for name, why in running.backend.failures().items():
                raise SpringtideError(f"operator {name!r} has stopped: {why}")
            found.append(seen.latency)
            offered.append(seen.latency.rows / seen.interval_s)
    return [
        figure(CASE, "rows that came out", "rows/s", offered),
        figure(CASE, "latency, median row", "s", [f.p50_s for f in found], LATENCY_BAR),
        figure(CASE, "latency, 90 %", "s", [f.p90_s for f in found]),
    ]


def application(save: Save) -> Application:
    """Operators that would share queries if they were let."""

    def read(spark: SparkSession) -> DataFrame:
        return replay(spark, constant(rate_per_s=ROWS_PER_S), keys=KeyDistribution(keys=KEYS))

    app = Application("chain")
    stream = app.source("rows", read, ingest_time="offered_at")
    stream = app.operator("valid", lambda rows: rows.where("value >= 0"), stream, fuse=False)
    stream = app.operator("priced", lambda rows: rows.withColumn("price", F.col("value") * 3), stream, fuse=False)
    stream = app.operator("sorted", lambda rows: rows.withColumn("kind", F.col("price") % 7), stream, fuse=False)
    stream = app.operator(
        "count", lambda rows: rows.groupBy("key").agg(F.count("*").alias("rows")), stream, shards=SHARDS, output_mode="update"
    )
    app.sink(stream, save)
    return app
