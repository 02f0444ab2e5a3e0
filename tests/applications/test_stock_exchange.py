"""The stock exchange without Spark: the book, its independent twin, the feed, and the analyses, at any batching."""

from __future__ import annotations

import os
import pickle
import random
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.applications.stock_exchange.analytics import Limits, analyses
from springtide.applications.stock_exchange.application import StockExchange
from springtide.applications.stock_exchange.book import Book
from springtide.applications.stock_exchange.days import (
    OPENS_MS,
    ORDERS_FILE,
    STOCK,
    Day,
    clock_ms,
    made_day,
    recorded_day,
)
from springtide.applications.stock_exchange.feed import feed_of
from springtide.applications.stock_exchange.matching_by_level import matched
from springtide.applications.stock_exchange.tape import Event, Kind, Reason, Told
from springtide.applications.stock_exchange.transactor import events
from springtide.applications.stock_exchange.watching import (
    CompositeIndex,
    MovingAverage,
    NewExtreme,
    PriceAlarm,
    PriceJump,
    VolumeBurst,
    Watch,
    Watching,
)
from springtide.errors import InvalidValue

DATA = Path(os.environ.get("SPRINGTIDE_DATA") or Path(__file__).parents[2] / ".." / "shared" / "data")
needs_the_recording = pytest.mark.skipif(not (DATA / ORDERS_FILE).is_file(), reason=f"there is no {ORDERS_FILE} in {DATA}")


def event(seq: int, action: str, order_no: int, side: str, price_cents: int = 100, quantity: int = 10, **how: Any) -> Event:
    given = {"row": seq, "stock": 1, "at_ms": 1000 * seq, "other_order_no": 0, **how}
    return Event(seq=seq, action=action, order_no=order_no, side=side, price_cents=price_cents, quantity=quantity, **given)


def told(tape: Iterable[Event], book: Book | None = None) -> list[Told]:
    book = book or Book()
    return [one for event in tape for one in book.apply(event)]


def told_in_batches(tape: list[Event], cuts: Iterable[int]) -> list[Told]:
    """As the transactor does it: the book is packed after every batch."""
    packed, found = Book().packed(), []
    for first, after in pairwise([0, *sorted({cut for cut in cuts if 0 < cut < len(tape)}), len(tape)]):
        book = Book.unpacked(packed)
        found += told(tape[first:after], book)
        packed = book.packed()
    return found


def deals(found: Iterable[Told]) -> list[tuple[int, int, int, int]]:
    return [(one.buyer, one.seller, one.price_cents, one.quantity) for one in found if one.kind != Kind.REJECTED]


def reasons(found: Iterable[Told]) -> list[str]:
    return [one.reason for one in found if one.kind == Kind.REJECTED]


