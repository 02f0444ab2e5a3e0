"""One stock's day of orders: as the Shanghai Stock Exchange recorded it, or made from a seed.

The recording (Kweichow Moutai, 600519, on 2023-02-07) is two files. `..._submitted_orders` has the orders as they were sent;
outside continuous trading (09:30 to 14:57, China's time) they only wait. How the two call auctions ended is not matched
here but applied as given: their trades (side N) are taken from `..._orders_trades` and come where they were recorded, for
`seq` and `biz_index` are one numbering. With that, price-time matching gives all 18,139 trades of continuous trading, in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd

from springtide.applications.stock_exchange.tape import Action, Side
from springtide.errors import InvalidValue

ORDERS_FILE = "sse_600519_20230207_submitted_orders.csv.gz"
TRADES_FILE = "sse_600519_20230207_orders_trades.csv.gz"
STOCK = 600519

_MIDNIGHT_MS = int((datetime(2023, 2, 7, tzinfo=UTC) - timedelta(hours=8)).timestamp() * 1000)
COLUMNS = ["seq", "at_ms", "action", "order_no", "other_order_no", "side", "price_cents", "quantity"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """`events` has the columns `COLUMNS`, in the order of `seq`. `trades` are those that were recorded, if any were:
    (kind, buyer, seller, price in cents, quantity), in their order."""

    said: str
    events: pd.DataFrame
    trades: list[tuple[str, int, int, int, int]] | None


def clock_ms(text: str) -> int:
    """Milliseconds since 1970 of a time of that day in Shanghai.

    >>> clock_ms("09:30") - clock_ms("09:29:59.50")
    500
    """
    try:
        clock = datetime.strptime(f"2023-02-07 {_whole(text)} +0800", "%Y-%m-%d %H:%M:%S.%f %z")
    except ValueError:
        raise InvalidValue(f"{text!r} is no time of day; write it as 09:36 or 09:36:30") from None
    return round(clock.timestamp() * 1000)


def _whole(text: str) -> str:
    text = text if text.count(":") > 1 else f"{text}:00"
    return text if "." in text else f"{text}.0"


BEGINS_MS, OPENS_MS, CLOSES_MS = clock_ms("09:15"), clock_ms("09:30"), clock_ms("14:57")


def recorded_day(folder: Path, until_ms: int) -> Day | None:
    """The recording up to that time, or nothing if its files are not there."""
    if not all((folder / name).is_file() for name in (ORDERS_FILE, TRADES_FILE)):
        return None
    orders, feed = pd.read_csv(folder / ORDERS_FILE), pd.read_csv(folder / TRADES_FILE)
    trades = feed[feed["type"] == "T"]
    events = pd.concat([_submitted(orders), _crossed(trades[trades["side"] == Side.NONE])]).sort_values("seq")
    kept, cut = events[events["at_ms"] < until_ms], events[events["at_ms"] >= until_ms]
    # The trades of an order are numbered from its `seq` on: the first that is cut off ends the trades too.
    before = trades if cut.empty else trades[trades["biz_index"] < cut["seq"].iloc[0]]
    said = f"{ORDERS_FILE}, {len(kept):,} of {len(events):,} events of a stock's day"
    return Day(said=said, events=kept.reset_index(drop=True), trades=_told(before))


def _submitted(orders: pd.DataFrame) -> pd.DataFrame:
    at_ms = _at_ms(orders["time"])
    continuous = (at_ms >= OPENS_MS) & (at_ms < CLOSES_MS)
    entered = np.where(continuous, Action.NEW, Action.QUEUE)
    return pd.DataFrame(
        {
            "seq": orders["seq"],
            "at_ms": at_ms,
            "action": np.where(orders["action"] == "new", entered, Action.CANCEL),
            "order_no": orders["order_no"],
            "other_order_no": 0,
            "side": orders["side"],
            "price_cents": _cents(orders["price"]),
            "quantity": orders["qty"],
        }
    )


def _crossed(auctions: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "seq": auctions["biz_index"],
            "at_ms": _at_ms(auctions["time"]),
            "action": str(Action.CROSS),
            "order_no": auctions["bid_order_no"].astype("int64"),
            "other_order_no": auctions["offer_order_no"].astype("int64"),
            "side": str(Side.NONE),
            "price_cents": _cents(auctions["price"]),
            "quantity": auctions["qty"].astype("int64"),
        }
    )


def _told(trades: pd.DataFrame) -> list[tuple[str, int, int, int, int]]:
    kinds = np.where(trades["side"] == Side.NONE, "auction", "trade").tolist()
    numbers = [trades[name].astype("int64").tolist() for name in ("bid_order_no", "offer_order_no")]
    return list(zip(kinds, *numbers, _cents(trades["price"]).tolist(), trades["qty"].astype("int64").tolist(), strict=True))


def _at_ms(times: pd.Series[str]) -> pd.Series[int]:
    since_midnight = pd.to_timedelta(times) // pd.Timedelta(milliseconds=1)
    return (since_midnight + _MIDNIGHT_MS).astype("int64")


def _cents(prices: pd.Series[float]) -> pd.Series[int]:
    return (prices * 100).round().astype("int64")


def made_day(seed: int, until_ms: int, *, why: str) -> Day:
    """A day with an opening auction, a burst when trading begins, and cancels, of which some come too late.

    Prices walk at random, and now and then leap; most orders wait near the price, some go through it.
    """
    chance = np.random.default_rng([seed, STOCK])
    times = _made_times(chance, until_ms)
    count, auction = len(times), int(np.searchsorted(times, OPENS_MS))
    buys = chance.random(count) < 0.5
    steps = chance.integers(-8, 9, count) + (chance.random(count) < 0.005) * chance.integers(-400, 401, count)
    middle = np.maximum(180_000 + np.cumsum(steps * (np.arange(count) >= auction)), 10_000)
    # How far from the middle, on its own side: before trading begins never beyond it, later sometimes.
    away = np.where(np.arange(count) < auction, 1, -60) + chance.geometric(0.012, count)
    numbers = np.arange(1, count + 1) * 7
    victims = numbers[(np.arange(count) * (1 - chance.random(count) ** 4)).astype(np.int64)]
    cancels = (chance.random(count) < 0.3) & ~pd.Series(victims).duplicated().to_numpy()
    entered = np.where(np.arange(count) < auction, Action.QUEUE, Action.NEW)
    events = pd.DataFrame(
        {
            "seq": numbers,
            "at_ms": times,
            "action": np.where(cancels, Action.CANCEL, entered),
            "order_no": np.where(cancels, victims, numbers),
            "other_order_no": 0,
            "side": np.where(buys, Side.BUY, Side.SELL),
            "price_cents": middle - np.where(buys, away, -away),
            "quantity": chance.integers(1, 9, count) * 100,
        }
    )
    crossed = _with_auction(events, until_ms)
    return Day(said=f"made from seed {seed}: {why}", events=crossed, trades=None)


def _made_times(chance: np.random.Generator, until_ms: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Seconds draw their numbers of events: few in the auction, many at first when trading begins."""
    seconds = np.arange(BEGINS_MS, max(until_ms, BEGINS_MS + 1000), 1000)
    trading_s = (seconds - OPENS_MS) / 1000
    per_s = np.where(trading_s >= 0, 4.0 + 40.0 * np.exp(-np.maximum(trading_s, 0.0) / 60.0), 1.5)
    closed = (seconds >= clock_ms("09:25")) & (seconds < OPENS_MS)
    counts = np.maximum(chance.poisson(np.where(closed, 0.0, per_s)), seconds == BEGINS_MS)
    times = np.repeat(seconds, counts) + chance.integers(0, 1000, int(counts.sum()))
    return np.sort(times[times < max(until_ms, BEGINS_MS + 1000)])


