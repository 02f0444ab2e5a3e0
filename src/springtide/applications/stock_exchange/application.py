"""Elasticutor's stock exchange: a transactor that matches limit orders, and operators that analyse its trades.

Wang, Fu, Ma, Winslett, Zhang: Elasticutor, SIGMOD 2019, section 5.4, figure 14.

    paper                                      here
    orders of the SSE, 3 months, 96 bytes      one stock's recorded day and copies of it (see `days` and `feed`), or a made day
    transactor, partitioned by stock           the same: a packed order book for each stock
    160-byte transaction records               trades with their numbers, times, prices, quantities and parties
    6 operators for statistics                 moving-average, composite-index, volume, vwap, cash-flow, candles
    5 operators for events                     price-alarm, large-trade, volume-burst, price-jump, new-extreme

Departures from the paper. It names the moving averages, the composite index and the price alarm; the others are chosen here.
Its orders are of all stocks of the exchange: here there is one recorded stock, and what the others do is its copy. Each of
the 11 analyses is one more streaming query; `analytics` says which of them run.

Semantics: events of a stock count in the order of the stream. An event whose `seq` is not above that of the stock's last
event is late or repeated, and is rejected, as are malformed ones and those that the book contradicts; rejections are told
beside the trades, with their reasons, and change nothing. Times are those of the orders: none is taken from a clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

import springtide
from springtide.applications.answers import compared
from springtide.applications.results import ResultTable
from springtide.applications.shipped import Checked
from springtide.applications.stock_exchange.analytics import Analysis, Limits, analyses, chosen
from springtide.applications.stock_exchange.days import BEGINS_MS, STOCK, Day, clock_ms, made_day, recorded_day
from springtide.applications.stock_exchange.feed import Feed, feed_of
from springtide.applications.stock_exchange.matching_by_level import matched
from springtide.applications.stock_exchange.tape import Event, Kind, Told
from springtide.applications.stock_exchange.transactor import transacted
from springtide.errors import require
from springtide.model.observation import FloatArray
from springtide.workload.recordings import data_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PAUSE_S = 3.0  # of the clock


@dataclass(frozen=True, slots=True, kw_only=True)
class StockExchange:
    """Options. `stocks` are the recorded one and its copies; the stream ends at `until`, a time of that day in Shanghai.

    `speed_up` seconds of trading pass in one, and no pause takes longer than 3 of those. `analytics` are names with commas
    between them, `all` or `none`. `recorded=False` makes a day from the seed, as it is done where there is no recording. The
    whole recorded day is `until=15:01`, `stocks=1`, `speed_up=150`.
    """

    name: ClassVar[str] = "stock-exchange"
    summary: ClassVar[str] = "limit orders matched by price and time, one book for each stock, and analyses of the trades"
    reference: ClassVar[str] = "Wang et al., Elasticutor, SIGMOD 2019, section 5.4"

    stocks: int = 8
    until: str = "09:35"
    speed_up: float = 3.0
    analytics: str = "moving-average,vwap,price-alarm"
    recorded: bool = True
    faults_per_1000: float = 1.0
    average_trades: int = 50
    alarm_permille: int = 3
    large_trade_yuan: int = 1_000_000
    burst_window_s: int = 10
    burst_shares: int = 10_000
    jump_permille: float = 1.0
    shards: int = 8
    analytics_shards: int = 4
    max_rows_per_batch: int = 2000
    seed: int = 7

    def __post_init__(self) -> None:
        ones = ("stocks", "average_trades", "burst_window_s", "shards", "analytics_shards", "max_rows_per_batch")
        for what in ones:
            require(getattr(self, what) >= 1, f"{self.name}: {what} must be 1 or more, not {getattr(self, what)}")
        for what in ("faults_per_1000", "alarm_permille", "large_trade_yuan", "burst_shares", "jump_permille", "seed"):
            require(getattr(self, what) >= 0, f"{self.name}: {what} must be 0 or more, not {getattr(self, what)}")
        require(0 < self.speed_up < math.inf, f"{self.name}: speed_up must be above 0, not {self.speed_up}")
        require(clock_ms(self.until) > BEGINS_MS, f"{self.name}: until must be after 09:15, not {self.until!r}")
        self.analyses()

    def data(self) -> str:
        return self.day().said

    def application(self, folder: Path) -> springtide.Application:
        feed = self.feed()
        times_s = without_pauses(feed.times_s, longest_s=_PAUSE_S * self.speed_up)
        trace = springtide.Trace.of_times(name="orders", times_s=times_s)
        rows = springtide.Recorded.keep(feed.rows, folder / "rows" / "orders.arrow")
        read = partial(
            springtide.replay, trace=trace, rows=rows, speed_up=self.speed_up, max_rows_per_batch=self.max_rows_per_batch
        )
        app = springtide.Application(self.name, slo=springtide.SLO(latency_s=5))
        orders = app.source("orders", read, ingest_time="offered_at")
        trades = app.operator("transactor", transacted, orders, shards=self.shards)
        app.sink(trades, self.results(folder, "transactor").save)
        for name, analysis in self.analyses().items():
            shards = self.analytics_shards if analysis.keeps_state else None
            told = app.operator(name, analysis.told, trades, shards=shards, output_mode=analysis.output_mode)
            app.sink(told, self.results(folder, name).save)
        return app

    def check(self, spark: SparkSession, folder: Path) -> list[Checked]:
        day = self.day()
        right = pd.DataFrame(matched(_events(self.feed(day))), columns=Told._fields)
        found: Any = self.results(folder, "transactor").read(spark).drop("batch").toPandas()
        trades = right[right["kind"] != Kind.REJECTED].reset_index(drop=True)
        checked = [] if day.trades is None else [_beside_the_recording(day, found)]
        checked += [
            compared("trades of all stocks, in order", _rows(trades), _rows(_in_order(found)), in_order=True),
            compared(
                "rejected events", _rows(right[right["kind"] == Kind.REJECTED]), _rows(found[found["kind"] == Kind.REJECTED])
            ),
        ]
        return checked + [
            _analysis_checked(name, analysis, trades, self.results(folder, name).read(spark).toPandas())
            for name, analysis in self.analyses().items()
        ]

    def results(self, folder: Path, name: str) -> ResultTable:
        return ResultTable(folder / "results" / name)

    def day(self) -> Day:
        """The recorded one if it is there, else one that is made."""
        until_ms = clock_ms(self.until)
        folder = data_folder()
        day = recorded_day(folder, until_ms) if self.recorded else None
        return day or made_day(self.seed, until_ms, why=f"no recording in {folder}" if self.recorded else "as asked for")

    def feed(self, day: Day | None = None) -> Feed:
        return feed_of(
            day or self.day(),
            stocks=self.stocks,
            until_ms=clock_ms(self.until),
            faults_per_1000=self.faults_per_1000,
            seed=self.seed,
        )

    def analyses(self) -> dict[str, Analysis]:
        limits = Limits(
            average_trades=self.average_trades,
            alarm_permille=self.alarm_permille,
            large_trade_cents=self.large_trade_yuan * 100,
            burst_window_ms=self.burst_window_s * 1000,
            burst_shares=self.burst_shares,
            jump_permille=self.jump_permille,
        )
        return chosen(self.analytics, analyses(limits))

    @classmethod
    def small(cls) -> StockExchange:
        return cls(stocks=3, until="09:32", speed_up=14.0, recorded=False, shards=2, analytics_shards=2)


def without_pauses(times_s: FloatArray, *, longest_s: float) -> FloatArray:
    """The same times, but for pauses: before trading begins, and at noon. A stream that is silent for long has ended.

    >>> without_pauses(np.array([1.0, 2.0, 5402.0, 5403.0]), longest_s=30.0)
    array([ 1.,  2., 32., 33.])
    """
    shortened: FloatArray = times_s[0] + np.cumsum(np.minimum(np.diff(times_s, prepend=times_s[0]), longest_s))
    return shortened


def _events(feed: Feed) -> list[Event]:
    """As the exchange is shown them: what is missing is 0 or nothing."""
    nothing = ["" if kind == "string" else 0 for kind in feed.rows.schema.types]
    columns = [column.fill_null(instead).to_pylist() for column, instead in zip(feed.rows.columns, nothing, strict=True)]
    return [Event(row, *values) for row, values in enumerate(zip(*columns, strict=True))]


def _in_order(found: pd.DataFrame) -> pd.DataFrame:
    return found[found["kind"] != Kind.REJECTED].sort_values(["stock", "trade_no"])


def _beside_the_recording(day: Day, found: pd.DataFrame) -> Checked:
    mine = _in_order(found[found["stock"] == STOCK])
    columns = ["kind", "buyer", "seller", "price_cents", "quantity"]
    what = f"recorded trades of {STOCK}, in order"
    return compared(what, day.trades or [], _rows(mine[columns]), in_order=True)


def _analysis_checked(name: str, analysis: Analysis, trades: pd.DataFrame, said: Any) -> Checked:
    right = analysis.expected(trades)
    found = said.sort_values("trades").groupby(list(analysis.key)).tail(1) if analysis.key else said
    return compared(f"answers of {name}", _rows(right), _rows(found[right.columns]))


def _rows(table: pd.DataFrame) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name].tolist() for name in table.columns), strict=True))
