"""Rows that a maker makes for a replay, or that were recorded."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.cloudpickle import register_pickle_by_value
from pyspark.sql import SparkSession

import springtide
from springtide.errors import InvalidValue, SpringtideError
from springtide.workload.traces import Trace

register_pickle_by_value(sys.modules[__name__])

TRACE = Trace(name="three steps", step_s=2.0, counts=np.array([3.0, 0.0, 5.0]))


@dataclass(frozen=True, slots=True)
class Squares:
    seed: int

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([("square", pa.int64()), ("second", pa.float64()), ("at", pa.timestamp("us", tz="UTC"))])

    def made(self, first: int, after: int, elapsed_s: np.ndarray) -> pa.RecordBatch:
        squares = np.arange(first, after) ** 2 + self.seed
        at = pa.array((elapsed_s * 1e6).astype(np.int64), pa.int64()).cast(pa.timestamp("us", tz="UTC"))
        return pa.RecordBatch.from_arrays([pa.array(squares), pa.array(elapsed_s), at], schema=self.schema)


@pytest.mark.spark
def test_a_stream_and_a_batch_have_the_rows_that_the_maker_makes(spark: SparkSession, tmp_path: Path) -> None:
    wanted = [(n, n * n + 7) for n in range(8)]
    stream = springtide.replay(spark, TRACE, rows=Squares(7), speed_up=100.0, started_at=1.0, max_rows_per_batch=3)
    query = (
        stream.writeStream.format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    read = spark.read.parquet(str(tmp_path / "out"))

    assert sorted((r.row, r.square) for r in read.collect()) == wanted
    batch = springtide.replayed(spark, TRACE, rows=Squares(7), speed_up=100.0, started_at=1.0)
    assert batch.columns == ["row", "offered_at", "square", "second", "at"]
    assert read.exceptAll(batch).count() == batch.exceptAll(read).count() == 0
    seconds = [r.second for r in batch.orderBy("row").collect()]
    np.testing.assert_allclose(seconds, [0, 2 / 3, 4 / 3, 4, 4.4, 4.8, 5.2, 5.6])  # of the trace, whatever the speed-up


@pytest.mark.spark
def test_recorded_rows_come_as_they_were_recorded(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"word": [f"w{n}" for n in range(8)], "n": list(range(8))})
    recorded = springtide.Recorded.keep(table, tmp_path / "rows" / "words.arrow")

    rows = springtide.replayed(spark, TRACE, rows=recorded, partitions=3).orderBy("row").collect()

    assert [(r.row, r.word, r.n) for r in rows] == [(n, f"w{n}", n) for n in range(8)]


def test_the_same_rows_are_not_written_again_and_others_are(tmp_path: Path) -> None:
    path = tmp_path / "words.arrow"
    springtide.Recorded.keep(pa.table({"n": [1, 2]}), path)
    before = path.stat().st_mtime_ns

    springtide.Recorded.keep(pa.table({"n": [1, 2]}), path)
    assert path.stat().st_mtime_ns == before
    other = springtide.Recorded.keep(pa.table({"n": [3, 4]}), path)
    assert other.made(1, 2, np.zeros(1)).to_pydict() == {"n": [4]}
    assert [file.name for file in tmp_path.iterdir()] == ["words.arrow"]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "words.arrow"
    path.write_bytes(b"ARROW1 no")

    with pytest.raises(SpringtideError, match=r"words\.arrow: the recorded rows cannot be read"):
        _ = springtide.Recorded(str(path)).schema


def test_times_of_single_arrivals_are_a_trace() -> None:
    trace = Trace.of_times(name="doors", times_s=np.array([0.5, 3.9, 4.0]), step_s=2.0)

    assert trace.counts.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(InvalidValue, match="never fall"):
        Trace.of_times(name="doors", times_s=np.array([2.0, 1.0]))
