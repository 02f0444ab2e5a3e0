"""Preparing data on Spark: every kind of input, day after day, after a crash, and on one core as on several executors."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from springtide.errors import SpringtideError
from springtide.forecast.pipeline import folders
from springtide.forecast.pipeline.options import PrepareOptions
from springtide.forecast.pipeline.prepared import MANIFEST, UNFINISHED, Prepared, open_prepared, windows_from
from springtide.forecast.pipeline.preparing import prepare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

START = pd.Timestamp("2024-01-01", tz="UTC")
MINUTES = 360


def level(minutes: np.ndarray) -> np.ndarray:
    return np.rint(60 * (5 + 3 * np.sin(minutes / 40))).astype(int)


def write_inputs(folder: Path) -> None:
    """The same load told in five ways, and three series that cannot be used."""
    minutes = np.arange(MINUTES)
    counts = level(minutes)
    times = START + pd.to_timedelta(minutes, unit="min")
    kept = (minutes < 100) | (minutes > 101)

    table = pd.DataFrame({"series": "in a/table: 1", "time": times.strftime("%Y-%m-%dT%H:%M:%S+01:00"), "value": counts})[kept]
    constant = table.assign(series="constant", value=7)
    negative = table.assign(series="negative", value=np.where(table.index == 200, -1, table["value"]))
    twice = pd.concat([table, table[:1]]).assign(series="twice")
    pd.concat([table, constant, negative, twice]).sample(frac=1, random_state=1).to_csv(folder / "table.csv.gz", index=False)

    events_ms = np.repeat(minutes * 60_000, counts // 30) + START.value // 10**6
    half = len(events_ms) // 2
    for name, some_ms in (("a", events_ms[:half]), ("b", events_ms[half:])):
        lines = (json.dumps({"t": int(ms), "series": "as events"}) for ms in some_ms)
        (folder / f"events {name}+1%20.jsonl").write_text("\n".join(lines) + "\n")

    half_minutes = START.tz_localize(None) + pd.to_timedelta(np.arange(2 * MINUTES) * 30, unit="s")
    pd.DataFrame({"time": half_minutes, "rate": np.repeat(counts / 60, 2)}).to_parquet(folder / "as rates.parquet")

    run = {"kind": "run", "time_s": 0.0, "format": 1, "created_at": "2024-01-01T00:00:00Z", "interval_s": 60.0, "step_s": None}
    with (folder / "journal.jsonl").open("w") as journal:
        journal.write(json.dumps(run) + "\n")
        for minute, count in enumerate(counts.tolist()):
            observed = {
                "kind": "observation",
                "start_s": 60.0 * minute,
                "end_s": 60.0 * minute + 60.0,
                "sources": [{"name": "clicks", "rows": None if minute == 50 else float(count)}],
                "operators": [{"name": "parse", "replicas": 1, "offered_rows": count / 2}],
            }
            journal.write(json.dumps(observed) + '\n{"kind":"decision","time_s":1.0,"interval":1}\n')
        journal.write('{"kind":"observation","start_s":')


def content(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Every row in the folder, by the folder that it is in."""
    files = [file for name in ("rates", "windows") for file in (folder / name).rglob("*.parquet")]
    return {str(file.parent.relative_to(folder)): pq.read_table(file, partitioning=None).to_pylist() for file in files}


def as_before(prepared: Prepared, folder: Path) -> Path:
    """A folder from which a run makes everything anew, with the boundaries and scales of another."""
    folder.mkdir()
    (folder / MANIFEST).write_bytes((prepared.folder / MANIFEST).read_bytes())
    (folder / UNFINISHED).touch()
    return folder


ON_ONE_CORE = """
import sys
from springtide.backends.spark.cluster.embedded import QUICK_JVM, session
from springtide.forecast.pipeline.options import PrepareOptions
from springtide.forecast.pipeline.preparing import prepare

settings = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": QUICK_JVM,
    "spark.sql.session.timeZone": "America/New_York",
    "spark.local.dir": sys.argv[3],
}
with session("one-core", master="local[1]", settings=settings) as spark:
    prepare(spark, [sys.argv[1]], sys.argv[2], PrepareOptions(), print)
"""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs [1]")
    write_inputs(folder)
    return folder


