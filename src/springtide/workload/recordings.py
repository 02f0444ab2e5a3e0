"""Real recordings that are known by name: which file each is in, and how it becomes a trace.

The files are not part of Springtide: they are read from a folder of the user's, `SPRINGTIDE_DATA`, and nothing is copied.

Rules: no row is made up but for steps that are missing between recorded ones, which the trace counts. Where a recorder or
a server stood still for days, a recording ends and another begins.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from springtide.errors import InvalidValue, SpringtideError, nearest, require
from springtide.workload.columns import Column
from springtide.workload.reading import read_trace, trace_of
from springtide.workload.tables import Table, open_table
from springtide.workload.traces import Trace

FOLDER_VARIABLE = "SPRINGTIDE_DATA"
DEFAULT_FOLDER = "../shared/data"

_DAY_S = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One trace in a file; a file may hold several."""

    name: str
    file: str
    reader: Callable[[Path], Trace]

    def read(self, folder: Path) -> Trace:
        return replace(self.reader(folder / self.file), name=self.name)


def data_folder() -> Path:
    """The folder that the environment names, or the usual one."""
    return Path(os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER)


def recordings_in(folder: Path) -> list[Recording]:
    """Every known recording whose file is in the folder."""
    if not folder.is_dir():
        raise SpringtideError(f"{folder}: there is no such folder; set {FOLDER_VARIABLE} to the one with the recordings")
    found = [recording for recording in RECORDINGS.values() if (folder / recording.file).is_file()]
    if not found:
        files = dict.fromkeys(recording.file for recording in RECORDINGS.values())
        raise SpringtideError(f"{folder}: has no recording that is known by name ({', '.join(files)}); name files instead")
    return found


def recording_in(folder: Path, name: str) -> Recording:
    """The recording of that name, if its file is in the folder."""
    if name not in RECORDINGS:
        raise SpringtideError(f"there is no recording {name!r}; {nearest(name, RECORDINGS)}")
    found = RECORDINGS[name]
    if found not in recordings_in(folder):
        raise SpringtideError(f"{folder / found.file}: there is no such file, and the recording {name!r} is in it")
    return found


def _series(path: Path, series: str) -> Trace:
    """The rows of a table of many series that belong to one of them."""
    table = open_table(path)
    mine = pc.equal(_column(table, "series").cells, series)

    def only_mine(column: Column) -> Column:
        return replace(column, cells=column.cells.filter(mine))

    return trace_of(series, only_mine(_column(table, "timestamp")), only_mine(_column(table, "value")))


def _without_nights(path: Path, recorded_s: int) -> Trace:
    """Days of seconds of which only the first are recorded, one after the other without the rest."""
    whole = read_trace(path)
    require(whole.duration_s % _DAY_S == 0, f"{path}: does not have whole days, but {whole.duration_s:,.0f} s")
    days = whole.counts.reshape(-1, _DAY_S)
    return replace(whole, counts=days[:, :recorded_s].ravel())


def _between(path: Path, start_s: float, end_s: float | None) -> Trace:
    whole = read_trace(path)
    kept = whole.cut(start_s, whole.duration_s if end_s is None else end_s)
    return replace(kept, gaps=0)


def _trades_per_minute(path: Path) -> Trace:
    """Trades of all securities together. A minute without a row had no trade."""
    table = open_table(path)
    stamps = pc.binary_join_element_wise(_column(table, "Date").cells, _column(table, "Time").cells, " ")
    times = Column(file=path, name="Time", cells=stamps).times()
    trades = _column(table, "NumberOfTrades").amounts()
    minutes = np.rint(times.offsets_s / 60).astype(np.int64)
    counts = np.bincount(minutes, weights=trades).astype(np.float64)
    return Trace(name=path.name, step_s=60.0, counts=counts, start=times.start)


def _arrivals_per_second(path: Path, time_column: str) -> Trace:
    """Single arrivals, counted."""
    times = _column(open_table(path), time_column).times()
    counts = np.bincount(times.offsets_s.astype(np.int64)).astype(np.float64)
    return Trace(name=path.name, step_s=1.0, counts=counts, start=times.start)


def _column(table: Table, name: str) -> Column:
    if name not in table.names:
        raise InvalidValue(f"{table.file}: has no column {name!r}, only {', '.join(table.names)}: is this the recording?")
    return table.column(table.names.index(name))


_NAB = "nab_tweets_taxi.csv.gz"
_NASA = "nasa_http_199507_08_1min.csv.gz"
_NASA_PAUSE_S = 27 * _DAY_S + (13 * 60 + 33) * 60  # 28 July 13:32 was the last minute of that recorder
_NASA_RESUMED_S = 31 * _DAY_S
_TWITTER_DAY_S = 84_661  # nothing was recorded after 23:31

RECORDINGS: Mapping[str, Recording] = {
    recording.name: recording
    for recording in (
        Recording(name="bgelasor-periodic", file="bgelasor_periodic.csv.gz", reader=read_trace),
        Recording(name="bgelasor-fluctuating", file="bgelasor_fluctuating.csv.gz", reader=read_trace),
        *(
            Recording(name=f"nab-{ticker.lower()}", file=_NAB, reader=partial(_series, series=f"tweets_{ticker}"))
            for ticker in ("AAPL", "AMZN", "CRM", "FB", "IBM", "KO", "PFE")
        ),
        Recording(name="nab-taxi", file=_NAB, reader=partial(_series, series="nyc_taxi_passengers_30min")),
        Recording(name="xetra-2017", file="xetra_20170728_minute_by_security.csv.gz", reader=_trades_per_minute),
        Recording(name="xetra-2018", file="xetra_20180321_minute_by_security.csv.gz", reader=_trades_per_minute),
        Recording(name="covid-usc", file="covid_tweets_usc_20200122_0131_1min.csv.gz", reader=read_trace),
        Recording(name="covid-rpi", file="covid_tweets_rpi_20200317_0408_1min.csv.gz", reader=read_trace),
        Recording(name="covid-rpi-seconds", file="covid_tweets_rpi_20200401_0402_1s.csv.gz", reader=read_trace),
        Recording(
            name="twitter",
            file="twitter_stream_202108_day01_15_1s.parquet",
            reader=partial(_without_nights, recorded_s=_TWITTER_DAY_S),
        ),
        Recording(name="nasa-july", file=_NASA, reader=partial(_between, start_s=0.0, end_s=_NASA_PAUSE_S)),
        Recording(name="nasa-august", file=_NASA, reader=partial(_between, start_s=_NASA_RESUMED_S, end_s=None)),
        Recording(name="nasa-launch", file="nasa_http_19950711_14_1s.csv.gz", reader=read_trace),
        Recording(name="worldcup98", file="worldcup98_to_0705_1min.csv.gz", reader=read_trace),
        Recording(
            name="azure-llm",
            file="azure_llm_20231116_conv_requests.csv.gz",
            reader=partial(_arrivals_per_second, time_column="TIMESTAMP"),
        ),
    )
}
