"""The stream of all stocks: one day of orders, and copies of it that are other stocks, one after the other by time.

A copy has prices, a start and a pace of its own, all from the seed: its prices are shifted by so many cents, its day begins up
to two minutes later, and its continuous trading is stretched two to five times, so that stocks differ in how busy they
are, and are busy at different times. The quarter of an hour before trading begins passes six times faster.

Some events come twice, and some malformed ones lie between; what they are is from the seed too. The first stock's own
events are never changed or left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from springtide.applications.stock_exchange.days import BEGINS_MS, OPENS_MS, STOCK, Day
from springtide.applications.stock_exchange.tape import ORDERS
from springtide.model.observation import FloatArray

_LATEST_BEGIN_MS = 120_000
_AUCTION_PASSES = 6.0  # times faster than the rest: a quarter of an hour with little in it but its beginning and its end
_REPEATED_WITHIN_ROWS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """Rows of `tape.ORDERS`, and the second of the stream in which each comes."""

    rows: pa.Table
    times_s: FloatArray


def feed_of(day: Day, *, stocks: int, until_ms: int, faults_per_1000: float, seed: int) -> Feed:
    """The day and `stocks - 1` copies, up to that time."""
    tapes = [day.events.assign(stock=STOCK)]
    tapes += [_copied(day.events, number, np.random.default_rng([seed, number])) for number in range(1, stocks)]
    tape = pd.concat(tapes)
    ordered = tape[tape["at_ms"] < until_ms].sort_values(["at_ms", "stock", "seq"], kind="stable", ignore_index=True)
    whole = _with_faults(ordered, faults_per_1000, np.random.default_rng([seed, 0]))
    rows = pa.Table.from_pandas(whole[ORDERS.names], ORDERS, preserve_index=False)
    return Feed(rows=rows, times_s=_passed_s(whole["at_ms"].to_numpy(np.float64)))


def _passed_s(at_ms: FloatArray) -> FloatArray:
    """Seconds of the stream. An event that comes again comes after those between, whatever its own time is."""
    auction_ms, trading_ms = np.minimum(at_ms, OPENS_MS) - BEGINS_MS, np.maximum(at_ms - OPENS_MS, 0.0)
    passed_s: FloatArray = np.maximum.accumulate((auction_ms / _AUCTION_PASSES + trading_ms) / 1000)
    return passed_s


def _copied(events: pd.DataFrame, number: int, chance: np.random.Generator) -> pd.DataFrame:
    cheapest = int(events["price_cents"].min())
    shift_cents = int(chance.integers(-cheapest // 2, 2 * cheapest))
    later_ms, stretch = int(chance.integers(0, _LATEST_BEGIN_MS)), chance.uniform(2.0, 5.0)
    trading_ms = (events["at_ms"] - OPENS_MS).clip(lower=0)
    stretched = events["at_ms"] + later_ms + (trading_ms * (stretch - 1)).astype("int64")
    return events.assign(stock=STOCK + number, at_ms=stretched, price_cents=events["price_cents"] + shift_cents)


def _with_faults(tape: pd.DataFrame, faults_per_1000: float, chance: np.random.Generator) -> pd.DataFrame:
    """Half of the faults are events that come again a little later, half are malformed in one of five ways."""
    count = round(len(tape) * faults_per_1000 / 1000)
    picked = tape.iloc[chance.integers(0, len(tape), count)]
    places = picked.index.to_numpy() + chance.integers(0, _REPEATED_WITHIN_ROWS, count) + 0.5
    faults = picked.assign(place=places).reset_index(drop=True).astype({"price_cents": "Int64", "order_no": "Int64"})
    kinds = chance.integers(0, 10, count)
    faults.loc[kinds == 5, "quantity"] = 0
    faults.loc[kinds == 6, "price_cents"] = -faults["price_cents"]
    faults.loc[kinds == 7, "side"] = "X"
    faults.loc[kinds == 8, "action"] = "amend"
    faults.loc[kinds == 9, ["order_no", "price_cents"]] = pd.NA
    merged = pd.concat([tape.assign(place=tape.index.to_numpy(np.float64)), faults]).sort_values("place", kind="stable")
    return merged.reset_index(drop=True)
