"""Rows of raw files, counted: what is kept of a file, so that it is read once.

Rules: events are counted per second; a row of a rate file or of a journal is kept with its time. Sums are exact (whole numbers
and decimals), so that they do not depend on how Spark has divided the work. Nothing but what has been counted leaves Spark.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from springtide.forecast.pipeline.sources import Layout, Source
from springtide.forecast.pipeline.times import microseconds, zone

COUNTS = "file string, series string, time_us long, zone string, flaw string, value decimal(38,12), rows long"

_SECOND_US = 1_000_000
_VALUE = "decimal(38,12)"
_LARGEST_VALUE = 1e24
_SOURCES = "array<struct<name string, rows double>>"
_OPERATORS = "array<struct<name string, offered_rows double>>"
_JOURNAL = f"kind string, start_s double, end_s double, sources {_SOURCES}, operators {_OPERATORS}, torn string"

# Why a row cannot be used. The first three spoil the file, the others the series.
NO_TIME, NO_SERIES, TORN = "no time", "no series", "torn"
NO_NUMBER, NOT_FINITE, NEGATIVE = "is not a number", "is not a finite number", "is negative"


def spark_path(path: str | Path, *, literal: bool = False) -> str:
    """A path on the disk as Spark wants it; where it reads, but not where it writes, it knows wildcards."""
    text = str(path)
    return "file://" + (text if literal else re.sub(r"([*?\[\]{}\\])", r"\\\1", text))


def rows_of(spark: SparkSession, sources: Sequence[Source]) -> DataFrame:
    """Every row of files of one layout: its place, series, time, zone, flaw and value, and the text that told its time."""
    layout = sources[0].layout
    raw = _raw(spark, layout, [spark_path(source.file.path) for source in sources])
    # The place of a single file, which may be large, is a constant that Spark need not group by.
    is_single = len(sources) == 1
    placed = raw.withColumn(
        "place", F.lit(f"file:{quote(sources[0].file.path)}") if is_single else F.col("_metadata.file_path")
    )
    return _journal_rows(placed) if layout.kind == "journal" else _table_rows(placed, layout)


def is_in(path: str) -> Column:
    """Whether a row is in a file. Spark writes places as URLs."""
    return _path() == path


def counts_of(rows: DataFrame, sources: Sequence[Source]) -> DataFrame:
    """What is kept: rows and the sum of their values, by file, series, time, zone and flaw."""
    is_second = sources[0].layout.kind == "events"
    second_us = F.col("time_us") - F.pmod(F.col("time_us"), F.lit(_SECOND_US))
    timed = rows.withColumn("time_us", second_us) if is_second else rows
    counted = timed.groupBy("place", "series", "time_us", "zone", "flaw").agg(
        F.sum(F.col("value").cast(_VALUE)).cast(_VALUE).alias("value"), F.count("*").alias("rows")
    )
    # Paths are compared for what has been counted, of which there is less than of rows.
    known = rows.sparkSession.createDataFrame(
        [(source.file.path, source.key, source.file.name, round(source.start_s * 1e6)) for source in sources],
        "path string, file string, file_name string, start_us long",
    )
    named = counted.withColumn("path", _path()).join(F.broadcast(known), "path")
    is_named = sources[0].layout.series is not None or sources[0].layout.kind == "journal"
    return named.select(
        "file",
        F.col("series") if is_named else F.col("file_name").alias("series"),
        (F.col("time_us") + F.col("start_us")).alias("time_us"),
        "zone",
        "flaw",
        "value",
        "rows",
    )


def _path() -> Column:
    return F.expr("url_decode(replace(regexp_replace(place, '^file:/*', '/'), '+', '%2B'))")


def _raw(spark: SparkSession, layout: Layout, paths: list[str]) -> DataFrame:
    if layout.kind == "journal":
        return spark.read.schema(_JOURNAL).option("columnNameOfCorruptRecord", "torn").json(paths)
    if layout.form == "parquet":
        return spark.read.parquet(*paths)
    if layout.form == "csv":
        # A header may use a name twice, so columns are known by their position.
        schema = StructType([StructField(f"column{at}", StringType()) for at in range(len(layout.columns))])
        trimmed = {"ignoreLeadingWhiteSpace": True, "ignoreTrailingWhiteSpace": True}
        return spark.read.options(**trimmed).csv(paths, schema=schema, header=True, escape='"', maxCharsPerColumn=-1)
    names = dict.fromkeys(name for name in (layout.time, layout.amount, layout.series) if name is not None)
    return spark.read.schema(StructType([StructField(name, StringType()) for name in names])).json(paths)


def _column(layout: Layout, name: str) -> Column:
    if layout.form == "csv":
        return F.col(f"column{layout.columns.index(name)}")
    escaped = name.replace("`", "``")
    return F.col(f"`{escaped}`")


def _table_rows(placed: DataFrame, layout: Layout) -> DataFrame:
    time = _column(layout, layout.time)
    kind = placed.select(time).schema[0].dataType
    series, value = F.lit(None).cast("string"), F.lit(None).cast("double")
    flaw = F.when(F.col("time_us").isNull(), NO_TIME)
    if layout.series is not None:
        series = _column(layout, layout.series).cast("string")
        flaw = flaw.when(F.coalesce(F.col("series"), F.lit("")) == "", NO_SERIES)
    if layout.amount is not None:
        value = _column(layout, layout.amount).cast("double")
        flaw = flaw.when(F.col("value").isNull(), NO_NUMBER).when(F.col("value") < 0, NEGATIVE)
        flaw = flaw.when(F.isnan("value") | (F.col("value") > _LARGEST_VALUE), NOT_FINITE)
    found = placed.select(
        "place",
        series.alias("series"),
        microseconds(time, kind).alias("time_us"),
        zone(time, kind).alias("zone"),
        value.alias("value"),
        time.cast("string").alias("text"),
    )
    flawed = found.withColumn("flaw", flaw)
    return flawed.withColumn("value", F.when(F.col("flaw").isNull(), F.col("value")))


def _journal_rows(placed: DataFrame) -> DataFrame:
    """What each source gave, and each operator was offered, per second of each interval. What was not measured is a gap."""
    is_torn = F.col("torn").isNotNull()
    observed = placed.where(is_torn | ((F.col("kind") == "observation") & (F.col("end_s") > F.col("start_s"))))
    sources = F.transform("sources", lambda s: F.struct(F.concat(F.lit("source:"), s["name"]).alias("n"), s["rows"].alias("r")))
    operators = F.transform(
        "operators", lambda o: F.struct(F.concat(F.lit("operator:"), o["name"]).alias("n"), o["offered_rows"].alias("r"))
    )
    each = observed.withColumn("one", F.explode_outer(F.concat(sources, operators))).where(is_torn | F.col("one.r").isNotNull())
    return each.select(
        "place",
        F.col("one.n").alias("series"),
        F.round(F.col("start_s") * 1e6).cast("long").alias("time_us"),
        F.lit("").alias("zone"),
        (F.col("one.r") / (F.col("end_s") - F.col("start_s"))).alias("value"),
        F.col("torn").alias("text"),
        F.when(is_torn, TORN).alias("flaw"),
    )
