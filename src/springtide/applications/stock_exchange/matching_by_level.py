"""The same exchange once more, written differently: what the transactor's trades are checked with.

Prices of a side are one sorted list, and each price has its orders in a queue, oldest first. Nothing is packed, nothing is
cut into batches, and the code shares only the columns with `book`.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from springtide.applications.stock_exchange.tape import Event, Kind, Reason, Told

_KNOWN_SIDES = {"new": "BS", "queue": "BS", "cancel": "BS", "cross": "N"}


@dataclass(slots=True)
class _Side:
    """One side of a stock: prices in rising order, and for each its queue of [order number, what is left]."""

    prices: list[int] = field(default_factory=list)
    queues: dict[int, deque[list[int]]] = field(default_factory=dict)

    def add(self, price: int, order: list[int]) -> None:
        if price not in self.queues:
            insort(self.prices, price)
            self.queues[price] = deque()
        self.queues[price].append(order)

    def remove(self, price: int, order: list[int]) -> None:
        queue = self.queues[price]
        queue.remove(order)
        if not queue:
            del self.queues[price]
            del self.prices[bisect_left(self.prices, price)]


@dataclass(slots=True)
class _Exchange:
    """All of one stock: `found` has its trades and rejections."""

    found: list[Told] = field(default_factory=list)
    sides: dict[str, _Side] = field(default_factory=lambda: {"B": _Side(), "S": _Side()})
    places: dict[int, tuple[str, int, list[int]]] = field(default_factory=dict)
    seen: int = 0
    trades: int = 0

    def see(self, event: Event) -> None:
        reason = self._refusal(event)
        if reason not in (Reason.MALFORMED, Reason.LATE):
            self.seen = event.seq
        if reason is not None:
            refused = (reason, event.row, event.stock, 0, event.at_ms, 0, 0, 0, 0, "N")
            self.found.append(Told(Kind.REJECTED, *refused))
        elif event.action == "cancel":
            self._reduce(event.order_no, self.places[event.order_no][2][1])
        elif event.action == "cross":
            for number in (event.order_no, event.other_order_no):
                self._reduce(number, event.quantity)
            self._note(event, event.order_no, event.other_order_no, event.price_cents, event.quantity)
        else:
            self._enter(event)

    def _refusal(self, event: Event) -> Reason | None:
        fields = (event.stock, event.seq, event.at_ms, event.order_no, event.price_cents, event.quantity)
        if (
            any(number <= 0 for number in fields)
            or len(event.side) != 1
            or event.side not in _KNOWN_SIDES.get(event.action, "")
        ):
            return Reason.MALFORMED
        if event.seq <= self.seen:
            return Reason.LATE
        if event.action in ("new", "queue"):
            return Reason.KNOWN if event.order_no in self.places else None
        if event.action == "cancel":
            return None if event.order_no in self.places else Reason.UNKNOWN
        both = [self.places.get(number) for number in (event.order_no, event.other_order_no)]
        if [place and place[0] for place in both] != ["B", "S"]:
            return Reason.UNKNOWN
        return Reason.TOO_MUCH if any(place and place[2][1] < event.quantity for place in both) else None

    def _enter(self, event: Event) -> None:
        left = event.quantity
        if event.action == "new":
            other = self.sides["S" if event.side == "B" else "B"]
            while left and other.prices:
                price = other.prices[0] if event.side == "B" else other.prices[-1]
                if (price - event.price_cents) * (1 if event.side == "B" else -1) > 0:
                    break
                number, waiting = other.queues[price][0]
                quantity = min(left, waiting)
                left -= quantity
                self._reduce(number, quantity)
                buyer, seller = (event.order_no, number) if event.side == "B" else (number, event.order_no)
                self._note(event, buyer, seller, price, quantity)
        if left:
            order = [event.order_no, left]
            self.sides[event.side].add(event.price_cents, order)
            self.places[event.order_no] = (event.side, event.price_cents, order)

    def _reduce(self, number: int, quantity: int) -> None:
        side, price, order = self.places[number]
        if order[1] == quantity:
            self.sides[side].remove(price, order)
            del self.places[number]
        else:
            order[1] -= quantity

    def _note(self, event: Event, buyer: int, seller: int, price: int, quantity: int) -> None:
        self.trades += 1
        kind = Kind.AUCTION if event.action == "cross" else Kind.TRADE
        who = (buyer, seller, event.side)
        self.found.append(Told(kind, "", event.row, event.stock, self.trades, event.at_ms, price, quantity, *who))


def matched(events: Iterable[Event]) -> list[Told]:
    """What the exchange has to tell of all events, stock by stock."""
    stocks: dict[int, _Exchange] = {}
    for event in events:
        stocks.setdefault(event.stock, _Exchange()).see(event)
    return [told for stock in sorted(stocks) for told in stocks[stock].found]