class TestTheBook:
    def test_the_better_price_trades_first_and_at_the_same_price_the_older_order(self) -> None:
        waiting = [event(1, "new", 11, "S", 102), event(2, "new", 12, "S", 101), event(3, "new", 13, "S", 101)]
        found = told([*waiting, event(4, "new", 14, "B", 102, 25)])
        assert deals(found) == [(14, 12, 101, 10), (14, 13, 101, 10), (14, 11, 102, 5)]
        assert [one.trade_no for one in found] == [1, 2, 3]
        assert {one.aggressor for one in found} == {"B"}

    def test_what_is_left_of_an_order_waits_at_its_own_limit(self) -> None:
        found = told([event(1, "new", 1, "B", 99, 4), event(2, "new", 2, "S", 98, 10), event(3, "new", 3, "B", 100, 3)])
        assert deals(found) == [(1, 2, 99, 4), (3, 2, 98, 3)]

    def test_an_order_that_is_partly_filled_keeps_its_turn(self) -> None:
        tape = [
            event(1, "new", 1, "B"),
            event(2, "new", 2, "B"),
            event(3, "new", 3, "S", 100, 4),
            event(4, "new", 4, "S", 90, 12),
        ]
        assert deals(told_in_batches(tape, [3])) == [(1, 3, 100, 4), (1, 4, 100, 6), (2, 4, 100, 6)]

    def test_a_limit_that_does_not_reach_the_other_side_makes_no_trade(self) -> None:
        book = Book()
        assert told([event(1, "new", 1, "B", 99), event(2, "new", 2, "S", 100)], book) == []
        assert set(book.orders) == {1, 2}

    def test_a_cancelled_order_is_gone(self) -> None:
        tape = [event(1, "new", 1, "B"), event(2, "new", 2, "B", 99), event(3, "cancel", 1, "B"), event(4, "new", 3, "S", 99)]
        assert deals(told(tape)) == [(2, 3, 99, 10)]

    def test_in_an_auction_orders_wait_and_trades_are_applied_as_given(self) -> None:
        tape = [event(1, "queue", 1, "B", 105), event(2, "queue", 2, "S", 95), event(3, "queue", 3, "S", 96)]
        crossed = [event(4, "cross", 1, "N", 100, 7, other_order_no=2), event(5, "cross", 1, "N", 100, 3, other_order_no=3)]
        found = told([*tape, *crossed, event(6, "new", 4, "B", 96, 20)])
        assert deals(found) == [(1, 2, 100, 7), (1, 3, 100, 3), (4, 2, 95, 3), (4, 3, 96, 7)]
        assert [one.kind for one in found] == ["auction", "auction", "trade", "trade"]

    @pytest.mark.parametrize(
        ("bad", "reason"),
        [
            (event(2, "new", 1, "B"), Reason.KNOWN),
            (event(2, "queue", 1, "S"), Reason.KNOWN),
            (event(2, "cancel", 9, "B"), Reason.UNKNOWN),
            (event(2, "cross", 1, "N", other_order_no=9), Reason.UNKNOWN),
            (event(2, "cross", 9, "N", other_order_no=1), Reason.UNKNOWN),
            (event(1, "new", 5, "S"), Reason.LATE),
            (event(2, "new", 5, "N"), Reason.MALFORMED),
            (event(2, "cross", 1, "B", other_order_no=9), Reason.MALFORMED),
            (event(2, "amend", 1, "B"), Reason.MALFORMED),
            (event(2, "", 1, "B"), Reason.MALFORMED),
            (event(2, "new", 5, ""), Reason.MALFORMED),
            (event(2, "new", 5, "BS"), Reason.MALFORMED),
            (event(2, "new", 5, "S", 0), Reason.MALFORMED),
            (event(2, "new", 5, "S", 99, -1), Reason.MALFORMED),
            (event(2, "new", 0, "S"), Reason.MALFORMED),
        ],
    )
    def test_an_event_that_cannot_be_changes_nothing_and_is_told_with_its_reason(self, bad: Event, reason: Reason) -> None:
        tape = [event(1, "new", 1, "B"), bad._replace(row=7), event(3, "new", 3, "S", 100, 4)]
        for found in (told(tape), matched(tape), told_in_batches(tape, [1, 2])):
            assert reasons(found) == [reason]
            assert [one.row for one in found if one.kind == Kind.REJECTED] == [7]
            assert deals(found) == [(1, 3, 100, 4)]

    def test_an_auction_cannot_take_more_than_is_left(self) -> None:
        tape = [
            event(1, "queue", 1, "B"),
            event(2, "queue", 2, "S", 100, 4),
            event(3, "cross", 1, "N", 100, 5, other_order_no=2),
        ]
        assert reasons(told(tape)) == reasons(matched(tape)) == [Reason.TOO_MUCH]

    def test_a_repeated_event_is_taken_once_wherever_its_repetition_falls(self) -> None:
        tape = [event(1, "new", 1, "B"), event(2, "new", 2, "S", 100, 4)]
        twice = [tape[0], tape[1], tape[1]._replace(row=3), tape[0]._replace(row=4)]
        for cuts in ([], [1], [2], [1, 2, 3]):
            found = told_in_batches(twice, cuts)
            assert deals(found) == [(1, 2, 100, 4)]
            assert reasons(found) == [Reason.LATE, Reason.LATE]

    def test_a_number_that_comes_again_has_its_new_price_only(self) -> None:
        tape = [
            event(1, "new", 1, "S", 90),
            event(2, "cancel", 1, "S"),
            event(3, "new", 1, "S", 110),
            event(4, "new", 2, "B", 95),
        ]
        assert deals(told(tape)) == []
        assert deals(told([*tape, event(5, "new", 3, "B", 110)])) == [(3, 1, 110, 10)]

    def test_a_packed_book_has_live_orders_only(self) -> None:
        book = Book()
        for seq in range(1, 5001, 2):
            told([event(seq, "new", seq, "B", 100 + seq % 50), event(seq + 1, "cancel", seq, "B")], book)
        assert len(book.packed()) == 16
        told([event(6000, "new", 1, "B"), event(6001, "new", 2, "S", 200)], book)
        assert len(book.packed()) == 16 + 2 * 40
        again = Book.unpacked(book.packed())
        assert (again.last_seq, again.orders) == (6001, book.orders)


ORDERS = st.tuples(
    st.sampled_from(["new", "new", "new", "queue", "cancel", "cross"]),
    st.integers(1, 12),
    st.sampled_from(["B", "S"]),
    st.integers(97, 103),
    st.integers(1, 9),
    st.integers(1, 12),
    st.integers(0, 2),
)


