"""The application `stock-ticks`: ticks -> select -> windows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import pyarrow as pa

import springtide
from springtide.applications.answers import compared
from springtide.applications.results import ResultTable
from springtide.applications.shipped import Checked
from springtide.applications.stock_ticks.answer import Answer, Tick, answered
from springtide.applications.stock_ticks.bars import MinuteBars, made_bars, recorded_bars
from springtide.applications.stock_ticks.queries import ContinuousQuery, drawn_queries
from springtide.applications.stock_ticks.ticks import Ticks, ticks_of
from springtide.errors import require
from springtide.workload.recordings import data_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SHARDS = 8
_MINUTES_PER_HOUR = 60


class Day(StrEnum):
    """Days of the Frankfurt stock exchange (Xetra) that were recorded, and one that is made from a seed."""

    FIRST = "2017-07-28"
    SECOND = "2018-03-21"
    MADE = "made"


_FILES = {
    Day.FIRST: "xetra_20170728_minute_by_security.csv.gz",
    Day.SECOND: "xetra_20180321_minute_by_security.csv.gz",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StockTicks:
    """First, lowest, average, highest and last price of each company within x seconds, for many x and sectors at once.

    day: whose trades are replayed.
    from_hour: the hour (UTC) to begin with; None begins when trading does. hours: for how long.
    share: the part of all trades that become ticks. speed_up: seconds of the day in one of the replay.
    queries: how many there are, with a sector of `sectors` and a window of `shortest_window_s` to `longest_window_s` drawn
        for each from the seed; companies get their sectors in the same way.
    apart: ticks are selected in a query of its own, which has its own replicas, instead of in that of the windows.
    late_s: how long a window is kept beyond the longest one's end, for ticks that come late.

    Departures from the paper: it had a day's real ticks, here minutes are known and ticks are drawn within them; it does not
    say what kind its windows are, here they are tumbling, by the time of the tick; sectors are drawn.
    """

    name: ClassVar[str] = "stock-ticks"
    summary: ClassVar[str] = "35 continuous queries over the ticks of a stock exchange: prices per company in windows"
    reference: ClassVar[str] = (
        "Heinze, Pappalardo, Jerzak, Fetzer: Auto-scaling Techniques for Elastic Data Stream Processing, 2014, section V"
    )

    day: Day = Day.FIRST
    from_hour: float | None = None
    hours: float = 1.0
    share: float = 0.35
    speed_up: float = 24.0
    queries: int = 35
    sectors: int = 10
    shortest_window_s: int = 10
    longest_window_s: int = 300
    late_s: int = 60
    apart: bool = False
    max_rows_per_batch: int = 2_000
    seed: int = 7

    def __post_init__(self) -> None:
        require(self.from_hour is None or 0 <= self.from_hour < 24, f"from_hour must be between 0 and 24, not {self.from_hour}")
        require(self.hours > 0, f"hours must be above 0, not {self.hours}")
        require(0 < self.share <= 1, f"share must be above 0 and at most 1, not {self.share}")
        require(self.speed_up > 0, f"speed_up must be above 0, not {self.speed_up}")
        for name in ("queries", "sectors", "shortest_window_s", "max_rows_per_batch"):
            require(getattr(self, name) >= 1, f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("late_s", "seed"):
            require(getattr(self, name) >= 0, f"{name} must be 0 or more, not {getattr(self, name)}")
        require(
            self.longest_window_s >= self.shortest_window_s,
            f"longest_window_s ({self.longest_window_s}) is below shortest_window_s ({self.shortest_window_s})",
        )

    @classmethod
    def small(cls) -> Self:
        return cls(day=Day.MADE, hours=0.2, share=0.2, speed_up=36.0, longest_window_s=120, max_rows_per_batch=500)

    def data(self) -> str:
        file = self._file()
        if file is None:
            why = f": no {_FILES[self.day]} in {data_folder()}" if self.day in _FILES else ""
            return f"made from seed {self.seed}{why}"
        return f"{file.name}: {int(self._bars().trades.sum()):,} trades, of which {self.share:.0%} become ticks"

    def application(self, folder: Path) -> springtide.Application:
        # Operators need pyspark; options and rows do not.
        from springtide.applications.stock_ticks.operators import rejected, selected, windowed  # noqa: PLC0415

        app = springtide.Application(self.name, slo=springtide.SLO(latency_s=5))
        ticks = app.source("ticks", partial(self._replayed, folder=folder), ingest_time="offered_at")
        chosen = app.operator("select", partial(selected, queries=self.drawn()), ticks, inline=not self.apart)
        if self.apart:
            app.sink(chosen, partial(self._rejected(folder).save_some, rejected))
        else:
            app.sink(app.operator("rejected", rejected, chosen), self._rejected(folder).save)
        keep = partial(windowed, longest_s=self.longest_window_s, late_s=self.late_s)
        windows = app.operator("windows", keep, chosen, shards=_SHARDS, output_mode="update")
        app.sink(windows, self._windows(folder).save)
        return app

    def check(self, spark: SparkSession, folder: Path) -> list[Checked]:
        right = answered(plain(self.ticks().table), self.drawn())
        return [
            compared("windows", right, last_said(self._windows(folder).read(spark))),
            compared("rejected ticks", [], (tuple(row) for row in self._rejected(folder).rows(spark))),
        ]

    def drawn(self) -> tuple[ContinuousQuery, ...]:
        """The queries that are served."""
        shortest_s, longest_s = self.shortest_window_s, self.longest_window_s
        return drawn_queries(self.queries, sectors=self.sectors, shortest_s=shortest_s, longest_s=longest_s, seed=self.seed)

    def ticks(self) -> Ticks:
        """The ticks that are replayed."""
        return ticks_of(self._bars(), share=self.share, sectors=self.sectors, seed=self.seed)

    def _replayed(self, spark: SparkSession, folder: Path) -> DataFrame:
        ticks = self.ticks()
        trace = springtide.Trace.of_times(name=self.name, times_s=ticks.times_s)
        rows = springtide.Recorded.keep(ticks.table, folder / "rows" / "ticks.arrow")
        limit = self.max_rows_per_batch
        return springtide.replay(spark, trace, rows=rows, speed_up=self.speed_up, max_rows_per_batch=limit)

    def _file(self) -> Path | None:
        file = data_folder() / _FILES[self.day] if self.day in _FILES else None
        return file if file is not None and file.is_file() else None

    def _bars(self) -> MinuteBars:
        file = self._file()
        whole = made_bars(self.seed) if file is None else recorded_bars(file)
        begin = whole.first_minute if self.from_hour is None else self.from_hour * _MINUTES_PER_HOUR
        kept = whole.between(begin, begin + self.hours * _MINUTES_PER_HOUR)
        hour = begin / _MINUTES_PER_HOUR
        require(len(kept) > 0, f"there was no trade between hour {hour:g} and {hour + self.hours:g} of {self.day}")
        return kept

    def _windows(self, folder: Path) -> ResultTable:
        return ResultTable(folder / "results" / "windows")

    def _rejected(self, folder: Path) -> ResultTable:
        return ResultTable(folder / "results" / "rejected")


def plain(table: pa.Table) -> list[Tick]:
    """Ticks as Python values."""
    times = table["tick_at"].cast(pa.int64())
    columns = (table["company"], table["sector"], table["price_x10000"], times)
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def last_said(windows: DataFrame) -> list[Answer]:
    """Of each window the row with most ticks: rows of a window only grow."""
    import pyspark.sql.functions as F  # noqa: PLC0415 - only a check needs Spark

    said = ("first_x10000", "min_x10000", "avg_x10000", "max_x10000", "last_x10000", "ticks")
    found = windows.groupBy("query", "company", F.unix_micros("window_start").alias("start_us")).agg(
        F.max_by(F.struct(*said), "ticks").alias("said")
    )
    return [tuple(row) for row in found.select("query", "company", "start_us", "said.*").collect()]