@pytest.fixture(scope="module")
def on_one_core(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """The same inputs prepared in another process, while the tests before the one that asks for it run."""
    scratch = tmp_path_factory.mktemp("one-core")
    arguments = [str(inputs), str(scratch / "prepared"), str(scratch / "local")]
    process = subprocess.Popen(
        [sys.executable, "-c", ON_ONE_CORE, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )

    def finished() -> Path:
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said.decode()
        return scratch / "prepared"

    return finished


@pytest.fixture(scope="module")
def prepared(
    spark: SparkSession, inputs: Path, on_one_core: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory
) -> Prepared:
    return prepare(spark, [inputs], tmp_path_factory.mktemp("prepared {x}") / "data", PrepareOptions(), lambda line: None)


class TestEveryKind:
    def test_series_are_found_in_tables_events_rates_and_journals(self, prepared: Prepared) -> None:
        found = [(series.name, series.kind, series.interval_s, series.intervals) for series in prepared.series]

        assert found == [
            ("as events", "events", 60, MINUTES),
            ("as rates", "rates", 30, 2 * MINUTES),
            ("in a/table: 1", "rates", 60, MINUTES),
            ("operator:parse", "journal", 60, MINUTES),
            ("source:clicks", "journal", 60, MINUTES),
        ]
        assert open_prepared(prepared.folder) == prepared

    def test_series_that_cannot_be_used_are_left_out_and_the_line_says_why(self, prepared: Prepared) -> None:
        constant, negative, twice = prepared.warnings

        assert constant.startswith("series 'constant': rates that are all 0.116667 rows/s have no scale")
        assert "series 'negative'" in negative
        assert "table.csv.gz has a count at 2024-01-01T02:20:00Z that is negative" in negative
        assert "table.csv.gz has several rows for 2023-12-31T23:00:00Z" in twice

    def test_each_way_of_telling_the_load_gives_the_same_rates(self, spark: SparkSession, prepared: Prepared) -> None:
        rates = prepared.rates(spark).orderBy("series", "index").toPandas()
        counts = level(np.arange(MINUTES))

        def of(name: str) -> pd.DataFrame:
            return rates[rates["series"] == name].reset_index(drop=True)

        table, journal = of("in a/table: 1"), of("source:clicks")
        assert table[~table["filled"]]["rate_per_s"].tolist() == (counts / 60)[~table["filled"]].tolist()
        assert journal[~journal["filled"]]["rate_per_s"].tolist() == pytest.approx((counts / 60)[~journal["filled"]].tolist())
        assert of("as rates")["rate_per_s"].tolist() == pytest.approx(np.repeat(counts / 60, 2).tolist())
        assert of("operator:parse")["rate_per_s"].tolist() == pytest.approx((counts / 2 / 60).tolist())
        assert of("as events")["rate_per_s"].tolist() == (counts // 30 / 60).tolist()
        assert np.flatnonzero(table["filled"]).tolist() == [100, 101]
        assert np.flatnonzero(journal["filled"]).tolist() == [50]
        assert table["rate_per_s"][100] == pytest.approx((2 * counts[99] + counts[102]) / 180), "a straight line"
        assert table["part"].value_counts().to_dict() == {"train": 240, "validation": 60, "test": 60}

    def test_times_are_those_of_the_files_in_utc(self, prepared: Prepared) -> None:
        starts = {series.name: series.start for series in prepared.series}

        assert starts.pop("in a/table: 1") == "2023-12-31T23:00:00Z", "its times were given an hour ahead of UTC"
        assert set(starts.values()) == {"2024-01-01T00:00:00Z"}

    def test_windows_are_read_as_models_want_them(self, spark: SparkSession, prepared: Prepared) -> None:
        series = prepared.named("in a/table: 1")
        rows = prepared.windows(spark, ["train"])
        windows = windows_from(rows.where(rows["series"] == series.name).toPandas(), series.interval_s)

        assert (series.past, series.future) == (30, 30)
        assert windows.origins.tolist() == list(range(29, 210))
        assert len(windows) == series.windows.train
        rates = level(np.arange(MINUTES)) / 60
        expected = (rates[70:100] - series.scale.low_per_s) / series.scale.span_per_s
        assert windows.past[windows.origins == 99][0] == pytest.approx(expected, abs=1e-6)
        assert np.flatnonzero(np.isnan(windows.future[windows.origins == 99][0])).tolist() == [0, 1], "nobody learns from a gap"
        assert not np.isnan(windows.past).any()

    def test_one_core_makes_the_same_rows_as_several_executors_and_whatever_the_time_zone_of_the_session(
        self, prepared: Prepared, on_one_core: Callable[[], Path]
    ) -> None:
        folder = on_one_core()

        assert content(folder) == content(prepared.folder)
        assert open_prepared(folder).series == prepared.series
        assert open_prepared(folder).warnings == prepared.warnings


class TestDayAfterDay:
    """Hours of two services; a day comes after the other, and then a day is corrected."""

    options = PrepareOptions(split="3d/1d/1d", past_s=6 * 3_600, future_s=3 * 3_600)

    def write_day(self, folder: Path, day: int, *, hours: int = 24, more: int = 0) -> Path:
        when = START + pd.to_timedelta(24 * day + np.arange(hours), unit="h")
        values = 1_000 + more + (np.arange(hours) * 37 + day * 11) % 24 * 100
        frame = pd.DataFrame({"time": when.strftime("%Y-%m-%d %H:%M:%S"), "count": values})
        path = folder / f"day-{day}.csv"
        pd.concat([frame.assign(series="a"), frame.assign(series="b", count=frame["count"] * 2)]).to_csv(path, index=False)
        return path

    def written_at(self, folder: Path) -> dict[str, int]:
        return {
            str(file.parent.relative_to(folder)): file.stat().st_mtime_ns for file in (folder / "windows").rglob("*.parquet")
        }

    def test_only_what_is_new_is_read_and_written_and_the_rows_are_those_of_a_run_from_scratch(
        self, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        inputs, folder, notes = tmp_path / "inputs", tmp_path / "prepared", []
        inputs.mkdir()
        for day in range(5):
            self.write_day(inputs, day)

        def run(place: Path) -> Prepared:
            notes.clear()
            return prepare(spark, [inputs], place, self.options, notes.append)

        first = run(folder)
        before = self.written_at(folder)
        assert notes[0] == "reading 1 to 5 of 5 new files"
        assert first.named("b").windows.train == 72 - 6 - 3 + 1

        assert run(folder) == first
        assert notes == ["nothing new: 5 files are as they were"]
        assert self.written_at(folder) == before

        self.write_day(inputs, 5, more=50_000)
        self.write_day(inputs, 1, hours=20, more=5)
        second = run(folder)
        after = self.written_at(folder)
        assert notes[0] == "reading 1 to 2 of 2 new files"
        assert second.named("a").scale == first.named("a").scale
        assert second.named("a").test_start == first.named("a").test_start
        assert second.named("a").gaps.intervals == 4
        changed = {path for path, when in after.items() if before.get(path) != when}
        days = [f"part=train/day=2024-01-0{day}" for day in (1, 2, 3)] + [f"part=test/day=2024-01-0{day}" for day in (5, 6)]
        assert changed == {f"windows/series={name}/{day}" for name in "ab" for day in days}, "and the days that foresee others"
        assert content(folder) == content(run(as_before(first, tmp_path / "scratch")).folder)

        self.write_day(inputs, 1)
        monkeypatch.setattr(folders, "move", self.failing_at(4, folders.move))
        with pytest.raises(KeyboardInterrupt):
            run(folder)
        monkeypatch.undo()
        with pytest.raises(SpringtideError, match="prepare the same inputs again"):
            open_prepared(folder)
        third = run(folder)
        assert notes[0] == "making rates of 2 series", "what was counted before the crash need not be read again"
        assert third.named("a").gaps.intervals == 0
        assert open_prepared(folder) == third
        rows = content(folder)
        for series in third.series:
            written = [len(rows[path]) for path in rows if path.startswith(f"windows/series={series.name}/part=train/")]
            assert sum(written) == series.windows.train
        old = {path for path, when in self.written_at(folder).items() if after.get(path) == when}
        assert not old, "nothing of what was there is trusted"
        assert sorted(path.name for path in folder.iterdir()) == ["counts", MANIFEST, "rates", "windows"]
        assert len(list((folder / "counts").iterdir())) == 6

    def failing_at(self, number: int, real: Callable[[Path, Path], None]) -> Callable[[Path, Path], None]:
        calls = iter(range(1, 1_000))

        def move(source: Path, target: Path) -> None:
            if next(calls) == number:
                raise KeyboardInterrupt
            real(source, target)

        return move


class TestRefusals:
    def refused(self, spark: SparkSession, path: Path, text: str, **chosen: Any) -> str:
        path.write_text(text)
        folder = path.parent / "prepared"
        with pytest.raises(SpringtideError) as refused:
            prepare(spark, [path], folder, PrepareOptions(**chosen), lambda line: None)
        assert "\n" not in str(refused.value)
        assert not (folder / MANIFEST).exists()
        return str(refused.value)

    def test_times_that_cannot_be_understood_are_refused(self, spark: SparkSession, tmp_path: Path) -> None:
        path = tmp_path / "a.csv"
        said = self.refused(spark, path, "time,count\n2024-01-01 00:00:00,1\n2024-01-01T01:00:00+02:00,1\n")
        assert "a.csv: mixed time zones: time '2024-01-01 00:00:00' (no zone) and '2024-01-01T01:00:00+02:00' (+0200)" in said
        assert "with one offset or without any (then they are UTC)" in said
        said = self.refused(spark, path, "time,user\n2024-01-01 00:00:00,x\n09:30:00,y\n")
        assert "a.csv: time '09:30:00' is neither a number of seconds nor an ISO time" in said

    def test_when_no_series_can_be_used_all_are_refused(self, spark: SparkSession, tmp_path: Path) -> None:
        rows = "".join(f"{60 * i},{'NaN' if i == 30 else i}\n" for i in range(60))
        said = self.refused(spark, tmp_path / "a.csv", "time,count\n" + rows)
        assert said.startswith("no series can be used: series 'a': ")
        assert "has a count at 1970-01-01T00:30:00Z that is not a finite number" in said

    def test_a_file_that_ends_too_early_is_refused(self, spark: SparkSession, tmp_path: Path) -> None:
        path = tmp_path / "a.csv.gz"
        rows = "".join(f"{60 * i},{i * 7919 % 1000}\n" for i in range(20_000))
        path.write_bytes(gzip.compress(("time,count\n" + rows).encode())[:-20_000])
        with pytest.raises(SpringtideError, match=r"a.csv.gz: cannot be read to its end"):
            prepare(spark, [path], tmp_path / "prepared", PrepareOptions(), lambda line: None)

    def test_a_series_that_a_new_file_spoils_stays_as_it_was(self, spark: SparkSession, tmp_path: Path) -> None:
        header, folder = "series,time,count\n", tmp_path / "prepared"
        for name, values in (("one.csv", range(60)), ("two.csv", range(-1, 59))):
            rows = "".join(f"{series},{60 * i},{value}\n" for i, value in enumerate(values) for series in (name[:3], "both"))
            (tmp_path / name).write_text(header + rows)
        before = prepare(spark, [tmp_path / "one.csv"], folder, PrepareOptions(), lambda line: None)
        rows_before = content(folder)
        after = prepare(spark, [tmp_path / "two.csv"], folder, PrepareOptions(), lambda line: None)

        assert [series.name for series in after.series] == ["both", "one"]
        assert after.named("both") == before.named("both")
        assert content(folder) == rows_before
        both, two = after.warnings
        assert both.endswith(
            "that is negative; correct the row, or remove it: it is then a gap (until then the series stays as it was)"
        )
        assert two.startswith("series 'two': ")

    def test_other_settings_than_before_are_refused_unless_it_is_a_refit(self, spark: SparkSession, tmp_path: Path) -> None:
        path, folder = tmp_path / "a.csv", tmp_path / "prepared"
        path.write_text("time,count\n" + "".join(f"{60 * i},{i % 10}\n" for i in range(60)))
        prepare(spark, [path], folder, PrepareOptions(), lambda line: None)
        with pytest.raises(SpringtideError, match=r"future_s is 120 and was None.*choose another folder, or refit"):
            prepare(spark, [path], folder, PrepareOptions(future_s=120), lambda line: None)
        again = prepare(spark, [path], folder, PrepareOptions(future_s=120, refit=True), lambda line: None)
        assert again.series[0].future == 2
        assert open_prepared(folder).options.future_s == 120
