"""What a batch reads, as Spark has written it into the checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from springtide.backends.spark.files import Folder
from springtide.backends.spark.offsets import batch_offsets, edge_entries, rows_reached

METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":1772366400000,"conf":{"spark.sql.shuffle.partitions":"8"}}'


def checkpoint(folder: Path, **batches: list[str]) -> Folder:
    """A checkpoint as Spark leaves it: one file per batch, one line per source."""
    (folder / "offsets").mkdir()
    for name, lines in batches.items():
        (folder / "offsets" / name.removeprefix("batch_")).write_text("\n".join(["v1", METADATA, *lines]))
    return Folder(str(folder))


class TestBatchOffsets:
    def test_one_for_each_source_in_order(self, tmp_path: Path) -> None:
        found = checkpoint(
            tmp_path,
            batch_0=['{"edge":"parse","entry":3}', '{"clicks":{"0":10,"1":5}}'],
            batch_1=['{"edge":"parse","entry":4}', '{"clicks":{"0":12,"1":5}}'],
        )

        assert batch_offsets(found, 0) == [{"edge": "parse", "entry": 3}, {"clicks": {"0": 10, "1": 5}}]
        assert batch_offsets(found, 1) == [{"edge": "parse", "entry": 4}, {"clicks": {"0": 12, "1": 5}}]

    def test_a_source_that_had_nothing_yet(self, tmp_path: Path) -> None:
        found = checkpoint(tmp_path, batch_0=["-", '{"edge":"parse","entry":3}'])

        assert batch_offsets(found, 0) == [None, {"edge": "parse", "entry": 3}]

    def test_offsets_that_are_plain_numbers(self, tmp_path: Path) -> None:
        """Spark's `rate` source counts seconds."""
        assert batch_offsets(checkpoint(tmp_path, batch_0=["17"]), 0) == [17]

    def test_a_batch_that_is_not_there_has_read_nothing(self, tmp_path: Path) -> None:
        found = checkpoint(tmp_path, batch_0=["17"])

        assert batch_offsets(found, 1) == []
        assert batch_offsets(found, -1) == []
        assert batch_offsets(Folder(str(tmp_path / "nowhere")), 0) == []


class TestEdgeEntries:
    def test_by_edge_whatever_else_is_read(self) -> None:
        offsets = [{"edge": "parse", "entry": 3}, None, 17, {"clicks": {"0": 10}}, {"edge": "views", "entry": 9}, {"row": 5}]

        assert edge_entries(offsets) == {"parse": 3, "views": 9}
        assert edge_entries([]) == {}

    def test_a_topic_may_be_called_edge(self) -> None:
        assert edge_entries([{"edge": {"0": 10}}, {"edge": "parse", "entry": 3}]) == {"parse": 3}

    @pytest.mark.parametrize("entries", [(5, 6), (6, 5), (6, 6, 5)])
    def test_of_several_readers_of_one_edge_the_slowest_counts(self, entries: tuple[int, ...]) -> None:
        """What it has not read must not be deleted."""
        offsets: list[Any] = [{"edge": "parse", "entry": entry} for entry in entries]

        assert edge_entries([*offsets, {"edge": "views", "entry": 2}]) == {"parse": 5, "views": 2}


class TestRowsReached:
    @pytest.mark.parametrize(
        ("offset", "rows"),
        [
            ({"row": 0, "started_at": 1.5}, 0.0),
            ({"row": 7, "started_at": 1.5}, 7.0),
            ({"clicks": {"0": 10, "1": 5}}, 15.0),
            ({"clicks": {"0": 10}, "views": {"0": 100, "1": 1}}, 111.0),
            ({"clicks": {}}, 0.0),
        ],
    )
    def test_an_offset_that_counts_rows(self, offset: Any, rows: float) -> None:
        assert rows_reached(offset) == rows

    @pytest.mark.parametrize(
        "offset",
        [
            None,
            17,
            "17",
            [1, 2],
            {"logOffset": 3},
            {"offset": 3, "timestamp": 1772366400000},
            {"sourceVersion": 1, "reservoirVersion": 7, "index": 3, "isStartingVersion": False},
            {"clicks": {"0": 10}, "version": 1},
            {"clicks": {"0": "earliest"}},
        ],
    )
    def test_an_offset_that_does_not(self, offset: Any) -> None:
        assert rows_reached(offset) is None

    def test_offsets_of_one_source_differ_by_the_rows_between_them(self, tmp_path: Path) -> None:
        lines = [
            json.dumps({"clicks": {str(part): count for part, count in enumerate(counts)}}) for counts in ((10, 5), (12, 9))
        ]
        found = checkpoint(tmp_path, batch_0=lines[:1], batch_1=lines[1:])
        (before,), (after,) = batch_offsets(found, 0), batch_offsets(found, 1)
        reached, offered = rows_reached(before), rows_reached(after)

        assert reached is not None
        assert offered is not None
        assert offered - reached == 6

    def test_a_topic_may_be_called_row(self) -> None:
        assert rows_reached({"row": {"0": 10, "1": 5}}) == 15.0
