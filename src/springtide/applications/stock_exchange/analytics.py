"""The operators behind the transactor by name: six statistics and five events, each a function of the trades.

`expected` of each computes the same answer from all trades at once, with pandas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from springtide.applications.stock_exchange import expected, sums
from springtide.applications.stock_exchange.watching import (
    EVENT,
    CompositeIndex,
    MovingAverage,
    NewExtreme,
    PriceAlarm,
    PriceJump,
    VolumeBurst,
    Watch,
    Watching,
)
from springtide.errors import InvalidValue, nearest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """`key` names the columns of which only the row with the most `trades` counts; empty where every row counts."""

    told: Callable[[DataFrame], DataFrame]
    expected: Callable[[pd.DataFrame], pd.DataFrame]
    keeps_state: bool = True
    key: tuple[str, ...] = ()

    @property
    def output_mode(self) -> str:
        return "update" if self.key else "append"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the statistics and events go by."""

    average_trades: int = 50
    alarm_permille: int = 3
    large_trade_cents: int = 100_000_000
    burst_window_ms: int = 10_000
    burst_shares: int = 10_000
    jump_permille: float = 1.0


def large_trade(trades: DataFrame, *, cents: int) -> DataFrame:
    """Trades of so much cash or more; `amount` is the cash."""
    cash = trades.where("kind <> 'rejected'").selectExpr("*", "price_cents * quantity as amount", "'large' as what")
    return cash.where(f"amount >= {cents}").select(*[column.split()[0] for column in EVENT.split(", ")])


def analyses(limits: Limits) -> Mapping[str, Analysis]:
    """All of them, statistics first."""
    burst = {"window_ms": limits.burst_window_ms, "shares": limits.burst_shares}
    return {
        "moving-average": _watched(
            MovingAverage(trades=limits.average_trades), partial(expected.moving_average, trades=limits.average_trades)
        ),
        "composite-index": _watched(CompositeIndex(), expected.composite_index),
        "volume": Analysis(told=sums.volume, expected=expected.volume, key=("minute_ms", "stock")),
        "vwap": Analysis(told=sums.vwap, expected=expected.vwap, key=("stock",)),
        "cash-flow": Analysis(told=sums.cash_flow, expected=expected.cash_flow, key=("minute_ms", "stock", "aggressor")),
        "candles": Analysis(told=sums.candles, expected=expected.candles, key=("minute_ms", "stock")),
        "price-alarm": _watched(
            PriceAlarm(permille=limits.alarm_permille), partial(expected.price_alarm, permille=limits.alarm_permille)
        ),
        "large-trade": Analysis(
            told=partial(large_trade, cents=limits.large_trade_cents),
            expected=partial(expected.large_trade, cents=limits.large_trade_cents),
            keeps_state=False,
        ),
        "volume-burst": _watched(VolumeBurst(**burst), partial(expected.volume_burst, **burst)),
        "price-jump": _watched(
            PriceJump(permille=limits.jump_permille), partial(expected.price_jump, permille=limits.jump_permille)
        ),
        "new-extreme": _watched(NewExtreme(), expected.new_extreme),
    }


def _watched(watch: Watch, right: Callable[[pd.DataFrame], pd.DataFrame]) -> Analysis:
    return Analysis(told=Watching(watch).told, expected=right)


def chosen(names: str, known: Mapping[str, Analysis]) -> dict[str, Analysis]:
    """`all`, `none`, or some names with commas between them."""
    if names in ("all", "none"):
        return dict(known) if names == "all" else {}
    wanted = [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in known:
            raise InvalidValue(f"stock-exchange: there is no analysis {name!r}; {nearest(name, [*known, 'all', 'none'])}")
    return {name: known[name] for name in dict.fromkeys(wanted)}
