"""Real recordings, known by name: each is what its source says, where the folder is here; the catalogue works without it."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from springtide.errors import SpringtideError
from springtide.workload.recordings import RECORDINGS, data_folder, recording_in, recordings_in
from springtide.workload.traces import Trace

DATA = Path(os.environ.get("SPRINGTIDE_DATA", Path(__file__).parents[3] / "shared" / "data"))


def recorded(name: str) -> Trace:
    path = DATA / RECORDINGS[name].file
    if not path.exists():
        pytest.skip(f"{path} is not here")
    return recording_in(DATA, name).read(DATA)


def gzipped(folder: Path, name: str, *lines: str) -> None:
    (folder / name).write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))


# What the sources say of themselves


@pytest.mark.parametrize(("names", "rows"), [
    (("nasa-july", "nasa-august"), 3_461_610),
    (("xetra-2017",), 394_607),
    (("xetra-2018",), 364_208),
    (("azure-llm",), 19_366),
    (("twitter",), 82_328_082),  # without the nights, which have no rows
    (("covid-usc",), 11_579_224),
    (("covid-rpi",), 29_344_654),
    (("covid-rpi-seconds",), 3_195_027),
    (("nasa-launch",), 391_249),
])  # fmt: skip
def test_no_row_is_lost_or_made_up(names, rows):
    assert sum(recorded(name).rows for name in names) == rows
    assert all(recorded(name).gaps == 0 for name in names)


@pytest.mark.parametrize(("name", "peak_per_minute", "at"), [
    ("worldcup98", 225_138, "1998-06-29T16:27:00"),
    ("xetra-2017", 3_893, "2017-07-28T07:06:00"),
    ("xetra-2018", 3_237, "2018-03-21T11:43:00"),
])  # fmt: skip
def test_the_busiest_minute_is_the_one_that_is_told_of(name, peak_per_minute, at):
    trace = recorded(name)
    busiest = int(np.argmax(trace.counts))
    assert trace.counts[busiest] == peak_per_minute
    assert trace.cut(busiest * 60.0, (busiest + 1) * 60.0).start == at


@pytest.mark.parametrize(("name", "step_s", "steps", "gaps", "start"), [
    ("bgelasor-periodic", 300.0, 17_568, 72, "2019-03-08T00:00:00"),
    ("bgelasor-fluctuating", 600.0, 8_784, 38, "2019-03-08T00:00:00"),
    ("nab-amzn", 300.0, 15_831, 0, "2015-02-26T21:42:53"),
    ("nab-ko", 300.0, 15_851, 0, "2015-02-26T21:42:53"),
    ("nab-taxi", 1800.0, 10_320, 0, "2014-07-01T00:00:00"),
    ("nasa-july", 60.0, 39_693, 0, "1995-07-01T00:00:00"),
    ("nasa-august", 60.0, 44_641, 0, "1995-08-01T00:00:00"),
    ("worldcup98", 60.0, 95_190, 10, "1998-04-30T21:30:00"),
    ("twitter", 1.0, 15 * 84_661, 0, None),
])  # fmt: skip
def test_steps(name, step_s, steps, gaps, start):
    trace = recorded(name)
    assert (trace.name, trace.step_s, trace.steps, trace.gaps, trace.start) == (name, step_s, steps, gaps, start)


@pytest.mark.parametrize(("name", "peak_to_mean"), [("nab-amzn", 31), ("nab-ko", 197), ("worldcup98", 19)])
def test_peaks_stand_as_high_as_is_told(name, peak_to_mean):
    trace = recorded(name)
    assert round(trace.peak_rate_per_s / trace.mean_rate_per_s) == peak_to_mean


def test_every_series_of_a_file_is_a_trace_of_its_own():
    names = [name for name in RECORDINGS if name.startswith("nab-")]
    assert len(names) == 8
    assert sum(recorded(name).steps - recorded(name).gaps for name in names) == 121_390


def test_no_night_is_left_in_the_stream_of_tweets():
    counts = recorded("twitter").counts
    silent = np.flatnonzero(np.diff(np.concatenate(([0], counts > 0, [0])).astype(int)))
    assert (np.diff(silent)[1::2]).max() < 300  # seconds: it has short pauses of its own


def test_all_of_them_are_found():
    if not DATA.is_dir():
        pytest.skip(f"{DATA} is not here")
    assert [r.name for r in recordings_in(DATA)] == list(RECORDINGS)


# How they are read, in files made up here


def test_trades_of_all_securities_are_added_up_and_a_minute_without_any_has_none(tmp_path):
    gzipped(
        tmp_path,
        "xetra_20170728_minute_by_security.csv.gz",
        "Date,Time,ISIN,NumberOfTrades",
        "2017-07-28,07:00,A,10",
        "2017-07-28,07:00,B,5",
        "2017-07-28,07:02,A,1",
    )
    trace = recording_in(tmp_path, "xetra-2017").read(tmp_path)
    assert (trace.step_s, trace.counts.tolist(), trace.start) == (60.0, [15.0, 0.0, 1.0], "2017-07-28T07:00:00")


def test_arrivals_are_counted_by_the_second(tmp_path):
    gzipped(
        tmp_path,
        "azure_llm_20231116_conv_requests.csv.gz",
        "TIMESTAMP,ContextTokens,GeneratedTokens",
        "2023-11-16 18:15:46.6805900,374,44",
        "2023-11-16 18:15:46.9951690,396,109",
        "2023-11-16 18:15:49.0000000,1,1",
    )
    assert recording_in(tmp_path, "azure-llm").read(tmp_path).counts.tolist() == [2.0, 0.0, 1.0]


def test_one_series_of_many_is_read_alone(tmp_path):
    gzipped(
        tmp_path,
        "nab_tweets_taxi.csv.gz",
        "series,timestamp,value",
        "tweets_KO,2015-02-26 21:42:53,1",
        "tweets_KO,2015-02-26 21:47:53,3",
        "tweets_FB,2015-02-26 21:42:53,7",
        "tweets_FB,2015-02-26 21:47:53,8",
        "tweets_FB,2015-02-26 21:57:53,4",
    )
    assert recording_in(tmp_path, "nab-ko").read(tmp_path).counts.tolist() == [1.0, 3.0]
    facebook = recording_in(tmp_path, "nab-fb").read(tmp_path)
    assert (facebook.counts.tolist(), facebook.gaps) == ([7.0, 8.0, 6.0, 4.0], 1)


def test_nights_are_left_out(tmp_path):
    counts = np.concatenate([np.full(84_661, 2), np.zeros(1_739), np.full(84_661, 3), np.zeros(1_739)]).astype(np.int16)
    table = pa.table({"second": np.arange(counts.size, dtype=np.int32), "count": counts})
    pq.write_table(table, tmp_path / RECORDINGS["twitter"].file)
    trace = recording_in(tmp_path, "twitter").read(tmp_path)
    assert trace.steps == 2 * 84_661
    assert trace.counts.min() == 2.0


# What is refused


def refusal(folder: Path, name: str | None = None) -> str:
    with pytest.raises(SpringtideError) as refused:
        recordings_in(folder) if name is None else recording_in(folder, name).read(folder)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_folder_that_is_not_there(tmp_path):
    assert "SPRINGTIDE_DATA" in refusal(tmp_path / "nothing")
    assert "SPRINGTIDE_DATA" in refusal(tmp_path / "nothing", "twitter")


def test_a_folder_without_recordings(tmp_path):
    assert "worldcup98_to_0705_1min.csv.gz" in refusal(tmp_path)


def test_a_name_that_is_nearly_right(tmp_path):
    assert "did you mean 'nasa-august'?" in refusal(tmp_path, "nasa-agust")


def test_a_recording_whose_file_is_missing(tmp_path):
    gzipped(tmp_path, "bgelasor_periodic.csv.gz", "timestamp,count", "2019-03-08 00:00:00,1")
    assert "twitter_stream_202108" in refusal(tmp_path, "twitter")


def test_a_file_that_is_something_else(tmp_path):
    gzipped(tmp_path, "azure_llm_20231116_conv_requests.csv.gz", "when,what", "1,2")
    assert "no column 'TIMESTAMP'" in refusal(tmp_path, "azure-llm")


def test_a_day_that_is_not_whole(tmp_path):
    table = pa.table({"second": np.arange(100, dtype=np.int32), "count": np.ones(100, dtype=np.int16)})
    pq.write_table(table, tmp_path / RECORDINGS["twitter"].file)
    assert "whole days" in refusal(tmp_path, "twitter")


def test_the_folder_is_the_one_that_the_environment_names(monkeypatch, tmp_path):
    monkeypatch.setenv("SPRINGTIDE_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.delenv("SPRINGTIDE_DATA")
    assert data_folder() == Path("../shared/data")
