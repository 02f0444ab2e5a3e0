"""What a trading day was, minute by minute and security by security: read from a recording, or made from a seed.

Rules: prices are whole numbers of 1/10000 of the currency, so that sums of them are exact. A bar without volume is no trade
(the exchange puts such markers in before and after the day) and is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from springtide.errors import InvalidValue, require

PRICE_PARTS = 10_000

IntArray = npt.NDArray[np.int64]

_US_PER_S = 1_000_000
_COLUMNS = ("Date", "Time", "Mnemonic", "StartPrice", "MaxPrice", "MinPrice", "EndPrice", "TradedVolume", "NumberOfTrades")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MinuteBars:
    """Row by row: in this minute (of the day) this company had so many trades at these prices. `names` are the companies."""

    day_us: int
    names: tuple[str, ...]
    company: IntArray
    minute: IntArray
    first: IntArray
    lowest: IntArray
    highest: IntArray
    last: IntArray
    trades: IntArray

    def __post_init__(self) -> None:
        within = (self.lowest <= np.minimum(self.first, self.last)) & (np.maximum(self.first, self.last) <= self.highest)
        fine = within & (self.lowest > 0) & (self.trades > 0)
        if not fine.all():
            wrong = f"{int(np.sum(~fine))} minutes have no trade, or prices that exclude one another"
            raise InvalidValue(f"{wrong}; the first is number {int(np.argmin(fine)) + 1}")

    def __len__(self) -> int:
        return self.company.size

    @property
    def first_minute(self) -> int:
        return int(self.minute.min())

    def between(self, first_minute: float, after_minute: float) -> MinuteBars:
        """The bars of some minutes; companies keep their numbers."""
        kept = (first_minute <= self.minute) & (self.minute < after_minute)
        columns = {
            name: getattr(self, name)[kept] for name in ("company", "minute", "first", "lowest", "highest", "last", "trades")
        }
        return MinuteBars(day_us=self.day_us, names=self.names, **columns)


def recorded_bars(path: Path) -> MinuteBars:
    """The bars of a Xetra day as the exchange published it (Deutsche Boerse Public Dataset)."""
    table = pa.csv.read_csv(
        path, convert_options=pa.csv.ConvertOptions(column_types={"Date": pa.string(), "Time": pa.string()})
    )
    missing = [name for name in _COLUMNS if name not in table.column_names]
    require(not missing, f"{path}: has no column {', '.join(missing)}: is this a day of Xetra?")
    table = table.filter(pa.compute.greater(table["TradedVolume"], 0))
    require(table.num_rows > 0, f"{path}: has no trade")
    texts = np.array(table["Mnemonic"].to_pylist(), dtype=str)
    names, company = np.unique(texts, return_inverse=True)
    clock = [text.split(":") for text in table["Time"].to_pylist()]
    return MinuteBars(
        day_us=_day_us(path, table["Date"][0].as_py()),
        names=tuple(names.tolist()),
        company=company.astype(np.int64),
        minute=np.array([int(hour) * 60 + int(minute) for hour, minute in clock], dtype=np.int64),
        first=_price(table, "StartPrice"),
        lowest=_price(table, "MinPrice"),
        highest=_price(table, "MaxPrice"),
        last=_price(table, "EndPrice"),
        trades=table["NumberOfTrades"].to_numpy().astype(np.int64),
    )


def _price(table: pa.Table, name: str) -> IntArray:
    prices: IntArray = np.rint(table[name].to_numpy() * PRICE_PARTS).astype(np.int64)
    return prices


def _day_us(path: Path, text: str) -> int:
    try:
        return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * _US_PER_S
    except ValueError:
        raise InvalidValue(f"{path}: {text!r} is no date") from None


_OPENS, _CLOSES = 7 * 60, 15 * 60 + 30  # minutes of the day, UTC
_COMPANIES = 400
_TRADES_PER_MINUTE = 770.0
_MADE_DAY = datetime(2017, 7, 28, tzinfo=UTC)


def made_bars(seed: int) -> MinuteBars:
    """A day with the shape of the recorded ones: busy at the opening, bursts, few companies with most of the trades."""
    rng = np.random.default_rng((seed, 1))
    minutes = _CLOSES - _OPENS
    weights = 1.0 / np.arange(1, _COMPANIES + 1) ** 0.8
    opening = 1.0 + 2.0 * np.exp(-np.arange(minutes) / 15.0)
    bursts = np.where(rng.random(minutes) < 0.03, rng.uniform(1.5, 4.0, minutes), 1.0)
    trades = rng.poisson(_TRADES_PER_MINUTE * np.outer(opening * bursts / 1.2, weights / weights.sum()))

    # A price walks in steps of 10/10000; a bar starts where the one before it ended, and may have gone further meanwhile.
    steps = rng.integers(-3, 4, (minutes + 1, _COMPANIES)) * 10
    level = np.maximum(rng.integers(50_000, 1_000_000, _COMPANIES) + np.cumsum(steps, axis=0), 1_000)
    first, last = level[:-1], np.where(trades > 1, level[1:], level[:-1])
    beyond = np.where(trades > 2, rng.integers(0, 3, trades.shape) * 10, 0)
    minute, company = np.nonzero(trades)
    at = (minute, company)
    return MinuteBars(
        day_us=round(_MADE_DAY.timestamp()) * _US_PER_S,
        names=tuple(f"M{number:03d}" for number in range(_COMPANIES)),
        company=company.astype(np.int64),
        minute=(minute + _OPENS).astype(np.int64),
        first=first[at],
        lowest=(np.minimum(first, last) - beyond)[at],
        highest=(np.maximum(first, last) + beyond)[at],
        last=last[at],
        trades=trades[at].astype(np.int64),
    )
