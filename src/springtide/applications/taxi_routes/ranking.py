"""The most frequent routes, of a part of all routes and of all: the states of the two ranking operators, without Spark.

Rules: a route with more trips is before one with fewer; of two with as many, the one with the more recent drop-off, and of
drop-offs at the same time that of the later row. A part tells its first ten after each row that changes them, their counts, or
their most recent trips. All parts have told what happened up to a row before a later row is looked at, because a batch holds
all that its rows led to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from springtide.applications.taxi_routes.counting import LATE, CountChange

TOP = 10

Standing = tuple[int, int, int, str]  # trips, most recent drop-off, its row, route: the larger, the further in front


class PartTop(NamedTuple):
    """The first routes of a part after what happened at `row`, which was the trip of these times."""

    row: int
    part: int
    top: tuple[Standing, ...]
    pickup_us: int
    dropoff_us: int


class RankChange(NamedTuple):
    """The first routes of all after the trip at `row`, which changed them or their order; and their counts then."""

    row: int
    pickup_us: int
    dropoff_us: int
    routes: tuple[str, ...]
    counts: tuple[int, ...]


@dataclass(slots=True)
class PartialRank:
    """The routes of a part that have trips within the window."""

    routes: dict[str, Standing] = field(default_factory=dict)
    top: tuple[Standing, ...] = ()

    @classmethod
    def of_text(cls, text: str) -> PartialRank:
        standings: list[Standing] = [(count, at, row, route) for count, at, row, route in json.loads(text)]
        return cls({standing[3]: standing for standing in standings}, tuple(nlargest(TOP, standings)))

    def text(self) -> str:
        return json.dumps(list(self.routes.values()), separators=(",", ":"))

    def follow(self, part: int, changes: Iterable[CountChange]) -> list[PartTop]:
        """What the counts, which come in any order, change in front."""
        found = []
        counted = sorted((change for change in changes if change.trips != LATE), key=attrgetter("row"))
        for row, those in groupby(counted, key=attrgetter("row")):
            at_row = list(those)
            top = self._top_after(at_row)
            if top != self.top:
                self.top = top
                found.append(PartTop(row, part, top, at_row[0].pickup_us, at_row[0].dropoff_us))
        return found

    def _top_after(self, changes: list[CountChange]) -> tuple[Standing, ...]:
        """Take counts in; who is in front then? Only when one of those in front falls can somebody else come up."""
        near = {standing[3]: standing for standing in self.top}
        fallen = False
        for change in changes:
            standing = (change.trips, change.last_us, change.last_row, change.route)
            fallen = fallen or (change.route in near and standing < near[change.route])
            for among in (self.routes, near):
                among[change.route] = standing
                if not change.trips:
                    del among[change.route]
        everybody = fallen and len(self.top) == TOP
        return tuple(nlargest(TOP, (self.routes if everybody else near).values()))


@dataclass(slots=True)
class GlobalRank:
    """What each part has told last."""

    parts: dict[int, tuple[Standing, ...]] = field(default_factory=dict)
    routes: tuple[str, ...] = ()

    @classmethod
    def of_text(cls, text: str) -> GlobalRank:
        parts, routes = json.loads(text)
        return cls({part: tuple(tuple(standing) for standing in top) for part, top in parts}, tuple(routes))

    def text(self) -> str:
        return json.dumps((list(self.parts.items()), self.routes), separators=(",", ":"))

    def follow(self, told: Iterable[PartTop]) -> list[RankChange]:
        """The changes of the first ten, row by row; what parts told comes in any order."""
        found = []
        for row, those in groupby(sorted(told, key=attrgetter("row")), key=attrgetter("row")):
            at_row = list(those)
            self.parts.update({each.part: each.top for each in at_row})
            top = nlargest(TOP, (standing for part in self.parts.values() for standing in part))
            routes = tuple(standing[3] for standing in top)
            if routes != self.routes:
                self.routes = routes
                counts = tuple(standing[0] for standing in top)
                found.append(RankChange(row, at_row[0].pickup_us, at_row[0].dropoff_us, routes, counts))
        return found
