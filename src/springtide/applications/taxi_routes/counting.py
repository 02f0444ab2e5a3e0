"""How many trips each route has had within the window: the state of one bucket of routes, without Spark.

Rules: the clock is the latest drop-off so far. The window is (clock - 30 min, clock]: a trip that was dropped off earlier has
left it. What happens at a row is first that time passes, and then that its trip counts; of each route that changes, the count
after both is told. A trip that comes when its drop-off has already left the window is late, and does not count; one that comes
out of order and is still within it does. A trip that comes twice counts twice, as in the grand challenge. A drop-off is
believed, so one that lies far ahead makes those after it late.
"""

from __future__ import annotations

import json
from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

WINDOW_US = 30 * 60 * 1_000_000

_Stay = tuple[int, int, str]  # drop-off, row, route


class Arrival(NamedTuple):
    """A trip, or the news that time has passed: then there is no route."""

    row: int
    route: str | None
    pickup_us: int
    dropoff_us: int


class CountChange(NamedTuple):
    """The trips of a route within the window after what happened at `row`, and the most recent of them.

    `pickup_us` and `dropoff_us` are of the trip that came at `row`, on whichever route. -1 trips mean that it is late.
    """

    row: int
    route: str
    trips: int
    last_us: int
    last_row: int
    pickup_us: int
    dropoff_us: int


LATE = -1


@dataclass(slots=True)
class WindowCounts:
    """The trips within the window, in the order in which they leave it."""

    clock_us: int = 0
    stays: list[_Stay] = field(default_factory=list)

    @classmethod
    def of_text(cls, text: str) -> WindowCounts:
        clock_us, stays = json.loads(text)
        return cls(clock_us, [(at, row, route) for at, row, route in stays])

    def text(self) -> str:
        return json.dumps((self.clock_us, self.stays), separators=(",", ":"))

    def follow(self, arrivals: Iterable[Arrival]) -> list[CountChange]:
        """What changes with these rows, which come in any order and are taken in that of their numbers."""
        by_route: dict[str, list[tuple[int, int]]] = {}
        for at, number, route in self.stays:
            by_route.setdefault(route, []).append((at, number))
        found: list[CountChange] = []
        for row, those in groupby(sorted(arrivals, key=lambda arrival: arrival.row), key=lambda arrival: arrival.row):
            at_row = list(those)
            changed = self._passed(at_row[0].dropoff_us, by_route)
            pickup_us, dropoff_us = at_row[0].pickup_us, at_row[0].dropoff_us
            for route in (arrival.route for arrival in at_row if arrival.route is not None):
                if self._add((dropoff_us, row, route), by_route):
                    changed[route] = None
                else:
                    found.append(CountChange(row, route, LATE, 0, 0, pickup_us, dropoff_us))
            for route in changed:
                stays = by_route.get(route)
                count, last = (len(stays), stays[-1]) if stays else (0, (0, 0))
                found.append(CountChange(row, route, count, *last, pickup_us, dropoff_us))
        return found

    def _passed(self, at_us: int, by_route: dict[str, list[tuple[int, int]]]) -> dict[str, None]:
        """Time has come this far: the routes whose trips leave the window, in a fixed order."""
        self.clock_us = max(self.clock_us, at_us)
        left = 0
        changed: dict[str, None] = {}
        while left < len(self.stays) and self.stays[left][0] <= self.clock_us - WINDOW_US:
            route = self.stays[left][2]
            by_route[route].pop(0)
            if not by_route[route]:
                del by_route[route]
            changed[route] = None
            left += 1
        del self.stays[:left]
        return changed

    def _add(self, stay: _Stay, by_route: dict[str, list[tuple[int, int]]]) -> bool:
        at_us, row, route = stay
        if at_us <= self.clock_us - WINDOW_US:
            return False
        insort(self.stays, stay)
        insort(by_route.setdefault(route, []), (at_us, row))
        return True
