"""The transactor: the order books of all stocks as keyed state, one packed book for each stock.

Events of a stock are taken in the order of their rows, whatever batches they come in. One that is malformed, late, repeated
or does not fit the book changes nothing, and is told as rejected.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd

from springtide.applications.stock_exchange.book import Book
from springtide.applications.stock_exchange.tape import ORDERS, TOLD, Event, Told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState

# What is missing becomes 0 or "", which no event may have: whole numbers would turn into fractions beside a missing one.
_WHOLE = ["row"] + [
    f"coalesce({name}, {0 if str(ORDERS.field(name).type) == 'int64' else repr('')}) as {name}" for name in ORDERS.names
]


def transacted(orders: DataFrame) -> DataFrame:
    """Trades and rejections, of the columns `tape.TOLD`."""
    return (
        orders.selectExpr(*_WHOLE).groupBy("stock").applyInPandasWithState(_taken, TOLD, "book binary", "append", "NoTimeout")
    )


def _taken(stock: tuple[Any, ...], orders: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:  # noqa: ARG001 - each event has its stock
    book = Book.unpacked(state.get[0]) if state.exists else Book()
    told = [one for event in events(pd.concat(list(orders))) for one in book.apply(event)]
    state.update((book.packed(),))
    yield pd.DataFrame(told, columns=Told._fields)


def events(orders: pd.DataFrame) -> Iterator[Event]:
    """In the order of their rows."""
    ordered = orders.sort_values("row")
    return map(Event._make, zip(*(ordered[name].tolist() for name in Event._fields), strict=True))
