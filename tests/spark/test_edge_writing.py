"""What one task writes of a batch: one file, or none, and a word about it only when all of it is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from springtide.backends.spark.edges.log import EdgeLog, WrittenFile, read_entries
from springtide.backends.spark.edges.writing import _writer
from springtide.backends.spark.files import Folder
from springtide.monitor.ingest_times import nobody


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "0-a").mkdir(parents=True)
    return folder


def rows(*numbers: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"number": pa.array(numbers, pa.int64())})


def answers(data: Path, *batches: pa.RecordBatch) -> list[dict[str, object]]:
    write = _writer(str(data), "0-a")
    return [answer for given in write(iter(batches)) for answer in given.to_pylist()]


def test_a_task_writes_one_file_and_says_what_is_in_it(data: Path) -> None:
    (answer,) = answers(data, rows(1, 2), rows(3), rows(4, 5, 6))
    (file,) = (data / "0-a").iterdir()

    assert answer == {"path": f"0-a/{file.name}", "rows": 6, "bytes": file.stat().st_size}
    assert pq.read_table(file)["number"].to_pylist() == [1, 2, 3, 4, 5, 6]


def test_the_answer_has_the_columns_that_spark_was_told(data: Path) -> None:
    (answer,) = _writer(str(data), "0-a")(iter([rows(1)]))

    assert answer.schema.equals(pa.schema([("path", pa.string()), ("rows", pa.int64()), ("bytes", pa.int64())]))


def test_a_task_without_rows_writes_no_file(data: Path) -> None:
    assert answers(data) == []
    assert answers(data, rows(), rows()) == []
    assert list((data / "0-a").iterdir()) == []


def test_empty_batches_between_full_ones_do_not_matter(data: Path) -> None:
    (answer,) = answers(data, rows(), rows(1), rows(), rows(2), rows())

    assert answer["rows"] == 2
    assert pq.read_table(data / str(answer["path"]))["number"].to_pylist() == [1, 2]


def test_two_tasks_write_two_files_into_one_folder(data: Path) -> None:
    (one,), (other,) = answers(data, rows(1)), answers(data, rows(2))

    assert one["path"] != other["path"]
    assert len(list((data / "0-a").iterdir())) == 2


def test_types_and_nulls_are_kept(data: Path) -> None:
    moment = pa.timestamp("us", tz="Europe/Berlin")
    batch = pa.RecordBatch.from_pydict({"at": pa.array([0, None], moment), "tags": pa.array([["a"], None])})
    (answer,) = answers(data, batch)
    found = pq.read_table(data / str(answer["path"]))

    assert found.schema.equals(batch.schema)
    assert found.to_pylist() == batch.to_pylist()


def test_a_task_that_fails_on_the_way_says_nothing(data: Path) -> None:
    """What it has written by then may lie there: nobody was told of it, so nobody reads it."""

    def failing() -> Iterator[pa.RecordBatch]:
        yield rows(1, 2)
        raise ValueError("no such city")

    said: list[pa.RecordBatch] = []
    with pytest.raises(ValueError, match="no such city"):
        said.extend(_writer(str(data), "0-a")(failing()))
    assert said == []


def test_a_task_that_fails_at_once_writes_nothing(data: Path) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        raise ValueError("no such city")
        yield rows(1)

    with pytest.raises(ValueError, match="no such city"):
        list(_writer(str(data), "0-a")(failing()))
    assert list((data / "0-a").iterdir()) == []


def test_a_batch_with_a_failed_attempt_and_a_second_one_comes_once(tmp_path: Path) -> None:
    """The first attempt of a task fails after two rows, the second one succeeds, into the same folder."""

    def failing() -> Iterator[pa.RecordBatch]:
        yield rows(1, 2)
        raise ValueError("the executor is going")

    log = EdgeLog(Folder(str(tmp_path)), ["count"])
    write = _writer(log.folder.folder("data").uri, log.attempt_folder(0))
    with pytest.raises(ValueError, match="executor"):
        list(write(failing()))
    told = [answer for given in write(iter([rows(1, 2), rows(3)])) for answer in given.to_pylist()]
    log.publish(0, [WrittenFile(**answer) for answer in told], nobody())
    (entry,) = read_entries(log.folder, 0, 1)
    read = [pq.read_table(tmp_path / "data" / file.path)["number"].to_pylist() for file in entry.files]

    assert read == [[1, 2, 3]]
    assert len(list((tmp_path / "data" / entry.files[0].path).parent.iterdir())) == 2, "what the first one left is there"
    log.committed("count", 1)
    assert log.folder.folder("data").names() == [], "and goes with the entry"


def test_a_folder_that_is_not_there_is_an_error_not_a_silence(data: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(_writer(str(data), "1-b")(iter([rows(1)])))
