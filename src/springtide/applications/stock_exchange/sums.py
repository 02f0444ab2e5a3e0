"""Statistics that are sums: Spark's own aggregations over the trades, told anew whenever they change.

Each has the number of its trades, which only grows: of all that was said of a key, that with the most trades is the last.
Sums per minute are kept for as long as trades of the minute can come, and are then dropped: trades come in the order of
their times, and `_LATENESS` is more than events are late by. A trade that came later still would not be counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_LATENESS = "2 minutes"


def volume(trades: DataFrame) -> DataFrame:
    """Shares per stock and minute."""
    return _per_minute(trades, ["stock"], ["sum(quantity) as quantity"])


def vwap(trades: DataFrame) -> DataFrame:
    """Of each stock, all day: the average price, weighted by volume, is `turnover_cents / quantity`."""
    sums = _expressions("count(*) as trades", "sum(price_cents * quantity) as turnover_cents", "sum(quantity) as quantity")
    return trades.where("kind <> 'rejected'").groupBy("stock").agg(*sums)


def cash_flow(trades: DataFrame) -> DataFrame:
    """Cash per stock, minute, and side that came to trade: what buyers took, what sellers gave, what auctions moved."""
    return _per_minute(trades, ["stock", "aggressor"], ["sum(price_cents * quantity) as turnover_cents"])


def candles(trades: DataFrame) -> DataFrame:
    """First, highest, lowest and last price per stock and minute."""
    prices = ["min_by(price_cents, trade_no) as open_cents", "max(price_cents) as high_cents"]
    return _per_minute(
        trades, ["stock"], [*prices, "min(price_cents) as low_cents", "max_by(price_cents, trade_no) as close_cents"]
    )


def _per_minute(trades: DataFrame, keys: list[str], sums: list[str]) -> DataFrame:
    timed = trades.where("kind <> 'rejected'").selectExpr("*", "timestamp_millis(at_ms) as made_at")
    windows = timed.withWatermark("made_at", _LATENESS).groupBy(*_expressions("window(made_at, '1 minute')", *keys))
    told = windows.agg(*_expressions("count(*) as trades", *sums))
    return told.selectExpr("unix_millis(window.start) as minute_ms", *[name for name in told.columns if name != "window"])


def _expressions(*texts: str) -> list[Column]:
    from pyspark.sql.functions import expr  # noqa: PLC0415 - the command line asks for options before there is a session

    return [expr(text) for text in texts]
