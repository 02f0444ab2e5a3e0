"""What was counted in each file, told in a few numbers for each series; and files that cannot be used, refused.

Rules: a row without a time or a series, and times in several zones, spoil a file. A count that is no number, or negative,
spoils the series that it belongs to, which is decided later.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from springtide.errors import InvalidValue
from springtide.forecast.pipeline.counting import NO_SERIES, NO_TIME, TORN, is_in
from springtide.forecast.pipeline.sources import Source
from springtide.forecast.pipeline.times import zone_name
from springtide.workload.columns import quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """The first row that cannot be used, and why."""

    why: str
    time_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """One series in one file: when it begins and ends, and how long a step usually is, if it has steps.

    `repeated_us` is the first time that more than one row has, where each should have one.
    """

    series: str
    first_us: int
    last_us: int
    step_us: int | None = None
    repeated_us: int | None = None
    flaw: Flaw | None = None


def tallies(counts: DataFrame) -> list[Row]:
    """One row for each file, series, zone and flaw."""
    time_us = F.col("time_us")
    found = counts.groupBy("file", "series", "zone", "flaw").agg(
        F.min(time_us).alias("first_us"),
        F.max(time_us).alias("last_us"),
        F.sum("rows").alias("rows"),
        F.min(F.when(F.col("rows") > 1, time_us)).alias("repeated_us"),
    )
    return sorted(found.collect(), key=lambda row: (row["file"], row["series"] or "", row["zone"] or "", row["flaw"] or ""))


def refuse_unusable(found: Sequence[Row], rows: Mapping[str, DataFrame], sources: Sequence[Source]) -> None:
    """Refuse files with rows that have no time or no series, or with times of several zones. Rows are given by file.

    The last record of a journal may be torn, because its run was killed; more than one is damage.
    """
    by_key = {source.key: source for source in sources}
    zones: dict[str, str] = {}
    for tally in found:
        source = by_key[tally["file"]]
        path = source.file.path
        if tally["flaw"] == NO_TIME:
            text = _example(rows[source.key], path, F.col("flaw") == NO_TIME)
            raise InvalidValue(
                f"{path}: {source.layout.time} {quoted(text)} is neither a number of seconds nor an ISO time such as "
                "'2024-05-01 08:00:00'; correct it, or name another time column"
            )
        if tally["flaw"] == NO_SERIES:
            raise InvalidValue(f"{path}: {source.layout.series} is empty in some row; every row needs a series")
        if tally["flaw"] == TORN and tally["rows"] > 1:
            raise InvalidValue(f"{path}: {tally['rows']} records cannot be read; remove their lines to read the rest")
        other = zones.setdefault(source.key, tally["zone"])
        if zone_name(other) != zone_name(tally["zone"]):
            one, two = (
                f"{quoted(_example(rows[source.key], path, F.col('zone') == spelt))} ({zone_name(spelt)})"
                for spelt in (other, tally["zone"])
            )
            raise InvalidValue(
                f"{path}: mixed time zones: {source.layout.time} {one} and {two}; "
                "write all times of a file in one way, with one offset or without any (then they are UTC)"
            )


def _example(rows: DataFrame, path: str, which: Column) -> str:
    found = rows.where(which & is_in(path)).select("text").take(1)
    return str(found[0]["text"] or "") if found else ""


def counted_in(
    found: Sequence[Row], steps_us: Mapping[tuple[str, str], int], stepped: Collection[str]
) -> dict[str, list[Counted]]:
    """What each file has of each series. In files that are not `stepped`, rows are events, and times may occur twice."""
    result: dict[str, dict[str, Counted]] = {}
    for tally in found:
        key, name = tally["file"], tally["series"]
        if name is None:
            continue
        mine = result.setdefault(key, {})
        flaw = Flaw(why=tally["flaw"], time_us=tally["first_us"]) if tally["flaw"] else None
        counted = Counted(
            series=name,
            first_us=tally["first_us"],
            last_us=tally["last_us"],
            step_us=steps_us.get((key, name)),
            repeated_us=tally["repeated_us"] if key in stepped and flaw is None else None,
            flaw=flaw,
        )
        mine[name] = _joined(mine[name], counted) if name in mine else counted
    return {key: list(by_name.values()) for key, by_name in result.items()}


def _joined(one: Counted, two: Counted) -> Counted:
    flaws = [flaw for flaw in (one.flaw, two.flaw) if flaw is not None]
    repeated = [time_us for time_us in (one.repeated_us, two.repeated_us) if time_us is not None]
    return Counted(
        series=one.series,
        first_us=min(one.first_us, two.first_us),
        last_us=max(one.last_us, two.last_us),
        step_us=one.step_us,
        repeated_us=min(repeated, default=None),
        flaw=min(flaws, key=lambda flaw: flaw.time_us, default=None),
    )


def usual_steps_us(counts: DataFrame, stepped: Collection[str]) -> dict[tuple[str, str], int]:
    """By file and series: the most frequent difference of times, the least of several; the median where none occurs twice."""
    if not stepped:
        return {}
    before = F.lag("time_us").over(Window.partitionBy("file", "series").orderBy("time_us"))
    mine = counts.where(F.col("file").isin(list(stepped)) & F.col("flaw").isNull())
    differences = mine.select("file", "series", (F.col("time_us") - before).alias("step")).where("step > 0")
    frequencies = differences.groupBy("file", "series", "step").agg(F.count("*").alias("n"))
    usual = frequencies.groupBy("file", "series").agg(
        F.max(F.struct("n", (-F.col("step")).alias("step"))).alias("most"),
        F.percentile("step", 0.5, F.col("n")).alias("median"),
    )
    return {
        (row["file"], row["series"]): -row["most"]["step"] if row["most"]["n"] > 1 else round(row["median"])
        for row in usual.collect()
    }
