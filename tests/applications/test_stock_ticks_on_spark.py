"""The operators of `stock-ticks` as plain queries: the same answer in many small batches, in one, and in plain Python."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import springtide
from springtide.applications.answers import compared
from springtide.applications.results import ResultTable
from springtide.applications.stock_ticks.answer import answered
from springtide.applications.stock_ticks.application import StockTicks, last_said, plain
from springtide.applications.stock_ticks.operators import rejected, selected, windowed
from springtide.applications.stock_ticks.queries import ContinuousQuery
from springtide.applications.stock_ticks.ticks import SCHEMA

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PATIENCE_S = 180.0
LONG_AGO = 1_700_000_000.0
SMALL = dataclasses.replace(StockTicks.small(), hours=0.1, queries=12, longest_window_s=60)
NOON = datetime(2017, 7, 28, 12, tzinfo=UTC)


def streamed(frame: DataFrame, table: ResultTable, checkpoint: Path) -> list[dict[str, Any]]:
    """Run to the end; the progress of each batch."""
    writer = frame.writeStream.foreachBatch(table.save).outputMode("update")
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    assert query.awaitTermination(PATIENCE_S)
    return [dict(progress) for progress in query.recentProgress]


def test_many_small_batches_give_the_same_windows_as_one_and_as_plain_python(spark: SparkSession, tmp_path: Path) -> None:
    """Ticks come out of order by up to 30 s, and windows wait as long."""
    ticks = SMALL.ticks()
    waits_s = np.random.default_rng(2).uniform(0, 30, ticks.times_s.size)
    table = ticks.table.take(np.argsort(ticks.times_s + waits_s))
    trace = springtide.Trace.of_times(name="ticks", times_s=ticks.times_s)
    rows = springtide.Recorded.keep(table, tmp_path / "ticks.arrow")
    stream = springtide.replay(spark, trace, rows=rows, max_rows_per_batch=900, started_at=LONG_AGO)
    results = ResultTable(tmp_path / "windows")
    longest_s, queries = SMALL.longest_window_s, SMALL.drawn()
    batches = streamed(windowed(selected(stream, queries), longest_s, 30), results, tmp_path / "checkpoint")

    right = answered(plain(table), queries)
    assert len(right) > 500
    assert compared("windows", right, last_said(results.read(spark))).first_wrong == ""
    whole = selected(springtide.replayed(spark, trace, rows=rows), queries)
    assert compared("windows", right, last_said(windowed(whole, longest_s, 30))).first_wrong == ""

    # Windows that are over are forgotten, and none too early.
    states = [batch["stateOperators"][0] for batch in batches]
    assert sum(batch["numInputRows"] > 0 for batch in batches) >= 3
    assert sum(state["numRowsRemoved"] for state in states) > 0
    assert states[-1]["numRowsTotal"] < len(right)
    assert sum(state["numRowsDroppedByWatermark"] for state in states) == 0


def test_ticks_that_are_no_good_are_rejected_with_the_reason(spark: SparkSession) -> None:
    queries = [ContinuousQuery(number=0, sector=1, window_s=60), ContinuousQuery(number=1, sector=1, window_s=90)]
    fine = ("SAP", 1, 900_000, NOON + timedelta(seconds=59))
    ticks: list[tuple[Any, ...]] = [
        fine, (None, *fine[1:]), ("", *fine[1:]), ("SAP", None, *fine[2:]), ("SAP", 1, None, NOON), ("SAP", 1, 0, NOON),
        ("SAP", 1, 5, None), ("BMW", 2, 5, NOON), fine,
    ]  # fmt: skip
    columns = [pa.array([tick[at] for tick in ticks], field.type) for at, field in enumerate(SCHEMA)]
    table = pa.Table.from_arrays(columns, schema=SCHEMA).append_column("row", pa.array(np.arange(len(ticks))))
    frame = spark.createDataFrame(table)
    chosen = selected(frame, queries)

    reasons = {row["row"]: row["reason"] for row in rejected(chosen).collect()}
    assert reasons == {1: "no company", 2: "no company", 3: "no sector", 4: "no price", 5: "no price", 6: "no time"}
    noon_us = int(NOON.timestamp()) * 1_000_000
    price = (900_000, 900_000, 900_000.0, 900_000, 900_000, 2)  # it came twice, and nobody asked for the other sector
    assert sorted(last_said(windowed(chosen, 90, 0))) == [(0, "SAP", noon_us, *price), (1, "SAP", noon_us, *price)]


def test_first_and_last_are_by_time_and_then_by_row(spark: SparkSession) -> None:
    later, at_once = NOON + timedelta(seconds=5), NOON
    rows = [(3, "SAP", 1, 30, later), (0, "SAP", 1, 40, later), (2, "SAP", 1, 10, at_once), (1, "SAP", 1, 20, at_once)]
    frame = spark.createDataFrame(rows, "row long, company string, sector int, price_x10000 long, tick_at timestamp")
    frame = frame.repartition(3, "row")
    query = ContinuousQuery(number=4, sector=1, window_s=60)
    (said,) = last_said(windowed(selected(frame, [query]), 60, 0))
    assert said[3:] == (20, 10, 25.0, 40, 30, 4)
