"""The application `taxi-routes`: parse -> area -> route -> count -> partial-rank -> rank."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import springtide
from springtide.applications.answers import compared
from springtide.applications.results import ResultTable
from springtide.applications.shipped import Checked
from springtide.applications.taxi_routes.answer import Change, answered
from springtide.applications.taxi_routes.trips import Trips, made_lines, recorded_lines, trips_of, with_company
from springtide.errors import require
from springtide.workload.recordings import data_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SHARDS = 8


class Recording(StrEnum):
    """Trips of the grand challenge that were recorded, and an hour that is made from a seed."""

    NEW_YEAR = "2013-01-01"
    SPARSE = "2013-01-14"
    MADE = "made"


_FILES = {
    Recording.NEW_YEAR: "debs2015_trips_20130101_0002_0056.csv.gz",
    Recording.SPARSE: "debs2015_trips_20130114_sample.csv.gz",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxiRoutes:
    """The ten most frequent routes of the last 30 minutes, told whenever they or their order change.

    recording: which trips come: 55 minutes of New Year's night, a sparse sample of another night, or made ones.
    minutes: only so many from the first drop-off on; None takes all.
    copies: trips for each that was recorded, because the recording is about a quarter of the real flow (1: as recorded).
    speed_up: seconds of the recording in one of the replay.
    apart: lines are parsed and routes found in a query of its own, which has its own replicas, as in the paper.
    buckets: groups of routes that are counted together. parts: groups of those that are ranked together.

    The answer is the grand challenge's: after each trip, in the order of the lines, the first ten are looked at, and a row is
    told if they are others than after the trip before. It is exact in any batching, as it is defined by the order of lines.

    Departures from the challenge and the paper: the counts are told with the routes; invalid lines and late trips are in tables
    of their own; the paper's metronome is no operator, but rows that `route` sends (see `parsing`).
    """

    name: ClassVar[str] = "taxi-routes"
    summary: ClassVar[str] = "the ten most frequent routes of New York's taxis within 30 minutes (DEBS 2015 grand challenge)"
    reference: ClassVar[str] = (
        "Cardellini, Lo Presti, Nardelli, Russo Russo: Towards Hierarchical Autonomous Control, 2017, section 4"
    )

    recording: Recording = Recording.NEW_YEAR
    minutes: int | None = None
    copies: int = 4
    speed_up: float = 22.0
    buckets: int = 32
    parts: int = 4
    apart: bool = False
    max_rows_per_batch: int = 1_500
    seed: int = 7

    def __post_init__(self) -> None:
        require(self.minutes is None or self.minutes >= 1, f"minutes must be at least 1, not {self.minutes}")
        require(self.speed_up > 0, f"speed_up must be above 0, not {self.speed_up}")
        for name in ("copies", "buckets", "parts", "max_rows_per_batch"):
            require(getattr(self, name) >= 1, f"{name} must be at least 1, not {getattr(self, name)}")
        require(self.parts <= self.buckets, f"parts ({self.parts}) are made of buckets: there must be as many or more of those")
        require(self.seed >= 0, f"seed must be 0 or more, not {self.seed}")

    @classmethod
    def small(cls) -> Self:
        return cls(recording=Recording.MADE, minutes=40, copies=1, speed_up=120.0, buckets=8, parts=2, max_rows_per_batch=600)

    def data(self) -> str:
        file = self._file()
        if file is None:
            why = f": no {_FILES[self.recording]} in {data_folder()}" if self.recording in _FILES else ""
            return f"made from seed {self.seed}{why}"
        lines = len(self.trips().lines)
        beside = f", each with {self.copies - 1} made beside it" if self.copies > 1 else ""
        return f"{file.name}: {lines // self.copies:,} trips{beside}"

    def application(self, folder: Path) -> springtide.Application:
        # Operators need pyspark; options and rows do not.
        from springtide.applications.taxi_routes.operators import counted, late, ranked, ranked_in_parts  # noqa: PLC0415
        from springtide.applications.taxi_routes.parsing import in_area, parsed, rejected, routed  # noqa: PLC0415

        app = springtide.Application(self.name, slo=springtide.SLO(latency_s=5))
        lines = app.source("lines", partial(self._replayed, folder=folder), ingest_time="offered_at")
        inline = not self.apart
        trips = app.operator("parse", parsed, lines, inline=inline)
        near = app.operator("area", in_area, trips, inline=inline)
        sent = app.operator("route", partial(routed, buckets=self.buckets), near, inline=inline)
        if self.apart:
            app.sink(sent, partial(_table(folder, "rejected").save_some, rejected))
        else:
            app.sink(app.operator("rejected", rejected, sent), _table(folder, "rejected").save)
        counts = app.operator("count", counted, sent, shards=_SHARDS)
        app.sink(counts, partial(_table(folder, "late").save_some, late))
        tops = app.operator("partial-rank", partial(ranked_in_parts, parts=self.parts), counts, shards=min(self.parts, _SHARDS))
        ranks = app.operator("rank", ranked, tops, shards=1)
        app.sink(ranks, _table(folder, "ranks").save)
        return app

    def check(self, spark: SparkSession, folder: Path) -> list[Checked]:
        right = answered(self.trips().lines)
        dropped = _table(folder, "rejected").read(spark).select("row", "reason").collect()
        late = _table(folder, "late").read(spark).select("row").collect()
        return [
            compared("changes of the first ten", right.changes, told(_table(folder, "ranks").read(spark)), in_order=True),
            compared("rejected lines", right.rejected, dropped),
            compared("late trips", right.late, late),
        ]

    def trips(self) -> Trips:
        """The lines that are replayed."""
        file = self._file()
        lines = made_lines(self.seed) if file is None else recorded_lines(file)
        return trips_of(with_company(lines, copies=self.copies, seed=self.seed), minutes=self.minutes)

    def _file(self) -> Path | None:
        file = data_folder() / _FILES[self.recording] if self.recording in _FILES else None
        return file if file is not None and file.is_file() else None

    def _replayed(self, spark: SparkSession, folder: Path) -> DataFrame:
        trips = self.trips()
        trace = springtide.Trace.of_times(name=self.name, times_s=trips.times_s)
        rows = springtide.Recorded.keep(trips.table, folder / "rows" / "lines.arrow")
        limit = self.max_rows_per_batch
        return springtide.replay(spark, trace, rows=rows, speed_up=self.speed_up, max_rows_per_batch=limit)


def _table(folder: Path, name: str) -> ResultTable:
    return ResultTable(folder / "results" / name)


def told(ranks: DataFrame) -> list[Change]:
    """The changes in the order in which they happened."""
    rows = ranks.orderBy("row").collect()
    return [(r["row"], r["pickup_us"], r["dropoff_us"], tuple(r["routes"]), tuple(r["counts"])) for r in rows]