def tape_of(drawn: list[tuple[Any, ...]]) -> list[Event]:
    """Few numbers and prices, so that orders meet; `seq` rises by 0, 1 or 2, so that some events are repeated."""
    seqs = np.cumsum([1, *(one[-1] for one in drawn[1:])]).tolist()
    return [
        Event(row, 1, seq, 1000 * row + 1, action, number, other, "N" if action == "cross" else side, price, quantity)
        for row, (seq, (action, number, side, price, quantity, other, _)) in enumerate(zip(seqs, drawn, strict=True))
    ]


@given(st.lists(ORDERS, min_size=1, max_size=80), st.lists(st.integers(1, 79), max_size=5))
def test_heaps_in_batches_and_levels_at_once_make_the_same_exchange(drawn: list[tuple[Any, ...]], cuts: list[int]) -> None:
    tape = tape_of(drawn)
    assert told_in_batches(tape, cuts) == matched(tape)


@given(st.lists(ORDERS.filter(lambda order: order[0] in ("new", "cancel")), min_size=1, max_size=80))
def test_no_share_is_lost_or_made_and_the_sides_never_overlap(drawn: list[tuple[Any, ...]]) -> None:
    book, entered, cancelled = Book(), 0, 0
    found: list[Told] = []
    for one in tape_of(drawn):
        left = book.orders[one.order_no].left if one.order_no in book.orders else 0
        said = told([one], book)
        if not reasons(said):
            entered += one.quantity if one.action == "new" else 0
            cancelled += left if one.action == "cancel" else 0
        found += said
    waiting = list(book.orders.values())
    assert entered == cancelled + sum(order.left for order in waiting) + 2 * sum(quantity for *_, quantity in deals(found))
    bids, asks = ([order.price_cents for order in waiting if order.buys is buys] for buys in (True, False))
    assert max(bids, default=0) < min(asks, default=10**9)


@pytest.fixture(scope="module")
def day() -> Day:
    day = recorded_day(DATA, clock_ms("15:01"))
    assert day is not None
    return day


@needs_the_recording
class TestTheRecordedDay:
    def test_every_recorded_trade_is_made_in_order_and_exactly(self, day: Day) -> None:
        tape = list(events(day.events.assign(row=range(len(day.events)), stock=STOCK)))
        found = told_in_batches(tape, random.Random(3).sample(range(len(tape)), 30))
        assert Counter(one.kind for one in found) == {"trade": 18_139, "auction": 546}
        assert [(one.kind, one.buyer, one.seller, one.price_cents, one.quantity) for one in found] == day.trades
        assert sum(one.quantity for one in found) == 2_432_171
        assert sum(one.quantity * one.price_cents for one in found) == 437_367_173_548

    def test_a_part_of_the_day_ends_with_the_trades_of_its_last_order(self, day: Day) -> None:
        morning = recorded_day(DATA, clock_ms("09:36"))
        assert morning is not None
        assert morning.trades is not None
        assert day.trades is not None
        tape = events(morning.events.assign(row=range(len(morning.events)), stock=STOCK))
        assert deals(told(tape)) == [trade[1:] for trade in morning.trades] == [trade[1:] for trade in day.trades[:3066]]


def test_without_the_files_there_is_no_recorded_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert recorded_day(tmp_path, clock_ms("10:00")) is None
    monkeypatch.setenv("SPRINGTIDE_DATA", str(tmp_path))
    assert StockExchange(until="09:20").data() == f"made from seed 7: no recording in {tmp_path}"


UNTIL_MS = clock_ms("09:32")


@pytest.fixture(scope="module")
def made() -> Day:
    return made_day(7, UNTIL_MS, why="for a test")


def fed(day: Day, **how: Any) -> pd.DataFrame:
    feed = feed_of(day, **{"stocks": 4, "until_ms": UNTIL_MS, "faults_per_1000": 0.0, "seed": 7, **how})
    return feed.rows.to_pandas().assign(row=range(feed.rows.num_rows), second=feed.times_s)


