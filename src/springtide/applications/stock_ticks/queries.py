"""The continuous queries: a window length and a sector each, both drawn, as in the paper's evaluation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuousQuery:
    """SELECT FIRST, MIN, AVG, MAX, LAST(price) WITHIN `window_s` SEC GROUP BY company WHERE sector = `sector`"""

    number: int
    sector: int
    window_s: int


def drawn_queries(count: int, *, sectors: int, shortest_s: int, longest_s: int, seed: int) -> tuple[ContinuousQuery, ...]:
    """So many queries, numbered from 0.

    >>> drawn_queries(1, sectors=10, shortest_s=60, longest_s=60, seed=7)
    (ContinuousQuery(number=0, sector=5, window_s=60),)
    """
    rng = np.random.default_rng((seed, 4))
    windows_s = rng.integers(shortest_s, longest_s + 1, count).tolist()
    chosen = rng.integers(0, sectors, count).tolist()
    return tuple(
        ContinuousQuery(number=number, sector=sector, window_s=window_s)
        for number, (sector, window_s) in enumerate(zip(chosen, windows_s, strict=True))
    )
