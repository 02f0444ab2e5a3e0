"""The operators without state: `parsed`, `in_area`, `routed`.

Rules: a line that is no good goes on with its `reason`, and nothing else of it counts: it is in the table of rejected lines,
and moves no clock. Reasons, the first that holds:

    malformed          not 17 fields, or a time or coordinate that cannot be read
    zero coordinates   a pickup or drop-off without a place
    times              the trip does not end after it began, or not within a day
    outside            an end of the trip is outside the grid

`routed` sends a trip to the bucket of its route. Each other bucket must know that time passes, too, as the routes that leave
the window are in all of them: the paper has a metronome for that. Here the first trip of each drop-off time, of those that
are processed together, is told to all buckets as a row without a route. So the trip at which a count must fall is known in
every bucket, whatever the batches are: no trip before it has its time or a later one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from springtide.applications.taxi_routes import grid

_FIELDS = 17
_US_PER_DAY = 86_400_000_000
_TIME = "^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}$"
_NUMBER = r"^-?[0-9]+(\.[0-9]+)?$"
_PLACES = ("pickup_longitude", "pickup_latitude", "dropoff_longitude", "dropoff_latitude")

ROUTED = "row long, bucket int, route string, pickup_us long, dropoff_us long, reason string"


def parsed(lines: DataFrame) -> DataFrame:
    """Times in microseconds since 1970 (as if New York's clock were UTC), coordinates in degrees, and what is wrong."""
    fields = F.split("line", ",", -1)
    complete = lines.select("row", F.when(F.size(fields) == _FIELDS, fields).alias("fields"))
    read = complete.select(
        "row",
        _time("fields", 2).alias("pickup_us"),
        _time("fields", 3).alias("dropoff_us"),
        *[_number("fields", 6 + at).alias(name) for at, name in enumerate(_PLACES)],
    )
    took_us = F.col("dropoff_us") - F.col("pickup_us")
    unread = [F.col(name).isNull() for name in ("pickup_us", "dropoff_us", *_PLACES)]
    nowhere = [F.col(name) == 0 for name in _PLACES]
    reason = (
        F.when(_any(unread), "malformed")
        .when(_any(nowhere), "zero coordinates")
        .when((took_us <= 0) | (took_us > _US_PER_DAY), "times")
    )
    return read.withColumn("reason", reason)


def _time(fields: str, at: int) -> Column:
    text = F.get(F.col(fields), F.lit(at))
    # With a zone in the text, the session's own does not matter.
    return F.unix_micros(F.when(text.rlike(_TIME), F.concat(text, F.lit("Z"))).try_cast("timestamp"))


def _number(fields: str, at: int) -> Column:
    text = F.get(F.col(fields), F.lit(at))
    return F.when(text.rlike(_NUMBER), text).try_cast("double")


def _any(conditions: list[Column]) -> Column:
    found = conditions[0]
    for condition in conditions[1:]:
        found = found | condition
    return found


def in_area(trips: DataFrame) -> DataFrame:
    """Trips with the cells of both ends; one that has an end outside the grid is rejected."""
    cells = trips.select(
        "row",
        "pickup_us",
        "dropoff_us",
        "reason",
        _east("pickup_longitude").alias("from_x"),
        _south("pickup_latitude").alias("from_y"),
        _east("dropoff_longitude").alias("to_x"),
        _south("dropoff_latitude").alias("to_y"),
    )
    outside = [~F.col(name).between(1, grid.CELLS) for name in ("from_x", "from_y", "to_x", "to_y")]
    return cells.withColumn("reason", F.coalesce("reason", F.when(_any(outside), "outside")))


def _east(longitude: str) -> Column:
    return (F.floor((F.col(longitude) - grid.WEST_DEGREES) / grid.CELL_EAST_DEGREES) + 1).cast("long")


def _south(latitude: str) -> Column:
    return (F.floor((F.lit(grid.NORTH_DEGREES) - F.col(latitude)) / grid.CELL_SOUTH_DEGREES) + 1).cast("long")


def routed(trips: DataFrame, buckets: int) -> DataFrame:
    """A row for each trip with the bucket of its route, rows that tell every bucket the time, and the rejected lines."""
    fine = F.col("reason").isNull()
    route = F.when(fine, F.concat("from_x", F.lit("."), "from_y", F.lit("-"), "to_x", F.lit("."), "to_y"))
    sent = trips.withColumn("route", route).select(
        "row",
        F.when(fine, F.pmod(F.hash("route"), F.lit(buckets))).otherwise(-1).cast("int").alias("bucket"),
        "route",
        F.when(fine, F.col("pickup_us")).otherwise(0).alias("pickup_us"),
        F.when(fine, F.col("dropoff_us")).otherwise(0).alias("dropoff_us"),
        "reason",
    )

    def told(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            yield with_time_told(batch, buckets)

    return sent.mapInPandas(told, ROUTED)


def with_time_told(trips: pd.DataFrame, buckets: int) -> pd.DataFrame:
    """The rows, and the first trip of each drop-off time once more for every bucket, without its route."""
    fine = trips[trips["reason"].isna()]
    firsts = fine.sort_values("row").drop_duplicates("dropoff_us")
    ticks = firsts.loc[firsts.index.repeat(buckets)].assign(route=None)
    ticks["bucket"] = np.tile(np.arange(buckets, dtype=np.int32), len(firsts))
    return pd.concat([trips, ticks], ignore_index=True)


def rejected(sent: DataFrame) -> DataFrame:
    """The lines that do not count, with the reason."""
    return sent.where(F.col("reason").isNotNull()).select("row", "reason")
