"""Every kind of state, on four executors, while hosts, replicas and shards change: the answer is that of a batch, exactly."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyspark.sql.functions as F
import pytest
from live_world import Drained, Kept, Load, answer, change_to, random_allocation, running, shards_of, wait_until
from pyspark.cloudpickle import register_pickle_by_value
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.state import GroupState
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from springtide.backends.spark.application import Application

pytestmark = [pytest.mark.spark, pytest.mark.slow]
register_pickle_by_value(sys.modules[__name__])  # executors cannot import a test

COUNTS = "key long, rows long, total long"


def cleaned(df: DataFrame) -> DataFrame:
    return df.where("value % 7 != 0")


def in_windows(df: DataFrame) -> DataFrame:
    windows = df.withWatermark("offered_at", "1 minute").groupBy(F.window("offered_at", "5 seconds"), "key")
    return windows.agg(F.count("*").alias("rows")).select(F.col("window.start").alias("start"), "key", "rows")


def once_each(df: DataFrame) -> DataFrame:
    return df.select("key", (F.col("value") % 5).alias("part")).dropDuplicates(["key", "part"])


def summed(key: tuple[int], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    rows, total = state.get if state.exists else (0, 0)
    for frame in frames:
        rows, total = rows + len(frame), total + int(frame["value"].sum())
    state.update((rows, total))
    yield pd.DataFrame({"key": [key[0]], "rows": [rows], "total": [total]})


def by_group_state(df: DataFrame) -> DataFrame:
    return df.groupBy("key").applyInPandasWithState(summed, COUNTS, "rows long, total long", "update", "NoTimeout")


class Summing(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("sums", "rows long, total long")

    def handleInputRows(self, key, rows, timerValues):
        count, total = self._state.get() if self._state.exists() else (0, 0)
        for frame in rows:
            count, total = count + len(frame), total + int(frame["value"].sum())
        self._state.update((count, total))
        yield pd.DataFrame({"key": [key[0]], "rows": [count], "total": [total]})

    def close(self) -> None: ...


def by_processor(df: DataFrame) -> DataFrame:
    return df.groupBy("key").transformWithStateInPandas(
        statefulProcessor=Summing(), outputStructType=COUNTS, outputMode="Update", timeMode="None"
    )


def joined(left: DataFrame, right: DataFrame) -> DataFrame:
    return left.select("row", "key").join(right.where("value % 3 = 0").select("row", "value"), "row")


def test_every_kind_of_state_is_exact_while_everything_moves(spark: SparkSession, tmp_path: Path) -> None:
    load = Load("generator:steps:levels=500,hold_s=2", max_rows_per_batch=60)
    windows, distinct, group_state, processor, pairs = (Kept() for _ in range(5))
    app = Application("everything")
    rows = app.operator("clean", cleaned, app.source("events", load.stream, ingest_time="offered_at"))
    app.sink(app.operator("windows", in_windows, rows, shards=4, output_mode="update", max_rows_per_batch=60), windows.save)
    app.sink(app.operator("distinct", once_each, rows, shards=3, max_rows_per_batch=60), distinct.save)
    app.sink(
        app.operator("group-state", by_group_state, rows, shards=4, output_mode="update", max_rows_per_batch=60),
        group_state.save,
    )
    app.sink(
        app.operator("processor", by_processor, rows, shards=4, output_mode="update", max_rows_per_batch=60), processor.save
    )
    app.sink(app.operator("pairs", joined, rows, rows, shards=3, max_rows_per_batch=60), pairs.save)

    expected = load.batch(spark)
    rng = np.random.default_rng(5)
    changes = 0
    seen_hosts: set[str] = set()
    with running(spark, app, tmp_path / "app", hosts=4) as backend:
        drained = Drained("clean", expected.count())

        def over(observation) -> bool:
            nonlocal changes
            seen_hosts.update(h for placed in observation.observed.operators.values() for h in placed.replica_hosts)
            if observation.index % 4 == 3 and changes < 10:  # whether or not the last change has been carried out
                planned = random_allocation(rng, observation, shards_of(backend))
                change_to(backend, observation.requested, planned)
                changes += 1
            return drained(observation)

        wait_until(backend, over)

    truth = cleaned(expected)
    assert changes >= 3
    assert len(seen_hosts) >= 2, "shards have been on several hosts"
    assert windows.latest(2) == answer(in_windows(truth), 2)
    assert sorted(distinct.rows()) == sorted(tuple(r) for r in once_each(truth).collect())
    sums = answer(truth.groupBy("key").agg(F.count("*"), F.sum("value")))
    assert group_state.latest() == sums
    assert processor.latest() == sums
    assert sorted(pairs.rows()) == sorted(tuple(r) for r in joined(truth, truth).collect())
