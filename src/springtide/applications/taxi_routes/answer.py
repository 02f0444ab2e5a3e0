"""The right answer, computed in the plainest way: one line after the other, all routes in one sorted list."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

_WINDOW = timedelta(minutes=30)
_1970 = datetime(1970, 1, 1, tzinfo=UTC)

Change = tuple[int, int, int, tuple[str, ...], tuple[int, ...]]  # row, pickup, drop-off (microseconds), routes, counts


@dataclass(slots=True)
class Answer:
    """Each change of the ten most frequent routes; the lines that were rejected, and why; the trips that were late."""

    changes: list[Change] = field(default_factory=list)
    rejected: list[tuple[int, str]] = field(default_factory=list)
    late: list[tuple[int]] = field(default_factory=list)


@dataclass(slots=True)
class _Routes:
    """Trips within the window, and the routes in the order of their rank."""

    trips: list[tuple[datetime, int, str]] = field(default_factory=list)
    of_route: dict[str, list[tuple[datetime, int]]] = field(default_factory=dict)
    order: list[tuple[int, float, int, str]] = field(default_factory=list)

    def change(self, route: str, trip: tuple[datetime, int], *, leaves: bool) -> None:
        trips = self.of_route.setdefault(route, [])
        if trips:
            del self.order[bisect_left(self.order, self._rank(route))]
        if leaves:
            trips.remove(trip)
            self.trips.remove((*trip, route))
        else:
            trips.append(trip)
            insort(self.trips, (*trip, route))
        if trips:
            insort(self.order, self._rank(route))

    def _rank(self, route: str) -> tuple[int, float, int, str]:
        when, row = max(self.of_route[route])
        return -len(self.of_route[route]), -when.timestamp(), -row, route


def answered(lines: Iterable[str]) -> Answer:
    """What must come out for these lines in this order."""
    answer, routes = Answer(), _Routes()
    now = datetime.min.replace(tzinfo=UTC)
    before: tuple[str, ...] = ()
    for row, line in enumerate(lines):
        trip = _read(line)
        if isinstance(trip, str):
            answer.rejected.append((row, trip))
            continue
        pickup, dropoff, route = trip
        now = max(now, dropoff)
        while routes.trips and routes.trips[0][0] <= now - _WINDOW:
            when, number, gone = routes.trips[0]
            routes.change(gone, (when, number), leaves=True)
        if dropoff <= now - _WINDOW:
            answer.late.append((row,))
        else:
            routes.change(route, (dropoff, row), leaves=False)
        first = routes.order[:10]
        names = tuple(name for *_, name in first)
        if names != before:
            before = names
            answer.changes.append((row, _us(pickup), _us(dropoff), names, tuple(-count for count, *_ in first)))
    return answer


def _us(when: datetime) -> int:
    return (when - _1970) // timedelta(microseconds=1)


def _read(line: str) -> tuple[datetime, datetime, str] | str:
    """Pickup, drop-off and route of a line, or why it is rejected."""
    fields = line.split(",")
    if len(fields) != 17:
        return "malformed"
    try:
        pickup, dropoff = (_time(text) for text in fields[2:4])
        from_x, from_y, to_x, to_y = (_degrees(text) for text in fields[6:10])
    except ValueError:
        return "malformed"
    if 0 in (from_x, from_y, to_x, to_y):
        return "zero coordinates"
    if not timedelta(0) < dropoff - pickup <= timedelta(days=1):
        return "times"
    cells = (*_cell(from_x, from_y), *_cell(to_x, to_y))
    if not all(1 <= cell <= 300 for cell in cells):
        return "outside"
    return pickup, dropoff, "{}.{}-{}.{}".format(*cells)


def _time(text: str) -> datetime:
    if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}", text):
        raise ValueError(text)
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)


def _degrees(text: str) -> float:
    if not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text):
        raise ValueError(text)
    return float(text)


def _cell(longitude: float, latitude: float) -> tuple[int, int]:
    """The first cell has its centre at 41.474937 N, 74.913585 W; a cell is 0.005986 degrees wide and 0.004491556 high."""
    east = math.floor((longitude - (-74.913585 - 0.005986 / 2)) / 0.005986)
    south = math.floor((41.474937 + 0.004491556 / 2 - latitude) / 0.004491556)
    return east + 1, south + 1
