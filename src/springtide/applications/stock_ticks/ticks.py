"""Single ticks out of minutes: each bar becomes as many ticks as it had trades, or a share of them.

Rules: within its minute a company's ticks come at random times, the first at the minute's first price and the last at its last
one; the lowest and the highest price are met when there are enough ticks, and what lies between is drawn between those two.
Everything is drawn from the seed. Ticks are ordered by time; the exchange has no sectors in its data, so they are drawn, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from springtide.applications.stock_ticks.bars import IntArray, MinuteBars
from springtide.errors import require
from springtide.model.observation import FloatArray

SCHEMA = pa.schema(
    [
        ("company", pa.string()),
        ("sector", pa.int32()),
        ("price_x10000", pa.int64()),
        ("tick_at", pa.timestamp("us", tz="UTC")),
    ]
)

_US_PER_MINUTE = 60_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ticks:
    """Ticks in the order of their times, and the second at which each is offered, counted from the first minute's begin."""

    table: pa.Table
    times_s: FloatArray


def ticks_of(bars: MinuteBars, *, share: float, sectors: int, seed: int) -> Ticks:
    """`share` of the trades as ticks: of a bar with 3 trades and a share of 0.5, 1 or 2, on average 1.5."""
    rng = np.random.default_rng((seed, 2))
    counts = np.floor(bars.trades * share + rng.random(len(bars))).astype(np.int64)
    bar = np.repeat(np.arange(len(bars)), counts)
    require(bar.size > 0, f"a share of {share} of {int(bars.trades.sum())} trades leaves no tick; choose a larger one")
    drawn_us = rng.integers(0, _US_PER_MINUTE, bar.size)
    within_us = drawn_us[np.lexsort((drawn_us, bar))]
    prices = _prices(bars, counts, bar, rng)
    at_us = bars.day_us + bars.minute[bar] * _US_PER_MINUTE + within_us
    order = np.lexsort((bars.company[bar], at_us))  # stable: a company's ticks of one microsecond stay as they are
    companies, at_us = bars.company[bar][order], at_us[order]
    sector = sectors_of(len(bars.names), sectors=sectors, seed=seed)
    columns = [
        pa.array(np.array(bars.names, dtype=object)[companies], pa.string()),
        pa.array(sector[companies], pa.int32()),
        pa.array(prices[order], pa.int64()),
        pa.array(at_us, pa.int64()).cast(SCHEMA.field("tick_at").type),
    ]
    begin_us = bars.day_us + bars.first_minute * _US_PER_MINUTE
    return Ticks(table=pa.Table.from_arrays(columns, schema=SCHEMA), times_s=(at_us - begin_us) / 1e6)


def sectors_of(companies: int, *, sectors: int, seed: int) -> IntArray:
    """The sector of each company, drawn."""
    return np.random.default_rng((seed, 3)).integers(0, sectors, companies)


def _prices(bars: MinuteBars, counts: IntArray, bar: IntArray, rng: np.random.Generator) -> IntArray:
    begins = np.cumsum(counts) - counts
    position = np.arange(bar.size) - begins[bar]
    span = bars.highest - bars.lowest + 1
    prices = bars.lowest[bar] + np.floor(rng.random(bar.size) * span[bar]).astype(np.int64)
    inner = counts - 2
    lowest_missing = bars.lowest < np.minimum(bars.first, bars.last)
    highest_missing = bars.highest > np.maximum(bars.first, bars.last)
    low_at = np.floor(rng.random(counts.size) * inner).astype(np.int64)
    # The highest price comes at any other tick than the lowest one: so many further, around the inner ticks.
    further = 1 + np.floor(rng.random(counts.size) * (inner - 1)).astype(np.int64)
    low = np.flatnonzero(lowest_missing & (inner >= 1))
    prices[begins[low] + 1 + low_at[low]] = bars.lowest[low]
    high = np.flatnonzero(highest_missing & (inner >= np.where(lowest_missing, 2, 1)))
    high_at = np.where(lowest_missing[high], (low_at[high] + further[high]) % inner[high], low_at[high])
    prices[begins[high] + 1 + high_at] = bars.highest[high]
    is_last = position == counts[bar] - 1
    prices[is_last] = bars.last[bar[is_last]]
    prices[position == 0] = bars.first[bar[position == 0]]
    return prices
