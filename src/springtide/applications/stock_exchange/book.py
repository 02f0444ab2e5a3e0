"""The order book of one stock: limit orders by price and, at the same price, by time.

An order that comes takes the best orders of the other side as long as its limit allows, each at the waiting order's price;
what is left waits. The best is the top of a heap. Orders that have gone stay in the heap until they are at its top, or until
the book is packed: a packed book has live orders only, so state is bounded by what waits on the exchange.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from springtide.applications.stock_exchange.tape import Action, Event, Kind, Reason, Side, Told, rejection

_COLUMNS = 5  # of a packed order: number, seq, price, what is left, whether it buys
_HEADER = 2  # last seq, number of trades


@dataclass(slots=True)
class Resting:
    """An order that waits."""

    seq: int
    price_cents: int
    left: int
    buys: bool


@dataclass(slots=True)
class Book:
    """`apply` takes events in the order of their rows and tells what came of each."""

    last_seq: int = 0
    trades: int = 0
    orders: dict[int, Resting] = field(default_factory=dict)
    _bids: list[tuple[int, int, int]] = field(default_factory=list)  # (-price, seq, order number)
    _asks: list[tuple[int, int, int]] = field(default_factory=list)  # (price, seq, order number)

    def apply(self, event: Event) -> Iterator[Told]:
        if not event.well_formed:
            yield rejection(event, Reason.MALFORMED)
        elif event.seq <= self.last_seq:
            yield rejection(event, Reason.LATE)
        else:
            self.last_seq = event.seq
            yield from _TAKEN[Action(event.action)](self, event)

    def _match(self, event: Event) -> Iterator[Told]:
        if event.order_no in self.orders:
            yield rejection(event, Reason.KNOWN)
            return
        buys = event.side == Side.BUY
        waiting, left = self._asks if buys else self._bids, event.quantity
        while left and (number := self._best(waiting)) is not None:
            other = self.orders[number]
            if other.price_cents > event.price_cents if buys else other.price_cents < event.price_cents:
                break
            quantity = min(left, other.left)
            left -= quantity
            self._take(number, quantity)
            parties = (event.order_no, number) if buys else (number, event.order_no)
            yield self._trade(event, other.price_cents, quantity, parties)
        if left:
            self._wait(event, left)

    def _queue(self, event: Event) -> Iterator[Told]:
        if event.order_no in self.orders:
            yield rejection(event, Reason.KNOWN)
        else:
            self._wait(event, event.quantity)

    def _cancel(self, event: Event) -> Iterator[Told]:
        if self.orders.pop(event.order_no, None) is None:
            yield rejection(event, Reason.UNKNOWN)

    def _cross(self, event: Event) -> Iterator[Told]:
        buyer, seller = self.orders.get(event.order_no), self.orders.get(event.other_order_no)
        if buyer is None or seller is None or not buyer.buys or seller.buys:
            yield rejection(event, Reason.UNKNOWN)
        elif min(buyer.left, seller.left) < event.quantity:
            yield rejection(event, Reason.TOO_MUCH)
        else:
            self._take(event.order_no, event.quantity)
            self._take(event.other_order_no, event.quantity)
            yield self._trade(event, event.price_cents, event.quantity, (event.order_no, event.other_order_no))

    def _best(self, waiting: list[tuple[int, int, int]]) -> int | None:
        while waiting:
            _, seq, number = waiting[0]
            # The number alone does not tell: it may have gone and come again.
            if number in self.orders and self.orders[number].seq == seq:
                return number
            heapq.heappop(waiting)
        return None

    def _take(self, number: int, quantity: int) -> None:
        order = self.orders[number]
        order.left -= quantity
        if not order.left:
            del self.orders[number]

    def _wait(self, event: Event, left: int) -> None:
        buys = event.side == Side.BUY
        self.orders[event.order_no] = Resting(seq=event.seq, price_cents=event.price_cents, left=left, buys=buys)
        self._push(event.order_no, self.orders[event.order_no])

    def _push(self, number: int, order: Resting) -> None:
        if order.buys:
            heapq.heappush(self._bids, (-order.price_cents, order.seq, number))
        else:
            heapq.heappush(self._asks, (order.price_cents, order.seq, number))

    def _trade(self, event: Event, price_cents: int, quantity: int, parties: tuple[int, int]) -> Told:
        self.trades += 1
        kind = Kind.AUCTION if event.action == Action.CROSS else Kind.TRADE
        made = (event.row, event.stock, self.trades, event.at_ms, price_cents, quantity)
        return Told(kind, "", *made, *parties, event.side)

    def packed(self) -> bytes:
        """The book as bytes: 40 for each order that waits, and 16."""
        rows = [(number, o.seq, o.price_cents, o.left, o.buys) for number, o in self.orders.items()]
        orders = np.array(rows, np.int64).reshape(-1, _COLUMNS)
        return np.concatenate(([self.last_seq, self.trades], orders.ravel())).astype(np.int64).tobytes()

    @classmethod
    def unpacked(cls, packed: bytes) -> Self:
        numbers = np.frombuffer(packed, np.int64)
        book = cls(last_seq=int(numbers[0]), trades=int(numbers[1]))
        for number, seq, price_cents, left, buys in numbers[_HEADER:].reshape(-1, _COLUMNS).tolist():
            book.orders[number] = Resting(seq=seq, price_cents=price_cents, left=left, buys=bool(buys))
            book._push(number, book.orders[number])
        return book


_TAKEN: dict[Action, Callable[[Book, Event], Iterator[Told]]] = {
    Action.NEW: Book._match,
    Action.QUEUE: Book._queue,
    Action.CANCEL: Book._cancel,
    Action.CROSS: Book._cross,
}
