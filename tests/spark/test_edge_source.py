"""An edge as Spark reads it: where a batch ends, which task reads which file, and rows that come out as they went in."""

from __future__ import annotations

import datetime as dt
import decimal
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from springtide.backends.spark.edges.log import EdgeLog, WrittenFile
from springtide.backends.spark.edges.source import ROWS_PER_TASK, EdgeReader, EdgeSource, FilesPartition, _shared_out
from springtide.backends.spark.files import Folder
from springtide.errors import SpringtideError
from springtide.monitor.ingest_times import nobody

WORDS = t.StructType([t.StructField("word", t.StringType()), t.StructField("count", t.LongType())])


@pytest.fixture
def log(tmp_path: Path) -> EdgeLog:
    return EdgeLog(Folder(str(tmp_path / "edge")), ["count"])


def reader_of(log: EdgeLog, schema: t.StructType = WORDS, *, most_tasks: int = 4, max_rows: int | None = None) -> EdgeReader:
    return EdgeReader(Folder(log.folder.uri), "parse", schema, most_tasks, max_rows)


def publish(log: EdgeLog, batch_id: int, *sizes: int) -> None:
    """Entries whose files need not exist: nobody opens them before a task does."""
    files = [WrittenFile(path=f"{batch_id}-x/{i}.parquet", rows=rows, bytes=1) for i, rows in enumerate(sizes)]
    log.publish(batch_id, files, nobody())


def write(log: EdgeLog, batch_id: int, *tables: pa.Table) -> None:
    name = log.attempt_folder(batch_id)
    files = []
    for number, table in enumerate(tables):
        pq.write_table(table, f"{log.folder.uri}/data/{name}/{number}.parquet")
        files.append(WrittenFile(path=f"{name}/{number}.parquet", rows=table.num_rows, bytes=1))
    log.publish(batch_id, files, nobody())


def words(*pairs: tuple[str, int]) -> pa.Table:
    return pa.table({"word": [word for word, _ in pairs], "count": [count for _, count in pairs]})


def at(entry: int) -> dict[str, Any]:
    return {"edge": "parse", "entry": entry}