class TestTheFeed:
    def test_the_first_stock_is_the_day_itself(self, made: Day) -> None:
        tape = fed(made)
        mine = tape[tape["stock"] == STOCK][made.events.columns].reset_index(drop=True)
        pd.testing.assert_frame_equal(mine, made.events, check_dtype=False)

    def test_other_stocks_are_the_same_orders_at_other_prices_and_times(self, made: Day) -> None:
        tape = fed(made, until_ms=UNTIL_MS + 10**7)
        shifts = set()
        for stock in range(STOCK + 1, STOCK + 4):
            copy = tape[tape["stock"] == stock].reset_index(drop=True)
            assert copy["order_no"].tolist() == made.events["order_no"].tolist()
            (shift,) = set(copy["price_cents"] - made.events["price_cents"])
            shifts.add(shift)
            assert copy["price_cents"].min() > 0
            assert (copy["at_ms"] >= made.events["at_ms"]).all()
            same = matched(events(copy.assign(stock=STOCK)))
            first = matched(events(made.events.assign(stock=STOCK, row=copy["row"])))
            assert deals(same) == [(b, s, price + shift, q) for b, s, price, q in deals(first)]
        assert len(shifts) == 3

    def test_events_come_by_time_and_a_stocks_own_by_their_numbers(self, made: Day) -> None:
        tape = fed(made)
        assert tape["at_ms"].is_monotonic_increasing
        assert tape["second"].is_monotonic_increasing
        assert all(mine["seq"].is_monotonic_increasing for _, mine in tape.groupby("stock"))
        assert tape["at_ms"].max() < UNTIL_MS
        assert tape.loc[tape["at_ms"] < OPENS_MS, "second"].max() <= 150

    def test_faults_are_rejected_and_leave_every_trade_as_it_was(self, made: Day) -> None:
        without, faulty = fed(made), fed(made, faults_per_1000=30.0)
        assert len(faulty) == len(without) + round(len(without) * 0.03)
        whole = faulty.fillna({"order_no": 0, "price_cents": 0}).astype({"order_no": "int64", "price_cents": "int64"})
        found = Counter(reasons(matched(events(whole))))
        clean = matched(events(without))
        assert min(found[Reason.MALFORMED], found[Reason.LATE]) > 10
        assert found[Reason.UNKNOWN] == Counter(reasons(clean))[Reason.UNKNOWN]
        assert deals(matched(events(whole))) == deals(clean)

    def test_the_same_seed_makes_the_same_rows_and_another_others(self, made: Day) -> None:
        how = {"faults_per_1000": 10.0}
        pd.testing.assert_frame_equal(fed(made, **how), fed(made_day(7, UNTIL_MS, why=""), **how))
        assert not fed(made, **how).equals(fed(made, seed=8, **how))
        assert not made.events.equals(made_day(8, UNTIL_MS, why="").events)

    def test_a_made_day_has_an_auction_trades_and_cancels_that_are_too_late(self, made: Day) -> None:
        found = matched(events(made.events.assign(stock=STOCK, row=range(len(made.events)))))
        kinds = Counter(one.kind for one in found)
        assert kinds["auction"] == 10
        assert kinds["trade"] > 500
        assert set(reasons(found)) == {Reason.UNKNOWN}

    def test_a_day_may_end_before_its_auction_does(self) -> None:
        day = made_day(7, clock_ms("09:15:01"), why="")
        assert len(day.events) >= 1
        assert fed(day, until_ms=clock_ms("09:15:01"))["at_ms"].max() < clock_ms("09:15:01")


TRADES = st.lists(
    st.tuples(st.integers(1, 3), st.integers(990, 1010), st.integers(1, 9), st.integers(0, 3), st.booleans()),
    min_size=1,
    max_size=60,
)
LIMITS = Limits(
    average_trades=5, alarm_permille=5, large_trade_cents=7000, burst_window_ms=3000, burst_shares=20, jump_permille=8.0
)
WATCHES: dict[str, Watch] = {
    "moving-average": MovingAverage(trades=5),
    "composite-index": CompositeIndex(),
    "price-alarm": PriceAlarm(permille=5),
    "volume-burst": VolumeBurst(window_ms=3000, shares=20),
    "price-jump": PriceJump(permille=8.0),
    "new-extreme": NewExtreme(),
}


def trades_of(drawn: list[tuple[Any, ...]]) -> pd.DataFrame:
    """Trades of the market in their order; an event may make several trades of a stock."""
    rows, at_ms, numbers, last, made = 0, 1000, Counter[int](), 0, []
    for stock, price, quantity, later, same in drawn:
        rows += not (same and stock == last)
        at_ms, last = at_ms + 500 * later, stock
        numbers[stock] += 1
        made.append(Told("trade", "", rows, stock, numbers[stock], at_ms, price, quantity, 1, 2, "B"))
    return pd.DataFrame(made, columns=Told._fields)


