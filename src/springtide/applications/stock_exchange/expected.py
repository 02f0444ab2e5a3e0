"""The statistics and events once more, from all trades at once: what the operators' answers are checked with.

`told` has the columns of `tape.TOLD` without rejections, sorted by stock and number. No code is shared with `watching` or
`sums`: whole columns are shifted, rolled and accumulated.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

_MINUTE_MS = 60_000
_EVENT = ["stock", "trade_no", "at_ms", "what", "price_cents", "amount"]


def moving_average(told: pd.DataFrame, *, trades: int) -> pd.DataFrame:
    so_far = told.groupby("stock")["price_cents"].cumsum()
    left_behind = so_far.groupby(told["stock"]).shift(trades, fill_value=0)
    count = (told.groupby("stock").cumcount() + 1).clip(upper=trades)
    return told[["stock", "trade_no", "at_ms"]].assign(sum_cents=so_far - left_behind, trades=count)


def composite_index(told: pd.DataFrame) -> pd.DataFrame:
    """A table with a column for each stock, filled forward."""
    ordered = told.sort_values(["row", "trade_no"], ignore_index=True)
    prices = ordered.pivot(columns="stock", values="price_cents").ffill()
    index = prices.sum(axis=1).round().astype("int64")
    return ordered[["row", "stock", "trade_no", "at_ms"]].assign(index_cents=index, stocks=prices.notna().sum(axis=1))


def volume(told: pd.DataFrame) -> pd.DataFrame:
    sums = _by_minute(told).groupby(["minute_ms", "stock"])["quantity"].agg(["size", "sum"]).reset_index()
    return sums.rename(columns={"size": "trades", "sum": "quantity"})


def vwap(told: pd.DataFrame) -> pd.DataFrame:
    cash = told.assign(turnover_cents=told["price_cents"] * told["quantity"], trades=1)
    return cash.groupby("stock")[["trades", "turnover_cents", "quantity"]].sum().reset_index()


def cash_flow(told: pd.DataFrame) -> pd.DataFrame:
    cash = _by_minute(told).assign(turnover_cents=told["price_cents"] * told["quantity"], trades=1)
    return cash.groupby(["minute_ms", "stock", "aggressor"])[["trades", "turnover_cents"]].sum().reset_index()


def candles(told: pd.DataFrame) -> pd.DataFrame:
    prices = _by_minute(told).groupby(["minute_ms", "stock"])["price_cents"].agg(["size", "first", "max", "min", "last"])
    names = {"size": "trades", "first": "open_cents", "max": "high_cents", "min": "low_cents", "last": "close_cents"}
    return prices.reset_index().rename(columns=names)


def price_alarm(told: pd.DataFrame, *, permille: int) -> pd.DataFrame:
    first = told.groupby("stock")["price_cents"].transform("first")
    high, low = first * (1000 + permille), first * (1000 - permille)
    zone = (told["price_cents"] * 1000 > high).astype(int) - (told["price_cents"] * 1000 < low).astype(int)
    left = (zone != 0) & (zone != zone.groupby(told["stock"]).shift(1, fill_value=0))
    alarms = told.assign(what=np.where(zone > 0, "above", "below"), amount=high.where(zone > 0, low))
    return alarms.loc[left, _EVENT]


def large_trade(told: pd.DataFrame, *, cents: int) -> pd.DataFrame:
    cash = told.assign(what="large", amount=told["price_cents"] * told["quantity"])
    return cash.loc[cash["amount"] >= cents, _EVENT]


def price_jump(told: pd.DataFrame, *, permille: float) -> pd.DataFrame:
    before = told.groupby("stock")["price_cents"].shift(1)
    change = told["price_cents"] - before
    jumped = (change != 0) & (change.abs() * 1000 >= permille * before)
    jumps = told.assign(what=np.where(change > 0, "up", "down"), amount=change.fillna(0).astype("int64"))
    return jumps.loc[jumped, _EVENT]


def volume_burst(told: pd.DataFrame, *, window_ms: int, shares: int) -> pd.DataFrame:
    parts = [told.assign(what="", amount=0).loc[[], _EVENT]]  # there may be no stock
    for _, mine in told.groupby("stock"):
        so_far = np.concatenate(([0], mine["quantity"].cumsum().to_numpy()))
        at_ms = mine["at_ms"].to_numpy()
        within = so_far[1:] - so_far[np.searchsorted(at_ms, at_ms - window_ms, side="right")]
        bursting = within >= shares
        begun = bursting & ~np.concatenate(([False], bursting[:-1]))
        parts.append(mine.assign(what="burst", amount=within).loc[begun, _EVENT])
    return pd.concat(parts)


def new_extreme(told: pd.DataFrame) -> pd.DataFrame:
    prices = told.groupby("stock")["price_cents"]
    high = prices.cummax().groupby(told["stock"]).shift(1)
    low = prices.cummin().groupby(told["stock"]).shift(1)
    above, below = told["price_cents"] > high, told["price_cents"] < low
    extremes = told.assign(what=np.where(above, "high", "low"), amount=high.where(above, low).fillna(0).astype("int64"))
    return extremes.loc[above | below, _EVENT]


def _by_minute(told: pd.DataFrame) -> pd.DataFrame:
    return told.assign(minute_ms=told["at_ms"] // _MINUTE_MS * _MINUTE_MS)