def rows_of(reader: EdgeReader, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    """What all tasks of a batch read."""
    parts = reader.partitions(start, end)
    return [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]


class TestOffsets:
    def test_an_offset_names_its_edge(self, log: EdgeLog) -> None:
        publish(log, 0, 5)
        reader = reader_of(log)

        for offset in (reader.initialOffset(), reader.latestOffset(at(0), ReadAllAvailable()), reader.reportLatestOffset()):
            assert offset["edge"] == "parse"

    def test_a_reader_begins_before_the_first_entry(self, log: EdgeLog) -> None:
        assert reader_of(log).initialOffset() == at(0)
        publish(log, 0, 5)
        assert reader_of(log).initialOffset() == at(0)

    def test_a_reader_that_comes_late_begins_before_the_first_entry_that_is_left(self, log: EdgeLog) -> None:
        for batch_id in range(3):
            publish(log, batch_id, 5)
        log.committed("count", 2)
        EdgeLog(log.folder, ["count", "late"])
        late = reader_of(log)

        assert late.initialOffset() == at(2)
        assert late.latestOffset(late.initialOffset(), ReadAllAvailable()) == at(3)

    def test_an_edge_that_nobody_has_opened_yet_is_empty(self, tmp_path: Path) -> None:
        early = EdgeReader(Folder(str(tmp_path / "nowhere")), "parse", WORDS, 4, None)

        assert early.initialOffset() == at(0)
        assert early.latestOffset(at(0), ReadAllAvailable()) == at(0)
        assert early.partitions(at(0), at(0)) == []

    def test_without_a_limit_a_batch_takes_all_that_is_there(self, log: EdgeLog) -> None:
        reader = reader_of(log)
        assert reader.latestOffset(at(0), ReadAllAvailable()) == at(0)
        for batch_id in range(3):
            publish(log, batch_id, 1000)

        assert reader.latestOffset(at(0), ReadAllAvailable()) == at(3)
        assert reader.latestOffset(at(3), ReadAllAvailable()) == at(3)

    @pytest.mark.parametrize(
        ("most", "entry"),
        [(1, 1), (10, 1), (11, 1), (29, 1), (30, 2), (59, 2), (60, 3), (61, 3), (99, 3), (100, 4), (10**9, 4)],
    )
    def test_a_limited_batch_takes_the_entries_that_fit_and_at_least_one(self, log: EdgeLog, most: int, entry: int) -> None:
        for batch_id, rows in enumerate((10, 20, 30, 40)):
            publish(log, batch_id, rows - 1, 1)

        assert reader_of(log).latestOffset(at(0), ReadMaxRows(most)) == at(entry)

    def test_a_limit_counts_from_where_the_reader_is(self, log: EdgeLog) -> None:
        for batch_id, rows in enumerate((10, 20, 30, 40)):
            publish(log, batch_id, rows)
        reader = reader_of(log)

        assert reader.latestOffset(at(1), ReadMaxRows(50)) == at(3)
        assert reader.latestOffset(at(3), ReadMaxRows(1)) == at(4)
        assert reader.latestOffset(at(4), ReadMaxRows(1)) == at(4)

    def test_a_reader_does_not_go_back(self, log: EdgeLog) -> None:
        """Its edge has fewer entries than it has read: somebody has put an old folder in its place."""
        publish(log, 0, 5)

        for limit in (ReadAllAvailable(), ReadMaxRows(3)):
            assert reader_of(log).latestOffset(at(7), limit) == at(7)

    def test_what_waits_is_reported_whatever_the_limit(self, log: EdgeLog) -> None:
        for batch_id in range(3):
            publish(log, batch_id, 10)
        reader = reader_of(log, max_rows=5)

        assert reader.latestOffset(at(0), reader.getDefaultReadLimit()) == at(1)
        assert reader.reportLatestOffset() == at(3)

    def test_the_limit_is_the_operators(self, log: EdgeLog) -> None:
        assert reader_of(log).getDefaultReadLimit() == ReadAllAvailable()
        assert reader_of(log, max_rows=70).getDefaultReadLimit() == ReadMaxRows(70)

    def test_a_limited_batch_looks_at_no_more_entries_than_it_needs(
        self, log: EdgeLog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for batch_id in range(50):
            publish(log, batch_id, 10)
        looked_at: list[str] = []
        read_text = Folder.read_text
        monkeypatch.setattr(Folder, "read_text", lambda self, name: looked_at.append(name) or read_text(self, name))

        assert reader_of(log).latestOffset(at(0), ReadMaxRows(30)) == at(3)
        assert len(looked_at) <= 5  # the head, three entries, and the one that is too many


class TestTasks:
    def test_few_rows_are_read_by_one_task(self, log: EdgeLog) -> None:
        publish(log, 0, 5, 5, 5)
        publish(log, 1, 5)
        (part,) = reader_of(log).partitions(at(0), at(2))

        assert isinstance(part, FilesPartition)
        assert sorted(part.paths) == ["0-x/0.parquet", "0-x/1.parquet", "0-x/2.parquet", "1-x/0.parquet"]

    def test_many_rows_are_shared_by_as_many_tasks_as_they_are_worth(self, log: EdgeLog) -> None:
        publish(log, 0, *[ROWS_PER_TASK // 2] * 6)
        parts = reader_of(log, most_tasks=8).partitions(at(0), at(1))

        assert [len(part.paths) for part in parts] == [2, 2, 2]

    def test_there_are_no_more_tasks_than_the_operator_may_have(self, log: EdgeLog) -> None:
        publish(log, 0, *[10 * ROWS_PER_TASK] * 6)
        parts = reader_of(log, most_tasks=3).partitions(at(0), at(1))

        assert [len(part.paths) for part in parts] == [2, 2, 2]

    def test_a_file_is_not_shared(self, log: EdgeLog) -> None:
        publish(log, 0, 10 * ROWS_PER_TASK)

        assert len(reader_of(log, most_tasks=8).partitions(at(0), at(1))) == 1

    def test_only_the_entries_of_the_batch_are_read(self, log: EdgeLog) -> None:
        for batch_id in range(4):
            publish(log, batch_id, 5)
        reader = reader_of(log)

        assert [p.paths for p in reader.partitions(at(1), at(2))] == [("1-x/0.parquet",)]
        assert reader.partitions(at(2), at(2)) == []

    def test_an_entry_that_is_gone_stops_the_reader(self, log: EdgeLog) -> None:
        for batch_id in range(3):
            publish(log, batch_id, 5)
        log.committed("count", 2)

        with pytest.raises(SpringtideError, match="entry 2 is missing"):
            reader_of(log).partitions(at(1), at(3))

    @given(sizes=st.lists(st.integers(1, 3 * ROWS_PER_TASK), max_size=40), most_tasks=st.integers(1, 8))
    def test_every_file_has_one_task_and_every_task_about_the_same_rows(self, sizes: list[int], most_tasks: int) -> None:
        files = [WrittenFile(path=str(i), rows=rows, bytes=1) for i, rows in enumerate(sizes)]
        shares = _shared_out(files, most_tasks)
        loads = [sum(sizes[int(path)] for path in share) for share in shares]

        assert sorted(int(path) for share in shares for path in share) == list(range(len(sizes)))
        assert all(shares)
        assert len(shares) == min(most_tasks, len(sizes), -(-sum(sizes) // ROWS_PER_TASK))
        if loads:
            assert max(loads) - min(loads) <= max(sizes)


class TestRows:
    def test_every_row_of_the_batch_is_read_once(self, log: EdgeLog) -> None:
        write(log, 0, words(("a", 1), ("b", 2)), words(("c", 3)))
        write(log, 1, words(("d", 4)))
        write(log, 2, words(("e", 5)))
        reader = reader_of(log)

        assert sorted(row["word"] for row in rows_of(reader, at(0), at(2))) == ["a", "b", "c", "d"]
        assert rows_of(reader, at(2), at(3)) == [{"word": "e", "count": 5}]

    def test_columns_come_in_the_order_and_the_types_that_spark_wants(self, log: EdgeLog) -> None:
        table = pa.table({"extra": [1.5], "count": pa.array([7], pa.int32()), "word": pa.array(["a"], pa.large_string())})
        write(log, 0, table)
        reader = reader_of(log)
        (part,) = reader.partitions(at(0), at(1))
        (batch,) = reader.read(part)

        assert batch.schema.equals(to_arrow_schema(WORDS, timezone="UTC"))
        assert batch.to_pylist() == [{"word": "a", "count": 7}]

    def test_a_column_that_is_not_there_is_an_error(self, log: EdgeLog) -> None:
        write(log, 0, pa.table({"word": ["a"]}))

        with pytest.raises(KeyError, match="count"):
            rows_of(reader_of(log), at(0), at(1))

    def test_a_moment_is_the_same_moment_whatever_the_time_zone_of_the_session(self, log: EdgeLog) -> None:
        schema = t.StructType([t.StructField("at", t.TimestampType())])
        noon = dt.datetime(2026, 7, 1, 12, 0, tzinfo=dt.UTC)
        write(log, 0, pa.table({"at": pa.array([noon, None], pa.timestamp("us", tz="America/New_York"))}))
        reader = reader_of(log, schema)
        (part,) = reader.partitions(at(0), at(1))
        (batch,) = reader.read(part)

        assert batch.schema.field("at").type == pa.timestamp("us", tz="UTC")
        assert batch["at"].to_pylist() == [noon, None]

    NOON = dt.datetime(2026, 7, 1, 12, 0, 0, 123456)  # noqa: DTZ001 - a time without a zone is one of the types

    @pytest.mark.parametrize(
        ("kind", "values"),
        [
            (t.BooleanType(), [True, None]),
            (t.ByteType(), [-128, None]),
            (t.FloatType(), [0.5, None]),
            (t.DateType(), [NOON.date(), None]),
            (t.TimestampNTZType(), [NOON, None]),
            (t.TimeType(), [NOON.time(), None]),
            (t.DayTimeIntervalType(), [dt.timedelta(days=-3, microseconds=1), None]),
            (t.DecimalType(38, 18), [decimal.Decimal("1.000000000000000001"), None]),
            (t.BinaryType(), [b"\x00\xff", None]),
            (t.NullType(), [None, None]),
            (t.ArrayType(t.StringType()), [["a", None], None, []]),
            (t.MapType(t.StringType(), t.ArrayType(t.LongType())), [[("a", [1, None])], None]),
            (t.StructType([t.StructField("x", t.LongType(), False), t.StructField("y", t.DateType())]), [{"x": 1, "y": None}]),
        ],
        ids=lambda value: value.simpleString() if isinstance(value, t.DataType) else "",
    )
    def test_a_value_comes_out_as_it_went_in(self, log: EdgeLog, kind: t.DataType, values: Sequence[Any]) -> None:
        """The types of an edge are those that Spark hands to Arrow in the query before it."""
        schema = t.StructType([t.StructField("value", kind)])
        sent = to_arrow_schema(schema, timezone="Asia/Kathmandu")
        write(log, 0, pa.Table.from_arrays([pa.array(values, sent.field("value").type)], schema=sent))
        reader = reader_of(log, schema)
        (part,) = reader.partitions(at(0), at(1))
        batches = list(reader.read(part))

        assert all(batch.schema.equals(to_arrow_schema(schema, timezone="UTC")) for batch in batches)
        assert [value for batch in batches for value in batch["value"].to_pylist()] == list(values)

    def test_a_value_that_must_be_there_stays_one(self, log: EdgeLog) -> None:
        schema = t.StructType([t.StructField("id", t.LongType(), nullable=False)])
        write(log, 0, pa.table({"id": [1, 2]}))
        reader = reader_of(log, schema)
        (part,) = reader.partitions(at(0), at(1))
        (batch,) = reader.read(part)

        assert not batch.schema.field("id").nullable
        assert batch["id"].to_pylist() == [1, 2]

    @pytest.mark.parametrize("name", ["word=taken", "_hidden", "a run [1]", "größe#1"])
    def test_the_name_of_a_folder_is_only_a_name(self, tmp_path: Path, name: str) -> None:
        """Not a partition column, not a hidden file, not a pattern."""
        log = EdgeLog(Folder(str(tmp_path / name)), ["count"])
        write(log, 0, words(("a", 1)))

        assert rows_of(reader_of(log), at(0), at(1)) == [{"word": "a", "count": 1}]

    def test_a_file_without_rows_is_no_error(self, log: EdgeLog) -> None:
        write(log, 0, words(("a", 1)).slice(0, 0), words(("b", 2)))

        assert rows_of(reader_of(log), at(0), at(1)) == [{"word": "b", "count": 2}]


class TestSource:
    def test_options_come_as_text(self, log: EdgeLog) -> None:
        options = {"folder": log.folder.uri, "edge": "parse", "mostTasks": "3"}
        unlimited, limited = (EdgeSource({**options, **more}).streamReader(WORDS) for more in ({}, {"maxRows": "50"}))

        assert unlimited == EdgeReader(log.folder, "parse", WORDS, 3, None)
        assert limited == EdgeReader(log.folder, "parse", WORDS, 3, 50)

    def test_a_reader_and_its_partitions_travel_to_other_processes(self, log: EdgeLog) -> None:
        write(log, 0, words(("a", 1)))
        used = reader_of(log)
        assert used.latestOffset(at(0), ReadAllAvailable()) == at(1)
        reader, parts = pickle.loads(pickle.dumps((used, used.partitions(at(0), at(1)))))

        assert [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()] == [
            {"word": "a", "count": 1}
        ]


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=12), most=st.integers(1, 30))
def test_limited_batches_read_the_whole_edge_in_order_and_stay_within_the_limit(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], most: int
) -> None:
    log = EdgeLog(Folder(str(tmp_path_factory.mktemp("edge"))), ["count"])
    for batch_id, rows in enumerate(sizes):
        publish(log, batch_id, rows)
    reader = reader_of(log, max_rows=most)
    offset, taken = reader.initialOffset(), []
    while (end := reader.latestOffset(offset, reader.getDefaultReadLimit())) != offset:
        batch = sizes[offset["entry"] : end["entry"]]
        assert sum(batch) <= most or len(batch) == 1
        assert end["entry"] == len(sizes) or sum(batch) + sizes[end["entry"]] > most, "one more would have fitted"
        taken += batch
        offset = end

    assert taken == sizes
