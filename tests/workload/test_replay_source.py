"""The replay source in Spark: each row of the trace once, through failures, at a limited pace, with its lag reported."""

from __future__ import annotations

import json
import math
import pickle
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from springtide.errors import SpringtideError
from springtide.model.application import KeyDistribution
from springtide.workload.replay import replay, replayed
from springtide.workload.replay_options import ARROW_SCHEMA, SCHEMA, ReplayOptions
from springtide.workload.replay_source import ReplayReader, ReplaySource, ReplayStreamReader
from springtide.workload.rows import ReplayedRows, cumulative_rows
from springtide.workload.traces import Trace

pytestmark = pytest.mark.spark

PATIENCE_S = 180.0  # for a busy machine; no test waits that long unless something is wrong

KEYS = KeyDistribution(keys=50, zipf=1.0, shuffles_per_minute=60.0)
TRACE = Trace(name="hill", step_s=60.0, counts=np.array([3000.0, 150.0, 400.0, 0.0, 700.0, 400.0, 300.0, 50.0]))
LONG_AGO = 1_700_000_000.0

Rows = list[tuple[Any, ...]]


class Batches:
    """What `foreachBatch` was given. A batch that is run again replaces what its first run gave."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.rows: dict[int, Rows] = {}
        self.has_rows = threading.Condition()
        self._fail_at = fail_at

    def __call__(self, frame: DataFrame, batch: int) -> None:
        rows = [tuple(row) for row in frame.collect()]
        with self.has_rows:
            self.rows[batch] = rows
            self.has_rows.notify_all()
        if batch == self._fail_at:
            raise RuntimeError("this batch was asked to fail")

    def all(self) -> Rows:
        return sorted(row for rows in self.rows.values() for row in rows)

    def wait_for(self, count: int, query: StreamingQuery) -> None:
        patient_until_s = time.monotonic() + PATIENCE_S
        with self.has_rows:
            while len(self.all()) < count:
                assert query.isActive, query.exception()
                assert time.monotonic() < patient_until_s, f"only {len(self.all())} of {count} rows came"
                self.has_rows.wait(1.0)


def started(frame: DataFrame, sink: Callable[[DataFrame, int], None], checkpoint: Path, **trigger: Any) -> StreamingQuery:
    writer = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
    return (writer.trigger(**trigger) if trigger else writer).start()


def collected(frame: DataFrame) -> Rows:
    return sorted(tuple(row) for row in frame.collect())


def offset_of(checkpoint: Path, batch: int) -> dict[str, Any]:
    offset: dict[str, Any] = json.loads((checkpoint / "offsets" / str(batch)).read_text().splitlines()[-1])
    return offset


@pytest.mark.parametrize("fail_at", [0, 2])
def test_each_row_comes_once_though_the_query_fails_and_is_restarted(spark: SparkSession, tmp_path: Path, fail_at: int) -> None:
    how: dict[str, Any] = {"speed_up": 240.0, "keys": KEYS, "payload_bytes": 10, "seed": 5}
    failing = Batches(fail_at=fail_at)
    query = started(replay(spark, TRACE, **how, max_rows_per_batch=800), failing, tmp_path / "checkpoint")
    with pytest.raises(StreamingQueryException, match="this batch was asked to fail"):
        query.awaitTermination(PATIENCE_S)
    decided = offset_of(tmp_path / "checkpoint", 0)["started_at"]

    batches = Batches()
    batches.rows.update({batch: rows for batch, rows in failing.rows.items() if batch < fail_at})
    query = started(replay(spark, TRACE, **how, max_rows_per_batch=800), batches, tmp_path / "checkpoint")
    batches.wait_for(5000, query)
    query.processAllAvailable()
    last = query.lastProgress
    query.stop()

    assert failing.rows[fail_at]
    assert batches.rows[fail_at] == failing.rows[fail_at]
    assert json.loads(last["sources"][0]["endOffset"]) == {"row": 5000, "started_at": decided}
    exact = collected(replayed(spark, TRACE, **how, started_at=decided))
    assert [row[0] for row in exact] == list(range(5000))
    assert batches.all() == exact


def test_the_limit_is_obeyed_and_what_waits_is_seen_as_lag(spark: SparkSession, tmp_path: Path) -> None:
    batches = Batches()
    stream = replay(spark, TRACE, max_rows_per_batch=1500, started_at=LONG_AGO)
    query = started(stream, batches, tmp_path / "checkpoint", availableNow=True)
    assert query.awaitTermination(PATIENCE_S)
    assert [len(batches.rows[batch]) for batch in sorted(batches.rows)] == [1500, 1500, 1500, 500]

    sources = [progress["sources"][0] for progress in query.recentProgress if progress["numInputRows"]]
    lags = [json.loads(source["latestOffset"])["row"] - json.loads(source["endOffset"])["row"] for source in sources]
    assert lags == [3500, 2000, 500, 0]
    assert [offset_of(tmp_path / "checkpoint", batch) for batch in range(4)] == [
        {"row": row, "started_at": LONG_AGO} for row in (1500, 3000, 4500, 5000)
    ]


def test_the_checkpoint_decides_when_the_replay_started_not_the_option(spark: SparkSession, tmp_path: Path) -> None:
    for started_at, rows in ((LONG_AGO, 5000), (LONG_AGO + 500, 0)):
        batches = Batches()
        query = started(replay(spark, TRACE, started_at=started_at), batches, tmp_path / "checkpoint", availableNow=True)
        assert query.awaitTermination(PATIENCE_S)
        assert len(batches.all()) == rows


def test_a_batch_has_as_many_tasks_as_asked_for_and_the_rows_of_the_trace(spark: SparkSession) -> None:
    frame = replayed(spark, TRACE, speed_up=60.0, keys=KEYS, payload_bytes=20, seed=9, partitions=3, started_at=LONG_AGO)
    assert frame.rdd.getNumPartitions() == 3
    rows = ReplayedRows(
        step_s=TRACE.step_s, cumulative=cumulative_rows(TRACE), speed_up=60.0, keys=KEYS, payload_bytes=20, seed=9
    )
    expected = rows.batch(0, 5000)
    seen = frame.selectExpr("row", "unix_micros(offered_at)", "key", "value", "payload").orderBy("row").collect()
    offered_us = np.rint(expected["offered_at_s"] * 1e6).astype(np.int64) + int(LONG_AGO) * 1_000_000
    assert [row[0] for row in seen] == expected["row"].tolist()
    assert [row[1] for row in seen] == offered_us.tolist()
    assert [row[2] for row in seen] == expected["key"].tolist()
    assert [row[3] for row in seen] == expected["value"].tolist()
    assert [row[4].encode() for row in seen] == [line.tobytes() for line in expected["payload"]]


def test_a_window_of_one_step_counts_the_rows_of_that_step(spark: SparkSession) -> None:
    minutes = replayed(spark, TRACE, started_at=1_700_000_040.0).groupBy(f.window("offered_at", "1 minute")).count()
    counts = {row["window"]["start"].astimezone(UTC): row["count"] for row in minutes.collect()}
    steps = {datetime.fromtimestamp(1_700_000_040 + 60 * at, UTC): count for at, count in enumerate(TRACE.counts) if count}
    assert counts == steps


def test_a_batch_may_end_before_the_trace_and_a_trace_may_be_empty(spark: SparkSession) -> None:
    generated = "generator:steps:levels=100/500/50,hold_s=10"
    assert replayed(spark, generated).count() == 6500
    assert collected(replayed(spark, generated, until_row=700)) == collected(replayed(spark, generated))[:700]
    assert replayed(spark, TRACE.scaled(0)).count() == 0


def test_a_file_is_found_from_any_directory(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "small.csv").write_text("time,count\n0,3\n1,4\n2,5\n")
    monkeypatch.chdir(tmp_path)
    assert replayed(spark, "small.csv").count() == 12


def test_options_are_given_by_name_as_to_any_source(spark: SparkSession) -> None:
    spark.dataSource.register(ReplaySource)
    reader = spark.read.format("springtide-replay").option("trace", "generator:steps:levels=1/2,hold_s=5")
    assert reader.option("PEAK", 20).option("payloadBytes", 3).load().where("length(payload) = 3").count() == 150


def test_an_unknown_option_is_refused_where_the_source_is_defined(spark: SparkSession) -> None:
    spark.dataSource.register(ReplaySource)
    reader = spark.readStream.format("springtide-replay").option("trace", "generator:steps").option("speedUpp", 2)
    with pytest.raises(AnalysisException, match="there is no option 'speedupp'; did you mean 'speedUp'"):
        reader.load()


@pytest.mark.parametrize(
    ("trace", "how", "message"),
    [
        (TRACE, {"speed_up": 0.0}, "option speedUp must be a number above 0, not 0.0"),
        (TRACE, {"speed_up": math.nan}, "option speedUp must be a number above 0, not nan"),
        (TRACE, {"partitions": 0}, "option partitions must be a whole number, 1 or more, not 0"),
        (TRACE, {"partitions": 2.5}, "option partitions must be a whole number, 1 or more, not 2.5"),
        (TRACE, {"max_rows_per_batch": 0}, "option maxRowsPerBatch must be a whole number, 1 or more, not 0"),
        (TRACE, {"payload_bytes": -1}, "option payloadBytes must be a whole number, 0 or more, not -1"),
        (TRACE, {"seed": -1}, "option seed must be a whole number"),
        (TRACE, {"started_at": -5.0}, "option startedAt must be a number, 0 or more, not -5.0"),
        ("", {}, "option trace must be a file or generator:NAME, not ''"),
        ("generator:stepps", {}, "option trace: there is no generator 'stepps'; did you mean 'steps'?"),
        ("nowhere.csv", {}, "option trace: nowhere.csv"),
        ("inline:AAAA", {}, "option trace: the trace written into it cannot be read"),
    ],
)
def test_a_mistake_is_told_at_once(spark: SparkSession, trace: str | Trace, how: dict[str, Any], message: str) -> None:
    with pytest.raises(SpringtideError) as refused:
        replay(spark, trace, **how)
    assert str(refused.value).startswith(f"springtide-replay: {message}")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({}, "the option trace is missing"),
        ({"trace": "t.csv", "keys": "many"}, "option keys must be a whole number, 1 or more, not 'many'"),
        ({"trace": "t.csv", "zipf": "-1"}, "option zipf must be a number, 0 or more, not -1.0"),
        ({"trace": "t.csv", "shufflesperminute": "inf"}, "option shufflesPerMinute must be a number, 0 or more, not inf"),
        ({"trace": "t.csv", "scale": "2", "peak": "3"}, "the options scale and peak exclude one another"),
    ],
)
def test_options_as_text_are_checked_too(texts: dict[str, str], message: str) -> None:
    with pytest.raises(SpringtideError, match=message):
        ReplayOptions.parsed(texts)


def test_options_survive_being_written() -> None:
    options = ReplayOptions(trace="t.csv", speed_up=1 / 3, keys=7, zipf=0.1, seed=2**70, started_at=1e9 / 7, until_row=5)
    assert ReplayOptions.parsed(options.texts()) == options


class Clock:
    now_s = LONG_AGO

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def reader_of(clock: Clock, trace: str = "generator:constant:rate_per_s=10,duration_s=100", **how: Any) -> ReplayStreamReader:
    return ReplayStreamReader(ReplayOptions(trace=trace, **how), clock)


def test_offsets_follow_the_clock_until_the_trace_ends(clock: Clock) -> None:
    reader = reader_of(clock)
    assert reader.reportLatestOffset() is None
    initial = reader.initialOffset()
    clock.now_s += 5
    assert reader.initialOffset() == initial == {"row": 0, "started_at": LONG_AGO}
    assert reader.latestOffset(initial, ReadAllAvailable()) == {"row": 50, "started_at": LONG_AGO}
    assert reader.latestOffset(initial, ReadMaxRows(20)) == {"row": 20, "started_at": LONG_AGO}
    assert reader.reportLatestOffset() == {"row": 50, "started_at": LONG_AGO}
    clock.now_s += 1000
    assert reader.latestOffset({"row": 990, "started_at": LONG_AGO}, ReadMaxRows(20))["row"] == 1000
    assert reader.latestOffset({"row": 1000, "started_at": LONG_AGO}, ReadAllAvailable())["row"] == 1000


def test_a_clock_that_is_set_back_takes_no_rows_back(clock: Clock) -> None:
    reader = reader_of(clock)
    clock.now_s -= 10
    assert reader.latestOffset({"row": 30, "started_at": LONG_AGO}, ReadAllAvailable())["row"] == 30


def test_rows_offered_after_an_available_now_query_began_are_left_for_the_next(clock: Clock) -> None:
    reader = reader_of(clock, started_at=LONG_AGO - 7)
    reader.prepareForTriggerAvailableNow()
    clock.now_s += 60
    assert reader.latestOffset(reader.initialOffset(), ReadAllAvailable()) == {"row": 70, "started_at": LONG_AGO - 7}


def test_a_restarted_reader_goes_on_from_the_offset_it_is_given(clock: Clock) -> None:
    reader = reader_of(clock, partitions=3)
    reader.initialOffset()
    end = {"row": 20, "started_at": LONG_AGO - 30}
    parts: list[Any] = list(reader.partitions(reader.initialOffset(), end))
    assert [(part.first, part.after, part.started_at) for part in parts] == [
        (0, 6, LONG_AGO - 30), (6, 13, LONG_AGO - 30), (13, 20, LONG_AGO - 30)
    ]  # fmt: skip
    assert reader.reportLatestOffset() == {"row": 300, "started_at": LONG_AGO - 30}
    assert list(reader.partitions(end, end)) == []


def test_a_checkpoint_of_another_trace_is_refused(clock: Clock) -> None:
    with pytest.raises(SpringtideError, match="checkpoint is at row 1001, but the trace ends with row 1000; restart it with"):
        reader_of(clock).partitions({"row": 0, "started_at": 0.0}, {"row": 1001, "started_at": 0.0})


def test_neither_a_partition_nor_a_reader_carries_the_trace(clock: Clock) -> None:
    reader = reader_of(clock, trace="generator:bursty-day")
    start = {"row": 50_000_000, "started_at": LONG_AGO}
    for part in reader.partitions(start, {"row": 50_010_000, "started_at": LONG_AGO}):
        assert len(pickle.dumps(part)) < 2000
    assert len(pickle.dumps(reader)) < 2000


def test_the_arrow_schema_is_the_one_spark_wants_and_large_payloads_are_split() -> None:
    assert to_arrow_schema(SCHEMA, timezone="UTC").equals(ARROW_SCHEMA)
    reader = ReplayReader(
        ReplayOptions(trace="generator:constant:rate_per_s=100,duration_s=1", payload_bytes=2**20, partitions=1)
    )
    batches = list(reader.read(reader.partitions()[0]))
    assert [batch.num_rows for batch in batches] == [16] * 6 + [4]
    assert all(batch.schema.equals(ARROW_SCHEMA) for batch in batches)
    assert all(len(payload.as_py()) == 2**20 for payload in batches[-1]["payload"])
