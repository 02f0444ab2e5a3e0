"""Operators that follow the trades of a stock one by one, with a memory of what was before.

A watch is parameters, a memory to start with, and one function of memory and trade that tells rows; the memory is the
operator's state, pickled. Trades of a key are seen in the order in which they were made, whatever batches they come in,
so what is told does not depend on batches. Each memory is bounded by the watch's own window.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import pandas as pd

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState


class Trade(NamedTuple):
    """What a watch is shown of a trade."""

    row: int
    stock: int
    trade_no: int
    at_ms: int
    price_cents: int
    quantity: int


class Watch(Protocol):
    """`columns` are those of the rows that `seen` tells. `key` is an SQL expression: whose trades have one memory."""

    columns: ClassVar[str]
    key: ClassVar[str]

    def start(self) -> Any: ...

    def seen(self, memory: Any, trade: Trade) -> tuple[Any, ...] | None:
        """Take the trade into the memory; a row of `columns`, or nothing to tell."""
        ...


@dataclass(frozen=True, slots=True)
class Watching:
    """A watch as an operator: `told` is its function of a stream of trades."""

    watch: Watch

    def told(self, trades: DataFrame) -> DataFrame:
        keyed = trades.where("kind <> 'rejected'").selectExpr(f"{self.watch.key} as watched", *Trade._fields)
        grouped = keyed.groupBy("watched")
        return grouped.applyInPandasWithState(self._taken, self.watch.columns, "memory binary", "append", "NoTimeout")

    def _taken(self, watched: tuple[Any, ...], trades: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:  # noqa: ARG002 - each trade has its stock
        memory = pickle.loads(state.get[0]) if state.exists else self.watch.start()
        told = list(self.over(memory, pd.concat(list(trades))))
        state.update((pickle.dumps(memory),))
        yield pd.DataFrame(told, columns=[column.split()[0] for column in self.watch.columns.split(", ")])

    def over(self, memory: Any, trades: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
        """What is told of these trades of one memory. An event makes its trades in the order of their numbers."""
        ordered = trades.sort_values(["row", "trade_no"])
        for trade in map(Trade._make, zip(*(ordered[name].tolist() for name in Trade._fields), strict=True)):
            told = self.watch.seen(memory, trade)
            if told is not None:
                yield told


EVENT = "stock long, trade_no long, at_ms long, what string, price_cents long, amount long"


def _event(trade: Trade, what: str, amount: int) -> tuple[Any, ...]:
    return (trade.stock, trade.trade_no, trade.at_ms, what, trade.price_cents, amount)


@dataclass(slots=True)
class LastPrices:
    prices: deque[int]
    total_cents: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingAverage:
    """The mean price of a stock's last `trades` trades, told as a sum and a count with every trade."""

    columns: ClassVar[str] = "stock long, trade_no long, at_ms long, sum_cents long, trades long"
    key: ClassVar[str] = "stock"
    trades: int

    def start(self) -> LastPrices:
        return LastPrices(deque())

    def seen(self, memory: LastPrices, trade: Trade) -> tuple[Any, ...]:
        memory.prices.append(trade.price_cents)
        memory.total_cents += trade.price_cents
        if len(memory.prices) > self.trades:
            memory.total_cents -= memory.prices.popleft()
        return (trade.stock, trade.trade_no, trade.at_ms, memory.total_cents, len(memory.prices))


@dataclass(frozen=True, slots=True)
class CompositeIndex:
    """The sum of all stocks' last prices, told with every trade of the market. It has one memory, and so one shard works."""

    columns: ClassVar[str] = "row long, stock long, trade_no long, at_ms long, index_cents long, stocks long"
    key: ClassVar[str] = "'market'"

    def start(self) -> dict[int, int]:
        return {}

    def seen(self, memory: dict[int, int], trade: Trade) -> tuple[Any, ...]:
        memory[trade.stock] = trade.price_cents
        return (trade.row, trade.stock, trade.trade_no, trade.at_ms, sum(memory.values()), len(memory))


@dataclass(slots=True)
class Zone:
    """Where the price of a stock is: below (-1), within (0) or above (1) its limits, which its first price decides."""

    first_cents: int = 0
    zone: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceAlarm:
    """The price has left the band of `permille` around the stock's first price, or has gone through to its other side.

    `amount` is the limit in cents times 1000.
    """

    columns: ClassVar[str] = EVENT
    key: ClassVar[str] = "stock"
    permille: int

    def start(self) -> Zone:
        return Zone()

    def seen(self, memory: Zone, trade: Trade) -> tuple[Any, ...] | None:
        memory.first_cents = memory.first_cents or trade.price_cents
        low, high = (memory.first_cents * (1000 + sign * self.permille) for sign in (-1, 1))
        before, memory.zone = memory.zone, (trade.price_cents * 1000 > high) - (trade.price_cents * 1000 < low)
        if memory.zone in (0, before):
            return None
        return _event(trade, "above", high) if memory.zone > 0 else _event(trade, "below", low)


@dataclass(slots=True)
class Last:
    price_cents: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceJump:
    """A trade's price is `permille` or more from that of the trade before. `amount` is the difference in cents."""

    columns: ClassVar[str] = EVENT
    key: ClassVar[str] = "stock"
    permille: float

    def start(self) -> Last:
        return Last()

    def seen(self, memory: Last, trade: Trade) -> tuple[Any, ...] | None:
        before, memory.price_cents = memory.price_cents, trade.price_cents
        change = trade.price_cents - before
        if not before or not change or abs(change) * 1000 < self.permille * before:
            return None
        return _event(trade, "up" if change > 0 else "down", change)


@dataclass(slots=True)
class Recent:
    trades: deque[tuple[int, int]] = field(default_factory=deque)  # when, and how many shares
    quantity: int = 0
    bursting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeBurst:
    """In the last `window_ms` up to a trade `shares` or more were traded, and up to the trade before they were not."""

    columns: ClassVar[str] = EVENT
    key: ClassVar[str] = "stock"
    window_ms: int
    shares: int

    def start(self) -> Recent:
        return Recent()

    def seen(self, memory: Recent, trade: Trade) -> tuple[Any, ...] | None:
        memory.trades.append((trade.at_ms, trade.quantity))
        memory.quantity += trade.quantity
        while memory.trades[0][0] <= trade.at_ms - self.window_ms:
            memory.quantity -= memory.trades.popleft()[1]
        before, memory.bursting = memory.bursting, memory.quantity >= self.shares
        return _event(trade, "burst", memory.quantity) if memory.bursting and not before else None


@dataclass(slots=True)
class Range:
    low_cents: int = 0
    high_cents: int = 0


@dataclass(frozen=True, slots=True)
class NewExtreme:
    """A price higher or lower than all before, the first one aside. `amount` is the extreme that it leaves behind."""

    columns: ClassVar[str] = EVENT
    key: ClassVar[str] = "stock"

    def start(self) -> Range:
        return Range()

    def seen(self, memory: Range, trade: Trade) -> tuple[Any, ...] | None:
        price, low, high = trade.price_cents, memory.low_cents, memory.high_cents
        memory.low_cents, memory.high_cents = min(price, low or price), max(price, high)
        if not high or low <= price <= high:
            return None
        return _event(trade, "high", high) if price > high else _event(trade, "low", low)
