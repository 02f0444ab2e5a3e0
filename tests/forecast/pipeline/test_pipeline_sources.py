"""Inputs: which files are found, what each is taken for, and what is said of those that cannot be read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest

from springtide.errors import SpringtideError
from springtide.forecast.pipeline.options import PrepareOptions
from springtide.forecast.pipeline.sources import Source, files_in, look_at


def look(path: Path, **chosen: str) -> Source:
    (file,) = files_in([path])
    return look_at(file, PrepareOptions(**chosen))  # type: ignore[arg-type]


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


class TestFiles:
    def test_a_folder_is_searched_and_what_is_hidden_or_of_no_known_form_is_left_alone(self, tmp_path: Path) -> None:
        (tmp_path / "day=1").mkdir()
        (tmp_path / "_temporary").mkdir()
        for name in ("b.csv", "a.jsonl.gz", "day=1/part-0.parquet", "_SUCCESS", ".c.csv", "_temporary/d.csv", "notes.txt"):
            (tmp_path / name).write_text("x")

        found = [Path(file.path).relative_to(tmp_path).as_posix() for file in files_in([tmp_path, tmp_path / "b.csv"])]
        assert found == ["a.jsonl.gz", "b.csv", "day=1/part-0.parquet"]

    @pytest.mark.parametrize(
        ("name", "why"),
        [("nowhere.csv", "no such file"), ("empty", "no file to read"), ("notes.txt", "unknown kind of file '.txt'")],
    )
    def test_what_cannot_be_read_is_refused(self, tmp_path: Path, name: str, why: str) -> None:
        (tmp_path / "empty").mkdir()
        (tmp_path / "notes.txt").write_text("x")
        with pytest.raises(SpringtideError, match=why):
            files_in([tmp_path / name])

    def test_a_file_has_another_fingerprint_when_it_has_changed_or_is_read_otherwise(self, tmp_path: Path) -> None:
        path = written(tmp_path / "a.csv", "time,count\n0,1\n")
        (before,) = files_in([path])
        path.write_text("time,count\n0,1\n1,1\n")
        (after,) = files_in([path])

        usual = PrepareOptions()
        assert before.fingerprint(usual) != after.fingerprint(usual)
        assert after.fingerprint(usual) == after.fingerprint(PrepareOptions(split="4/1/1", refit=True))
        assert after.fingerprint(usual) != after.fingerprint(PrepareOptions(count_column="count"))


class TestKinds:
    def test_a_row_with_a_count_is_a_rate_file_and_one_without_an_event(self, tmp_path: Path) -> None:
        counts = look(written(tmp_path / "a.csv", "Timestamp, Count\n2024-01-01,1\n")).layout
        events = look(written(tmp_path / "b.csv", "host,unix_time,url\nx,0,/\n")).layout

        assert (counts.kind, counts.time, counts.amount, counts.are_rates) == ("rates", "Timestamp", "Count", False)
        assert (events.kind, events.time, events.amount, events.series) == ("events", "unix_time", None, None)

    def test_a_file_with_rates_only_has_rates(self, tmp_path: Path) -> None:
        path = written(tmp_path / "a.csv", "t,rate_per_s,load\n0,1,2\n")

        assert look(path).layout.are_rates
        assert not look(path, count_column="load").layout.are_rates
        both = written(tmp_path / "b.csv", "t,rate,count\n0,1,2\n")
        assert (look(both).layout.amount, look(both, rate_column="rate").layout.amount) == ("count", "rate")

    def test_a_kind_may_be_chosen(self, tmp_path: Path) -> None:
        path = written(tmp_path / "sensors.csv", "time,value,room\n0,21.5,a\n")

        layout = look(path, kind="events", series_column="ROOM").layout
        assert (layout.kind, layout.amount, layout.series) == ("events", None, "room")

    def test_packed_json_lines_and_parquet_are_looked_into_too(self, tmp_path: Path) -> None:
        with gzip.open(tmp_path / "a.jsonl.gz", "wt") as stream:
            stream.write(json.dumps({"series": "x", "time": 0, "rows": 3}) + "\n")
        pd.DataFrame({"time": [0], "user": ["x"]}).to_parquet(tmp_path / "b.parquet")

        found = look(tmp_path / "a.jsonl.gz")
        assert (found.file.name, found.layout.kind, found.layout.series, found.layout.amount) == (
            "a",
            "rates",
            "series",
            "rows",
        )
        assert look(tmp_path / "b.parquet").layout.kind == "events"

    def test_the_clock_of_a_journal_starts_when_it_was_made_and_that_of_a_simulation_in_1970(self, tmp_path: Path) -> None:
        run = {"kind": "run", "time_s": 100.0, "format": 1, "created_at": "2024-01-01T00:00:00Z", "step_s": None}
        live = look(written(tmp_path / "live.jsonl", json.dumps(run) + "\n"))
        simulated = look(written(tmp_path / "simulated.jsonl", json.dumps(run | {"step_s": 1.0}) + "\n"))

        assert live.layout.kind == simulated.layout.kind == "journal"
        assert live.start_s == 1_704_067_200.0 - 100.0
        assert simulated.start_s == 0.0


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "chosen", "why"),
        [
            ("", {}, "is empty"),
            ("time,count\n", {}, "has a header and no rows"),
            (
                "when,count\n0,1\n",
                {},
                "no column is called 'timestamp' or a usual word for it, only 'when', 'count'; name the time",
            ),
            ("time,load\n0,1\n", {"kind": "rates"}, "name the count column or the rate column"),
            ("time,load\n0,1\n", {"count_column": "laod"}, "no count column 'laod'; did you mean 'load'?"),
            ("time,load\n0,1\n", {"series_column": "hosts"}, "no series column 'hosts'"),
            ("time,load,load\n0,1,1\n", {"count_column": "load"}, "2 columns are named 'load'"),
            ("time,load\n0,1\n", {"kind": "journal"}, "is not a journal"),
        ],
    )
    def test_a_csv_file_that_cannot_be_used_is_refused(
        self, tmp_path: Path, text: str, chosen: dict[str, str], why: str
    ) -> None:
        with pytest.raises(SpringtideError) as refused:
            look(written(tmp_path / "a.csv", text), **chosen)
        assert why in str(refused.value)
        assert str(tmp_path / "a.csv") in str(refused.value)

    @pytest.mark.parametrize(
        ("text", "chosen", "why"),
        [
            ("[1]\n", {}, "each line must be a JSON object"),
            ("{\n", {}, "is not JSON lines: '{'"),
            ('{"time": 0}\n', {"kind": "journal"}, "its first line is not a 'run' record"),
            ('{"kind": "run", "format": 99}\n', {}, "journal format 99, and this Springtide reads up to 1"),
        ],
    )
    def test_json_lines_that_cannot_be_used_are_refused(
        self, tmp_path: Path, text: str, chosen: dict[str, str], why: str
    ) -> None:
        with pytest.raises(SpringtideError, match=why):
            look(written(tmp_path / "a.jsonl", text), **chosen)

    def test_a_file_that_is_not_what_its_name_says_is_refused(self, tmp_path: Path) -> None:
        for name in ("a.csv.gz", "a.parquet"):
            with pytest.raises(SpringtideError, match=name):
                look(written(tmp_path / name, "time,count\n0,1\n"))
