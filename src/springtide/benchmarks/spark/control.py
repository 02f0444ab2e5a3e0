"""Case `control`: what the control loop takes from the application it watches.

A saturated operator is observed and decided on every 5 s in some windows of a run and left alone in the others, which
take turns. What is decided is not carried out: this is the price of looking and thinking, not of changing.
"""

from __future__ import annotations

import time

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

from springtide.backends.spark.application import Application, Save
from springtide.backends.spark.controlled import Silent
from springtide.backends.spark.scaling import Scaling
from springtide.benchmarks.figures import Bar, Figure, figure
from springtide.benchmarks.spark.batches import rows_per_s
from springtide.benchmarks.spark.bed import Bed, Watched, watched
from springtide.loop import ControlLoop
from springtide.model.application import KeyDistribution
from springtide.plan.guards.dry_run import DryRun
from springtide.plan.policies.local_thresholds import LocalThresholds
from springtide.workload.generators import constant
from springtide.workload.replay import replay

CASE = "control"
THROUGHPUT_BAR = Bar(limit=0.97, at_least=True)

SHARDS = 8
KEYS = 10_000
ROWS_PER_BATCH = 20_000
_MORE_THAN_CAN_BE_DONE = 200_000.0  # rows/s
_INTERVAL_S = 5.0


def measure(bed: Bed) -> list[Figure]:
    """Windows on and off in turn, which one first in turn too."""
    pairs, window_s = (1, 10.0) if bed.quick else (6, 20.0)
    with watched(bed, application, Scaling.ELASTIC) as running:
        bed.say(f"{CASE}: warming up")
        running.settle(at_least_s=10.0 if bed.quick else 40.0)
        spans: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
        for pair in range(pairs):
            bed.say(f"{CASE}: pair {pair + 1} of {pairs}")
            for on in (pair % 2 == 0, pair % 2 != 0):
                spans[on].append(_window(running, window_s, on=on))
        running.wait_for(2)
        batches, rows = running.batches, running.rows()
    rates = {on: [rows_per_s(batches, rows, *span) for span in spans[on]] for on in spans}
    ratios = [on / off for on, off in zip(rates[True], rates[False], strict=True)]
    return [
        figure(CASE, "throughput, loop off", "rows/s", rates[False]),
        figure(CASE, "throughput, loop on", "rows/s", rates[True]),
        figure(CASE, "throughput, loop on / off", "x", ratios, THROUGHPUT_BAR),
    ]


def _window(running: Watched, window_s: float, *, on: bool) -> tuple[float, float]:
    """When a window began and ended; what has piled up before it to be looked at is not its own."""
    running.backend.observe()
    running.wait_for(1)
    began_s = time.monotonic()
    if on:
        backend = running.backend
        loop = ControlLoop(
            application=backend.application, pool=backend.pool, policy=DryRun(LocalThresholds()), interval_s=_INTERVAL_S
        )
        loop.run(backend, Silent(), backend.clock.now_s() + window_s)
    else:
        time.sleep(window_s)
    return began_s, time.monotonic()


def application(save: Save) -> Application:
    """Counts per key; more rows wait than can be counted."""

    def read(spark: SparkSession) -> DataFrame:
        trace = constant(rate_per_s=_MORE_THAN_CAN_BE_DONE)
        return replay(spark, trace, keys=KeyDistribution(keys=KEYS), max_rows_per_batch=ROWS_PER_BATCH)

    def count(rows: DataFrame) -> DataFrame:
        return rows.groupBy("key").agg(F.count("*").alias("rows"))

    app = Application("control")
    source = app.source("rows", read, ingest_time="offered_at")
    app.sink(app.operator("count", count, source, shards=SHARDS, replicas=4, output_mode="update"), save)
    return app
