"""The operators with state: `counted`, `ranked_in_parts`, `ranked`. What they do is in `counting` and `ranking`.

Rules: a group of Spark's is a bucket of routes, a part of them, or all of them, never a single route: a call of Python costs
more than a trip does. A group's state is one text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pyspark.sql.functions as F
from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from springtide.applications.taxi_routes.counting import LATE, Arrival, CountChange, WindowCounts
from springtide.applications.taxi_routes.ranking import GlobalRank, PartialRank, PartTop

_Group = Callable[[Any, Iterator[pd.DataFrame], GroupState], Iterator[pd.DataFrame]]

_COUNTS = "bucket int, row long, route string, trips long, last_us long, last_row long, pickup_us long, dropoff_us long"
_TOPS = (
    "row long, part int, counts array<long>, last_us array<long>, last_rows array<long>, routes array<string>,"
    " pickup_us long, dropoff_us long"
)
_RANKS = "row long, pickup_us long, dropoff_us long, routes array<string>, counts array<long>"


def counted(sent: DataFrame) -> DataFrame:
    """How many trips a route has had within the window, after each row that changes it. -1 trips: it came late."""
    fine = sent.where(F.col("reason").isNull())
    return _with_state(fine, "bucket", _counted, _COUNTS)


def _counted(key: tuple[int], batches: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    counts = WindowCounts.of_text(state.get[0]) if state.exists else WindowCounts()
    rows = _rows(batches, ("row", "route", "pickup_us", "dropoff_us"))
    changes = counts.follow(Arrival(*row) for row in rows)
    state.update((counts.text(),))
    yield _frame([(key[0], *change) for change in changes], _COUNTS)


def late(counts: DataFrame) -> DataFrame:
    """The trips that came after their window."""
    return counts.where(F.col("trips") == LATE).select("row", "route", "dropoff_us")


def ranked_in_parts(counts: DataFrame, parts: int) -> DataFrame:
    """The first ten of each part of the routes, whenever they change."""
    split = counts.withColumn("part", F.pmod("bucket", F.lit(parts)).cast("int"))
    return _with_state(split, "part", _ranked_in_part, _TOPS)


def _ranked_in_part(key: tuple[int], batches: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    ranks = PartialRank.of_text(state.get[0]) if state.exists else PartialRank()
    rows = _rows(batches, CountChange._fields)
    tops = ranks.follow(int(key[0]), (CountChange(*row) for row in rows))
    state.update((ranks.text(),))
    yield _frame([(t.row, t.part, *_columns(t), t.pickup_us, t.dropoff_us) for t in tops], _TOPS)


def _columns(told: PartTop) -> tuple[list[Any], ...]:
    """Counts, drop-offs, rows and routes of a part's first ones, each as a list."""
    return tuple(list(column) for column in zip(*told.top, strict=True)) if told.top else ([], [], [], [])


def ranked(tops: DataFrame) -> DataFrame:
    """The first ten of all routes, whenever they or their order change."""
    return _with_state(tops.withColumn("all", F.lit(0)), "all", _ranked, _RANKS)


def _ranked(key: tuple[int], batches: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:  # noqa: ARG001
    ranks = GlobalRank.of_text(state.get[0]) if state.exists else GlobalRank()
    rows = _rows(batches, ("row", "part", "counts", "last_us", "last_rows", "routes", "pickup_us", "dropoff_us"))
    told = [PartTop(row, part, _standings(*columns), *times) for row, part, *columns, times in _split(rows)]
    changes = ranks.follow(told)
    state.update((ranks.text(),))
    yield _frame([(c.row, c.pickup_us, c.dropoff_us, list(c.routes), list(c.counts)) for c in changes], _RANKS)


def _split(rows: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    return ((*row[:-2], row[-2:]) for row in rows)


def _standings(*columns: Any) -> tuple[tuple[int, int, int, str], ...]:
    return tuple((int(n), int(at), int(row), str(route)) for n, at, row, route in zip(*columns, strict=True))


def _with_state(df: DataFrame, key: str, function: _Group, schema: str) -> DataFrame:
    timeout = GroupStateTimeout.NoTimeout
    return df.groupBy(key).applyInPandasWithState(function, schema, "state string", "append", timeout)


def _rows(batches: Iterator[pd.DataFrame], columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return [row for batch in batches for row in zip(*(batch[name].tolist() for name in columns), strict=True)]


def _frame(rows: list[tuple[Any, ...]], schema: str) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=[field.split()[0] for field in schema.split(", ")])