def _with_auction(events: pd.DataFrame, until_ms: int) -> pd.DataFrame:
    """Ten pairs of orders at one price come last before 09:25, and are crossed then."""
    ends_ms = clock_ms("09:25")
    if until_ms <= ends_ms:
        return events
    before = int((events["at_ms"] < ends_ms).sum())
    base = int(events["seq"].iloc[before - 1]) * 100 if before else 0
    events = events.assign(seq=events["seq"] * 100, order_no=events["order_no"] * 100)
    pairs = np.arange(10)
    common = {"at_ms": ends_ms - 1, "action": str(Action.QUEUE), "other_order_no": 0, "price_cents": 180_000, "quantity": 300}
    bids = pd.DataFrame({"seq": base + 1 + pairs, "order_no": base + 1 + pairs, "side": str(Side.BUY), **common})
    asks = pd.DataFrame({"seq": base + 11 + pairs, "order_no": base + 11 + pairs, "side": str(Side.SELL), **common})
    crosses = bids.assign(
        seq=base + 21 + pairs,
        at_ms=ends_ms,
        action=str(Action.CROSS),
        other_order_no=asks["order_no"],
        side=str(Side.NONE),
        quantity=np.where(pairs % 2, 300, 200),
    )
    return pd.concat([events, bids, asks, crosses]).sort_values("seq")[COLUMNS].reset_index(drop=True)
