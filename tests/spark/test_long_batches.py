"""A batch that is longer than an interval: what it takes and what waits behind it is seen while it runs, not when it ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from live_world import Kept, Load, observations, running
from pyspark.cloudpickle import register_pickle_by_value
from pyspark.sql import DataFrame, SparkSession

from springtide.backends.spark.application import Application

pytestmark = pytest.mark.spark
register_pickle_by_value(sys.modules[__name__])

ROWS_PER_S = 100
ROW_S = 0.02  # one replica does half of what comes


def wait(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for rows in batches:
        time.sleep(ROW_S * len(rows))
        yield rows


def slowly(df: DataFrame) -> DataFrame:
    return df.select("key", "value").mapInPandas(wait, "key long, value long")


def test_an_operator_in_a_long_batch_is_seen_to_be_busy_and_its_backlog_to_grow(spark: SparkSession, tmp_path: Path) -> None:
    load, kept = Load(f"generator:constant:rate_per_s={ROWS_PER_S},duration_s=900", max_rows_per_batch=400), Kept()
    app = Application("slow")
    app.sink(app.operator("wait", slowly, app.source("rows", load.stream, ingest_time="offered_at")), kept.save)

    with running(spark, app, tmp_path / "app", hosts=1) as backend:
        within = []  # intervals in which no batch ended, once it is known how fast rows come
        for seen in observations(backend):
            if len(kept.batches) >= 2 and seen.operators["wait"].processed_rows == 0:
                within.append(seen)
            if len(within) == 6:
                break

    operators = [seen.operators["wait"] for seen in within]
    assert min(o.busy_share for o in operators) > 0.5, "a task of 8 s was running in all of them"
    assert min(o.hosts["host-0"].busy_share for o in within) > 0.5
    assert all(o.shards.busy_s.sum() > 0 for o in operators)
    assert {o.service_time_s for o in operators} == {operators[0].service_time_s}, "as it was measured last"
    rates = sorted(seen.offered_rows / seen.interval_s for seen in within)
    assert rates[len(rates) // 2] == pytest.approx(ROWS_PER_S, rel=0.3)
    assert operators[-1].backlog_rows > operators[0].backlog_rows