def watched(watch: Watch, trades: pd.DataFrame, cuts: list[int], chance: random.Random) -> list[tuple[Any, ...]]:
    """As the operator does it: batches of whole events, inside a batch any order, memories pickled in between."""
    edges = sorted({0, *(int(trades["row"].searchsorted(trades["row"].iloc[cut % len(trades)])) for cut in cuts), len(trades)})
    memories: dict[Any, bytes] = {}
    found: list[tuple[Any, ...]] = []
    for first, after in pairwise(edges):
        batch = trades.iloc[chance.sample(range(first, after), after - first)]
        for key, mine in batch.groupby("stock" if watch.key == "stock" else lambda _: 0):
            memory = pickle.loads(memories[key]) if key in memories else watch.start()
            found += Watching(watch).over(memory, mine)
            memories[key] = pickle.dumps(memory)
    return found


def rows_of(table: pd.DataFrame) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name].tolist() for name in table.columns), strict=True))


@pytest.mark.parametrize("name", WATCHES)
@settings(max_examples=40)
@given(drawn=TRADES, cuts=st.lists(st.integers(0, 59), max_size=4), chance=st.randoms())
def test_a_watch_tells_the_same_at_any_batching_as_pandas_does_at_once(
    name: str, drawn: list[tuple[Any, ...]], cuts: list[int], chance: random.Random
) -> None:
    trades = trades_of(drawn)
    right = analyses(LIMITS)[name].expected(trades.sort_values(["stock", "trade_no"], ignore_index=True))
    assert Counter(watched(WATCHES[name], trades, cuts, chance)) == Counter(rows_of(right))


@pytest.mark.parametrize(
    ("name", "whats"),
    [
        ("price-alarm", ["below", "above"]),
        ("price-jump", ["down", "up"]),
        ("new-extreme", ["low", "high"]),
        ("volume-burst", ["burst"]),
    ],
)
def test_events_by_hand(name: str, whats: list[str]) -> None:
    """A price that falls and rises by more than the limits; of the burst's 20 shares, the last 9 come with the last trade."""
    trades = trades_of([(1, 1000, 6, 1, False), (1, 990, 6, 1, False), (1, 1010, 9, 1, False)])
    found = watched(WATCHES[name], trades, [1, 2], random.Random(0))
    assert [row[3] for row in found] == whats


def test_statistics_by_hand() -> None:
    trades = trades_of([(1, 1000, 2, 1, False), (2, 500, 1, 1, False), (1, 1010, 4, 1, False)])
    nothing = random.Random(0)
    assert [row[-2:] for row in watched(MovingAverage(trades=1), trades, [], nothing)] == [(1000, 1), (1010, 1), (500, 1)]
    assert [row[-2:] for row in watched(CompositeIndex(), trades, [1], nothing)] == [(1000, 1), (1500, 2), (1510, 2)]


def test_a_market_without_trades_has_nothing_to_tell() -> None:
    nothing = pd.DataFrame([], columns=Told._fields).astype(
        dict.fromkeys(["stock", "quantity", "price_cents", "at_ms"], "int64")
    )
    assert [len(analysis.expected(nothing)) for analysis in analyses(LIMITS).values()] == [0] * 11


def test_memories_do_not_grow_with_the_stream() -> None:
    drawn = [(1, 1000 + n % 7, 1 + n % 9, 1, False) for n in range(3000)]
    for watch in WATCHES.values():
        memory = watch.start()
        for _ in Watching(watch).over(memory, trades_of(drawn)):
            pass
        assert len(pickle.dumps(memory)) < 400


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stocks": 0}, "stock-exchange: stocks must be 1 or more, not 0"),
        ({"speed_up": 0.0}, "speed_up must be above 0, not 0.0"),
        ({"until": "9 o'clock"}, "no time of day; write it as 09:36 or 09:36:30"),
        ({"until": "09:15"}, "until must be after 09:15"),
        ({"analytics": "vwapp"}, "there is no analysis 'vwapp'; did you mean 'vwap'"),
        ({"faults_per_1000": -1.0}, "faults_per_1000 must be 0 or more"),
    ],
)
def test_a_mistake_in_the_options_is_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        StockExchange(**options)


def test_the_application_has_the_transactor_and_the_analyses_that_were_chosen(tmp_path: Path) -> None:
    exchange = StockExchange(recorded=False, until="09:31", stocks=2, analytics="vwap, large-trade")
    app = exchange.application(tmp_path)
    app.check()
    assert list(app.operators) == ["transactor", "vwap", "large-trade"]
    assert (tmp_path / "rows" / "orders.arrow").is_file()
    assert list(StockExchange(analytics="none", recorded=False, until="09:31").application(tmp_path).operators) == [
        "transactor"
    ]
    assert len(StockExchange(analytics="all").analyses()) == 6 + 5
