"""How many rows the sources of a query have offered, by what they say whenever a batch is planned.

A batch is read when it begins, in the thread that runs it, so that a rate that rises is known at once; and the last one again
at the end of an interval. Safe to use from several threads.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from springtide.backends.spark.offsets import Offsets, is_edge, rows_reached
from springtide.monitor.arrivals import Arrivals

_MUCH = 2.0  # times the rate before: hosts may be needed sooner than at the end of the interval


@dataclass(frozen=True, slots=True)
class Lag:
    """Rows that a source had offered, and those of them that were read, since it began."""

    offered: float
    read: float


class SourceReadings:
    """Readings of the sources `names`, in the order in which the query reads them; edges are left out."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._lock = threading.Lock()
        self._arrivals: dict[str, Arrivals] = {}
        self._counted: dict[str, float] = {}  # of what each source has offered
        self._arrived = 0.0
        self._all_tell = False

    def read(self, offsets: Offsets, at_s: float) -> bool:
        """Note what sources had offered when a batch was planned. Whether one has begun to bring much more."""
        rose = False
        with self._lock:
            for name, lag in zip(self._names, _lags(offsets), strict=False):
                if lag is None:
                    continue
                before = self._arrivals.get(name, Arrivals())
                now = self._arrivals[name] = before.then(lag.offered, at_s)
                if now.began_anew(before):
                    self._counted[name] = lag.read
                rising = now.rising_rows_per_s if now.has_just_changed and now is not before else None
                rose = rose or (rising is not None and rising > _MUCH * now.steady_rows_per_s > 0)
        return rose

    def count(self, offsets: Offsets, now_s: float, *, idle: bool) -> dict[str, float | None]:
        """Rows that wait at each source by now, and have been counted as offered from now on; None for one that does not say.

        A source that is `idle` offers nothing beyond what it said; any other goes on as before.
        """
        waiting: dict[str, float | None] = {}
        with self._lock:
            lags = _lags(offsets)
            for name, lag in zip(self._names, lags, strict=False):
                if lag is None or name not in self._arrivals:
                    waiting[name] = None
                    continue
                offered = lag.offered if idle else max(lag.offered, self._arrivals[name].offered_by(now_s))
                waiting[name] = max(0.0, offered - lag.read)
                self._arrived += offered - self._counted[name]
                self._counted[name] = offered
            told = [rows for rows in waiting.values() if rows is not None]
            self._all_tell = len(lags) == len(self._names) == len(told)
        return waiting

    def take_arrived(self) -> float | None:
        """Rows that were counted as offered since the last call; None where a source does not say."""
        with self._lock:
            arrived, self._arrived = self._arrived, 0.0
            return arrived if self._all_tell else None

    @property
    def rates_per_s(self) -> dict[str, float]:
        with self._lock:
            return {name: arrivals.rows_per_s for name, arrivals in self._arrivals.items()}

    @property
    def rising_rows_per_s(self) -> dict[str, float] | None:
        """Sources that have begun to bring more by what they said last, and what they may bring; None if none says anything."""
        with self._lock:
            rates = {name: arrivals.rising_rows_per_s for name, arrivals in self._arrivals.items()}
        return {name: rate for name, rate in rates.items() if rate is not None} if rates else None


def offsets_at_end(progress: Mapping[str, Any] | None) -> tuple[Offsets, float]:
    """What Spark says of the sources of a batch that is over, and when they were asked."""
    if progress is None:
        return [], 0.0
    texts = [(source["endOffset"], source["latestOffset"]) for source in progress["sources"]]
    asked_s = datetime.fromisoformat(progress["timestamp"]).timestamp()
    return [(json.loads(end) if end else None, json.loads(had) if had else None) for end, had in texts], asked_s


def _lags(offsets: Offsets) -> list[Lag | None]:
    """How far each source that is not an edge has been read; None where offsets do not count rows. One that has not been
    read yet begins at row 0."""
    found: list[Lag | None] = []
    for reached, had in offsets:
        if is_edge(had):
            continue
        offered = rows_reached(had)
        read = 0.0 if reached is None else rows_reached(reached)
        found.append(None if offered is None or read is None else Lag(offered, read))
    return found
