"""A folder of prepared data: what it says of itself is read as it was written, and nothing is read that cannot be trusted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from springtide.errors import SpringtideError
from springtide.forecast.pipeline.filling import Gaps
from springtide.forecast.pipeline.folders import publish, refuse_foreign, staging_in
from springtide.forecast.pipeline.options import PrepareOptions
from springtide.forecast.pipeline.prepared import (
    MANIFEST,
    UNFINISHED,
    Prepared,
    PreparedSeries,
    WindowCounts,
    open_prepared,
    windows_from,
    write_manifest,
)
from springtide.forecast.pipeline.sources import InputFile
from springtide.model.windows import Scale


def some(folder: Path, *, name: str = "clicks", days: tuple[str, ...] = ("train/2024-01-01",)) -> Prepared:
    series = PreparedSeries(
        name=name,
        kind="events",
        interval_s=60,
        past=12,
        future=4,
        scale=Scale(low_per_s=0.1, high_per_s=1 / 3, mean_per_s=0.2, deviation_per_s=0.05),
        intervals=100,
        gaps=Gaps(gaps=1, intervals=2, longest_intervals=2),
        start="2024-01-01T00:00:00Z",
        validation_start="2024-01-01T01:00:00Z",
        test_start="2024-01-01T01:20:00Z",
        end="2024-01-01T01:40:00Z",
        windows=WindowCounts(train=10, validation=5, test=5),
        written_rates="abc",
        written=dict.fromkeys(days, "def"),
    )
    files = (InputFile(path="/data/clicks.csv", size_bytes=10, modified_ns=1_700_000_000_123_456_789),)
    return Prepared(
        folder=folder, options=PrepareOptions(split="4/1/1"), inputs=files, series=(series,), warnings=("left out",)
    )


class TestManifest:
    def test_it_is_read_as_it_was_written(self, tmp_path: Path) -> None:
        write_manifest(some(tmp_path))

        assert open_prepared(tmp_path) == some(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == [MANIFEST]

    def test_a_series_is_found_by_its_name(self, tmp_path: Path) -> None:
        assert some(tmp_path).named("clicks").interval_s == 60
        with pytest.raises(SpringtideError, match="no series 'click'; did you mean 'clicks'"):
            some(tmp_path).named("click")

    def test_a_folder_without_prepared_data_is_refused(self, tmp_path: Path) -> None:
        for folder in (tmp_path, tmp_path / "nowhere"):
            with pytest.raises(SpringtideError, match="holds no prepared data"):
                open_prepared(folder)

    def test_a_damaged_one_is_refused_in_one_line(self, tmp_path: Path) -> None:
        write_manifest(some(tmp_path))
        file = tmp_path / MANIFEST
        whole = file.read_text()
        unscaled = json.loads(whole)
        unscaled["series"][0]["scale"]["high_per_s"] = 0.0
        for damaged in (whole[: len(whole) // 2], "", "[]", '{"format": 1}', json.dumps(unscaled)):
            file.write_text(damaged)
            with pytest.raises(SpringtideError, match=r"manifest.json: is damaged \(.*\); prepare the data again") as refused:
                open_prepared(tmp_path)
            assert "\n" not in str(refused.value)

    def test_one_of_another_format_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / MANIFEST).write_text('{"format": 2, "what": "ever"}')
        with pytest.raises(SpringtideError, match="has format 2, and this Springtide reads 1"):
            open_prepared(tmp_path)

    def test_a_folder_in_which_a_run_was_stopped_is_refused(self, tmp_path: Path) -> None:
        write_manifest(some(tmp_path))
        (tmp_path / UNFINISHED).touch()
        with pytest.raises(SpringtideError, match="stopped while it wrote; prepare the same inputs again"):
            open_prepared(tmp_path)


class TestFolder:
    def staged(self, folder: Path, text: str, *days: str, series: str = "clicks") -> None:
        for day in days:
            part, date = day.split("/")
            place = folder / "windows" / f"series={series}" / f"part={part}" / f"day={date}"
            place.mkdir(parents=True)
            (place / "part-0.parquet").write_text(text)

    def contents(self, folder: Path) -> dict[str, str]:
        return {
            str(file.parent.relative_to(folder / "windows")): file.read_text() for file in folder.rglob("windows/**/*.parquet")
        }

    def test_days_that_have_changed_are_replaced_and_those_that_are_no_more_removed(self, tmp_path: Path) -> None:
        before = some(tmp_path, days=("train/2024-01-01", "train/2024-01-02", "test/2024-01-03"))
        with staging_in(tmp_path) as staging:
            self.staged(staging, "old", *before.series[0].written)
            publish(before, staging, None)
        after = some(tmp_path, days=("train/2024-01-01", "train/2024-01-02", "test/2024-01-04"))
        with staging_in(tmp_path) as staging:
            self.staged(staging, "new", "train/2024-01-02", "test/2024-01-04")
            publish(after, staging, before)

        assert self.contents(tmp_path) == {
            "series=clicks/part=train/day=2024-01-01": "old",
            "series=clicks/part=train/day=2024-01-02": "new",
            "series=clicks/part=test/day=2024-01-04": "new",
        }
        assert open_prepared(tmp_path) == after

    def test_a_series_that_is_no_more_goes_with_its_rows(self, tmp_path: Path) -> None:
        before, after = some(tmp_path, name="a:b"), some(tmp_path, name="c")
        with staging_in(tmp_path) as staging:
            self.staged(staging, "old", "train/2024-01-01", series="a%3Ab")
            publish(before, staging, None)
        with staging_in(tmp_path) as staging:
            self.staged(staging, "new", "train/2024-01-01", series="c")
            publish(after, staging, before)

        assert self.contents(tmp_path) == {"series=c/part=train/day=2024-01-01": "new"}

    def test_what_a_killed_run_left_beside_the_rows_is_gone_in_the_next(self, tmp_path: Path) -> None:
        (tmp_path / ".staging").mkdir()
        (tmp_path / ".staging" / "half").write_text("x")
        with staging_in(tmp_path) as staging:
            assert list(staging.iterdir()) == []
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_with_something_else_in_it_is_refused(self, tmp_path: Path) -> None:
        refuse_foreign(tmp_path)
        refuse_foreign(tmp_path / "new")
        (tmp_path / "thesis.tex").write_text("x")
        with pytest.raises(SpringtideError, match=r"holds 'thesis.tex' and no manifest.json; choose an empty folder"):
            refuse_foreign(tmp_path)
        with pytest.raises(SpringtideError, match="is a file"):
            refuse_foreign(tmp_path / "thesis.tex")


def test_rows_become_windows_in_order_of_time_with_nan_for_what_was_made_up() -> None:
    frame = pd.DataFrame(
        {
            "origin": [7, 3],
            "past": [np.array([0.25, 0.5], dtype=np.float32), [0.0, 1.0]],
            "future": [[None, 0.5], np.array([0.75, np.nan], dtype=np.float32)],
        }
    )
    windows = windows_from(frame, 60.0)

    assert windows.origins.tolist() == [3, 7]
    assert windows.past.tolist() == [[0.0, 1.0], [0.25, 0.5]]
    assert windows.past.dtype == windows.future.dtype == np.float64
    assert np.isnan(windows.future).tolist() == [[False, True], [True, False]]
    assert len(windows_from(frame[:0], 60.0)) == 0
