"""The transactor of section 5.4 for live runs: the exchange that comes with Springtide, and a wait for every order.

Orders come in the order of the tape (a recorded stock's and its copies', or a made day's) at a steady rate: how popular stocks
are changes as it did then, since every stock begins to trade at a time of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession

import springtide
from springtide.applications.answers import compared
from springtide.applications.shipped import Checked
from springtide.applications.stock_exchange.application import StockExchange
from springtide.applications.stock_exchange.book import Book
from springtide.applications.stock_exchange.days import Day
from springtide.applications.stock_exchange.matching_by_level import matched
from springtide.applications.stock_exchange.tape import ORDERS, TOLD, Event, Told
from springtide.applications.stock_exchange.transactor import events
from springtide.errors import require
from springtide.experiments.elasticutor_live import world
from springtide.experiments.elasticutor_live.trial import Kept

if TYPE_CHECKING:
    from pyspark.sql.streaming.state import GroupState

STOCKS = 48
_UNTIL = "09:36"
_BEYOND_S = 30.0
_WHOLE = ["row"] + [
    f"coalesce({name}, {0 if str(ORDERS.field(name).type) == 'int64' else repr('')}) as {name}" for name in ORDERS.names
]


@dataclass(frozen=True, kw_only=True)
class Orders:
    """Orders of `STOCKS` stocks, each of which waits `row_s`."""

    counted_s: float
    row_s: float = world.ROW_S
    rows_per_batch: int = world.ROWS_PER_BATCH
    seed: int = 7

    @cached_property
    def _exchange(self) -> StockExchange:
        return StockExchange(stocks=STOCKS, until=_UNTIL, analytics="none", shards=world.SHARDS, seed=self.seed)

    @cached_property
    def _day(self) -> Day:
        return self._exchange.day()

    @cached_property
    def _tape(self) -> Any:
        """As many orders as the trace has rows."""
        rows = self._exchange.feed(self._day).rows
        wanted = world.rows_of(world.trace(self.counted_s + _BEYOND_S))
        require(rows.num_rows >= wanted, f"the tape has {rows.num_rows} orders, and {wanted} are needed: run for less long")
        return rows.slice(0, wanted)

    @property
    def data(self) -> str:
        return f"{STOCKS} stocks: {self._day.said}"

    def application(self, operator: str, folder: Path, kept: Kept) -> springtide.Application:
        rows = springtide.Recorded.keep(self._tape, folder / "rows" / "orders.arrow")
        read = partial(
            springtide.replay,
            trace=world.trace(self.counted_s + _BEYOND_S),
            rows=rows,
            max_rows_per_batch=self.rows_per_batch,
        )
        app = springtide.Application(operator, slo=springtide.SLO(latency_s=5))
        orders = app.source("orders", read, ingest_time="offered_at")
        transact = partial(transacted, row_s=self.row_s)
        app.sink(app.operator(operator, transact, orders, shards=world.SHARDS, replicas=world.SLOTS), kept.save)
        return app

    def checked(self, spark: SparkSession, kept: Kept, rows: int) -> Checked:  # noqa: ARG002 - it needs no Spark
        """Trades and rejections beside those of an exchange that is written differently."""
        right = matched(_events(self._tape.slice(0, rows)))
        said = [tuple(row[name] for name in Told._fields) for row in kept.rows()]
        return compared("trades and rejected events", right, said)

    def rows_at_shuffles(self) -> list[float]:
        return []


def transacted(orders: DataFrame, *, row_s: float) -> DataFrame:
    taken = partial(_taken, row_s=row_s)
    return orders.selectExpr(*_WHOLE).groupBy("stock").applyInPandasWithState(taken, TOLD, "book binary", "append", "NoTimeout")


def _taken(
    stock: tuple[Any, ...],  # noqa: ARG001 - each event has its stock
    orders: Iterator[pd.DataFrame],
    state: GroupState,
    *,
    row_s: float,
) -> Iterator[pd.DataFrame]:
    batch = pd.concat(list(orders))
    book = Book.unpacked(state.get[0]) if state.exists else Book()
    time.sleep(row_s * len(batch))
    said = [one for event in events(batch) for one in book.apply(event)]
    state.update((book.packed(),))
    yield pd.DataFrame(said, columns=Told._fields)


def _events(rows: Any) -> list[Event]:
    """As the exchange is shown them: what is missing is 0 or nothing."""
    nothing = ["" if kind == "string" else 0 for kind in rows.schema.types]
    columns = [column.fill_null(instead).to_pylist() for column, instead in zip(rows.columns, nothing, strict=True)]
    return [Event(row, *values) for row, values in enumerate(zip(*columns, strict=True))]
