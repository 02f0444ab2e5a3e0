"""The right answer, computed in the plainest way: one tick after the other, one query after the other, in a dictionary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from springtide.applications.stock_ticks.queries import ContinuousQuery

Tick = tuple[str, int, int, int]  # company, sector, price in 1/10000, time in microseconds since 1970
Answer = tuple[int, str, int, int, int, float, int, int, int]  # query, company, window start, first, min, avg, max, last, ticks

_US_PER_S = 1_000_000


def answered(ticks: Iterable[Tick], queries: Sequence[ContinuousQuery]) -> list[Answer]:
    """Every window of every query that had a tick. Ticks come in any order; those of one time count in the order given."""
    windows: dict[tuple[int, str, int], list[int]] = {}
    for company, sector, price, at_us in sorted(ticks, key=lambda tick: tick[3]):
        for query in queries:
            if query.sector == sector:
                start_us = at_us // (query.window_s * _US_PER_S) * query.window_s * _US_PER_S
                windows.setdefault((query.number, company, start_us), []).append(price)
    return [
        (*key, prices[0], min(prices), sum(prices) / len(prices), max(prices), prices[-1], len(prices))
        for key, prices in windows.items()
    ]
