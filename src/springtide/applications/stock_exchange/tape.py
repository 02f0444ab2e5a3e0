"""The two streams of the exchange, column by column: what comes in at the gate, and what the transactor tells.

Prices are whole cents, quantities whole shares, times whole milliseconds since 1970. A stock's events are numbered by
`seq`, which rises; a stock's trades by `trade_no`, from 1 on. `row` is the number of the event in the whole stream, and
stays with what the event has caused.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import pyarrow as pa


class Action(StrEnum):
    """What an event asks for."""

    NEW = "new"  # a limit order, matched at once; what is left of it waits in the book
    QUEUE = "queue"  # a limit order in a call auction: it waits
    CANCEL = "cancel"  # what is left of an order goes
    CROSS = "cross"  # two orders that wait trade with one another, as an auction has decided; the buyer's is `order_no`


class Side(StrEnum):
    BUY = "B"
    SELL = "S"
    NONE = "N"  # of an auction: nobody was first


class Kind(StrEnum):
    """What the transactor tells."""

    TRADE = "trade"
    AUCTION = "auction"  # a trade too
    REJECTED = "rejected"  # an event that changed nothing, with its reason


class Reason(StrEnum):
    MALFORMED = "malformed"  # an action or side that does not exist; no stock, number, price or quantity above 0
    LATE = "late or repeated"  # its `seq` is not above that of the stock's last event
    KNOWN = "order is in the book"
    UNKNOWN = "order is not in the book"
    TOO_MUCH = "more than is left"


ORDERS = pa.schema(
    [
        ("stock", pa.int64()),
        ("seq", pa.int64()),
        ("at_ms", pa.int64()),
        ("action", pa.string()),
        ("order_no", pa.int64()),
        ("other_order_no", pa.int64()),
        ("side", pa.string()),
        ("price_cents", pa.int64()),
        ("quantity", pa.int64()),
    ]
)

TOLD = (
    "kind string, reason string, row long, stock long, trade_no long, at_ms long, price_cents long, quantity long, "
    "buyer long, seller long, aggressor string"
)


class Event(NamedTuple):
    """A row of `ORDERS`, with its number in the stream."""

    row: int
    stock: int
    seq: int
    at_ms: int
    action: str
    order_no: int
    other_order_no: int
    side: str
    price_cents: int
    quantity: int

    @property
    def well_formed(self) -> bool:
        numbers = min(self.stock, self.seq, self.at_ms, self.order_no, self.price_cents, self.quantity)
        return numbers > 0 and self.action in _ACTIONS and self.side in _SIDES[self.action]


_ACTIONS = frozenset(Action)
_SIDES: dict[str, frozenset[str]] = {action: frozenset({Side.BUY, Side.SELL}) for action in Action}
_SIDES[Action.CROSS] = frozenset({Side.NONE})


class Told(NamedTuple):
    """A row of `TOLD`. A rejection has no trade: its numbers are 0, but for those of the event."""

    kind: str
    reason: str
    row: int
    stock: int
    trade_no: int
    at_ms: int
    price_cents: int
    quantity: int
    buyer: int
    seller: int
    aggressor: str


def rejection(event: Event, reason: Reason) -> Told:
    return Told(Kind.REJECTED, reason, event.row, event.stock, 0, event.at_ms, 0, 0, 0, 0, Side.NONE)
