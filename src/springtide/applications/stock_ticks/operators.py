"""The two operators: `selected` gives each query its ticks, `windowed` keeps the windows of all queries.

Rules: a window is tumbling and begins at a multiple of its query's length since 1970. What is said of a window again and again
only grows in `ticks`: the row with most ticks counts, whatever the batches were. FIRST and LAST are by time, then by row; sums
are of whole numbers, so no order of addition matters.

A tick without company, sector, time or positive price is rejected: it goes on with its reason and no query, for the table of
rejected ticks. A tick in a sector that nobody asks for is selected by no query. A tick that comes twice counts twice: it has no
name by which it could be known again. Ticks may come out of order by as much as the time for which a window stays open; one
that comes after its window was given up is dropped and counted by Spark (numRowsDroppedByWatermark). In a replay none does.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from springtide.applications.stock_ticks.queries import ContinuousQuery

_NOBODY = "array(struct(cast(null as int) as query, cast(null as int) as window_s))"
_US_PER_S = 1_000_000


def selected(ticks: DataFrame, queries: Sequence[ContinuousQuery]) -> DataFrame:
    """One row for each query that wants a tick; a rejected tick is one row with its `reason`."""
    wanted = F.try_element_at(_by_sector(queries), F.col("sector"))
    asked = ticks.withColumn("reason", _reason()).withColumn(
        "asked", F.explode(F.when(F.col("reason").isNull(), wanted).otherwise(F.expr(_NOBODY)))
    )
    window_us = F.col("asked.window_s").cast("long") * _US_PER_S
    at_us = F.unix_micros("tick_at")
    start_us = at_us - F.pmod(at_us, window_us)
    return asked.select(
        "row",
        "asked.query",
        "company",
        "price_x10000",
        "tick_at",
        F.timestamp_micros(start_us).alias("window_start"),
        F.timestamp_micros(start_us + window_us).alias("window_end"),
        "reason",
    )


def _by_sector(queries: Sequence[ContinuousQuery]) -> Column:
    asking: dict[int, list[Column]] = {}
    for query in queries:
        who = F.struct(F.lit(query.number).alias("query"), F.lit(query.window_s).alias("window_s"))
        asking.setdefault(query.sector, []).append(who)
    return F.create_map(*[item for sector, those in asking.items() for item in (F.lit(sector), F.array(*those))])


def _reason() -> Column:
    return (
        F.when(F.col("company").isNull() | (F.col("company") == ""), "no company")
        .when(F.col("sector").isNull(), "no sector")
        .when(F.col("tick_at").isNull(), "no time")
        .when(F.col("price_x10000").isNull() | (F.col("price_x10000") <= 0), "no price")
    )


def windowed(chosen: DataFrame, longest_s: int, late_s: int) -> DataFrame:
    """The prices of each query's windows so far. A window is forgotten `late_s` after the longest one could have ended."""
    # A tick's window ends at most `longest_s` after it, so this watermark is never ahead of the ticks less `late_s`.
    fine = chosen.where(F.col("reason").isNull()).withWatermark("window_end", f"{longest_s + late_s} seconds")
    price, when = F.col("price_x10000"), F.struct("tick_at", "row")
    sums = fine.groupBy("query", "company", "window_start", "window_end").agg(
        F.min_by(price, when).alias("first_x10000"),
        F.min(price).alias("min_x10000"),
        F.sum(price).alias("sum_x10000"),
        F.max(price).alias("max_x10000"),
        F.max_by(price, when).alias("last_x10000"),
        F.count(price).alias("ticks"),
    )
    average = F.col("sum_x10000") / F.col("ticks")
    return sums.withColumn("avg_x10000", average).drop("sum_x10000")


def rejected(chosen: DataFrame) -> DataFrame:
    """The ticks that no query gets to see, with the reason."""
    return chosen.where(F.col("reason").isNotNull()).select("row", "reason")
