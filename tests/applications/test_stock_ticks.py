"""`stock-ticks` without Spark: bars become ticks, queries are drawn, and the plain answer is what it says."""

from __future__ import annotations

import dataclasses
import gzip
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle

from springtide.applications.stock_ticks.answer import answered
from springtide.applications.stock_ticks.application import Day, StockTicks, plain
from springtide.applications.stock_ticks.bars import MinuteBars, made_bars, recorded_bars
from springtide.applications.stock_ticks.queries import ContinuousQuery, drawn_queries
from springtide.applications.stock_ticks.ticks import ticks_of
from springtide.errors import InvalidValue, SpringtideError

HEADER = "Date,Time,ISIN,Mnemonic,SecurityType,SecurityID,StartPrice,MaxPrice,MinPrice,EndPrice,TradedVolume,NumberOfTrades"
SECOND_US = 1_000_000


def bars_of(*bars: tuple[int, int, int, int, int, int, int], names: tuple[str, ...] = ("ADS", "BMW", "SAP")) -> MinuteBars:
    """Each is company, minute, first, lowest, highest, last, trades."""
    columns = ("company", "minute", "first", "lowest", "highest", "last", "trades")
    values = np.array(bars, dtype=np.int64).T
    return MinuteBars(day_us=0, names=names, **dict(zip(columns, values, strict=True)))


@st.composite
def any_bar(draw: st.DrawFn) -> tuple[int, int, int, int, int, int, int]:
    lowest = draw(st.integers(1, 1000))
    highest = lowest + draw(st.integers(0, 50))
    within = st.integers(lowest, highest)
    return (
        draw(st.integers(0, 2)),
        draw(st.integers(0, 5)),
        draw(within),
        lowest,
        highest,
        draw(within),
        draw(st.integers(1, 30)),
    )


@given(st.lists(any_bar(), min_size=1, max_size=20, unique_by=lambda bar: bar[:2]), st.integers(0, 5))
def test_a_minute_of_ticks_has_the_prices_of_its_bar(bars: list[tuple[int, ...]], seed: int) -> None:
    ticks = plain(ticks_of(bars_of(*bars), share=1.0, sectors=4, seed=seed).table)  # type: ignore[arg-type]
    assert [tick[3] for tick in ticks] == sorted(tick[3] for tick in ticks)
    for company, minute, first, lowest, highest, last, trades in bars:
        mine = [tick for tick in ticks if tick[0] == ("ADS", "BMW", "SAP")[company] and tick[3] // 60 // SECOND_US == minute]
        prices = [price for _, _, price, _ in mine]
        assert len(prices) == trades
        assert prices[0] == first
        assert all(lowest <= price <= highest for price in prices)
        if trades >= 2:
            assert prices[-1] == last
        if trades >= 4:
            assert (min(prices), max(prices)) == (lowest, highest)


def test_a_share_of_the_trades_is_kept_on_average_and_the_first_tick_still_has_the_first_price() -> None:
    bars = bars_of(*[(0, minute, 50, 40, 60, 45, 3) for minute in range(2000)])
    ticks = plain(ticks_of(bars, share=0.5, sectors=1, seed=3).table)
    assert len(ticks) == pytest.approx(3000, rel=0.05)
    firsts = {at_us // 60 // SECOND_US: price for _, _, price, at_us in reversed(ticks)}
    assert set(firsts.values()) == {50}
    assert len(firsts) == 2000  # one or two of each bar


def test_the_same_seed_gives_the_same_ticks_and_another_one_others() -> None:
    small = StockTicks.small()
    assert small.ticks().table.equals(small.ticks().table)
    assert not small.ticks().table.equals(dataclasses.replace(small, seed=8).ticks().table)
    assert dataclasses.replace(small, seed=8).drawn() != small.drawn()


def test_a_company_is_in_one_sector_whatever_hours_are_replayed() -> None:
    early, late = (StockTicks(day=Day.MADE, from_hour=hour, hours=0.1, share=1.0).ticks().table for hour in (8, 14))
    sector = dict(zip(early["company"].to_pylist(), early["sector"].to_pylist(), strict=True))
    pairs = set(zip(late["company"].to_pylist(), late["sector"].to_pylist(), strict=True))
    both = [(company, there) for company, there in pairs if company in sector]
    assert len(both) > 50
    assert all(sector[company] == there for company, there in both)
    assert set(sector.values()) == set(range(10))


def test_queries_are_drawn_within_their_bounds_and_numbered() -> None:
    queries = drawn_queries(500, sectors=10, shortest_s=10, longest_s=20, seed=1)
    assert [query.number for query in queries] == list(range(500))
    assert {query.window_s for query in queries} == set(range(10, 21))
    assert {query.sector for query in queries} == set(range(10))


def test_the_plain_answer_of_a_few_ticks() -> None:
    queries = [ContinuousQuery(number=0, sector=1, window_s=10), ContinuousQuery(number=1, sector=1, window_s=60)]
    at = [second * SECOND_US for second in (1, 9, 10, 59)]
    ticks = [("SAP", 1, 30, at[1]), ("SAP", 1, 10, at[0]), ("SAP", 1, 25, at[2]), ("SAP", 1, 20, at[3]), ("BMW", 2, 7, at[0])]
    assert answered(ticks, queries) == [
        (0, "SAP", 0, 10, 10, 20.0, 30, 30, 2),
        (1, "SAP", 0, 10, 10, 21.25, 30, 20, 4),
        (0, "SAP", at[2], 25, 25, 25.0, 25, 25, 1),
        (0, "SAP", 50 * SECOND_US, 20, 20, 20.0, 20, 20, 1),
    ]


def day_file(folder: Path, *lines: str, header: str = HEADER) -> Path:
    path = folder / "day.csv.gz"
    path.write_bytes(gzip.compress("\n".join([header, *lines, ""]).encode()))
    return path


def test_a_recorded_day_is_read_exactly_and_markers_without_volume_are_no_trades(tmp_path: Path) -> None:
    path = day_file(
        tmp_path,
        "2018-03-21,05:00,X,1Q7,ETF,1,12.6,12.6,12.6,12.6,0,1",
        "2018-03-21,08:01,Y,NA,Common stock,2,0.0011,4811.2,0.0011,36.685,10,7",
    )
    bars = recorded_bars(path)
    assert bars.names == ("NA",)
    assert (bars.first[0], bars.lowest[0], bars.highest[0], bars.last[0]) == (11, 11, 48_112_000, 366_850)
    assert (bars.first_minute, bars.trades.tolist(), bars.day_us) == (481, [7], 1_521_590_400 * SECOND_US)


@pytest.mark.parametrize(
    ("header", "line", "message"),
    [
        (HEADER.replace("MinPrice", "Low"), "2018-03-21,08:01,Y,A,S,2,2,3,1,2,10,7", "has no column MinPrice"),
        (HEADER, "2018-03-21,05:00,X,1Q7,ETF,1,12.6,12.6,12.6,12.6,0,1", "has no trade"),
        (HEADER, "21.03.2018,08:01,Y,A,S,2,2,3,1,2,10,7", "'21.03.2018' is no date"),
        (HEADER, "2018-03-21,08:01,Y,A,S,2,2,3,2.5,2,10,7", "prices that exclude one another; the first is number 1"),
    ],
)
def test_a_file_that_is_no_such_day_is_refused(tmp_path: Path, header: str, line: str, message: str) -> None:
    with pytest.raises(SpringtideError, match=message):
        recorded_bars(day_file(tmp_path, line, header=header))


def test_a_made_day_is_busy_at_the_opening_and_few_companies_have_most_trades() -> None:
    bars = made_bars(7)
    per_minute = np.bincount(bars.minute - bars.first_minute, weights=bars.trades)
    assert per_minute[:5].mean() > 2 * np.median(per_minute)
    per_company = np.sort(np.bincount(bars.company, weights=bars.trades))[::-1]
    assert per_company[:10].sum() > 0.2 * per_company.sum()
    assert made_bars(7).trades.sum() == bars.trades.sum() != made_bars(8).trades.sum()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": 0.0}, "share must be above 0 and at most 1, not 0.0"),
        ({"hours": -1.0}, "hours must be above 0"),
        ({"from_hour": 24.0}, "from_hour must be between 0 and 24"),
        ({"queries": 0}, "queries must be at least 1, not 0"),
        ({"longest_window_s": 5}, r"longest_window_s \(5\) is below shortest_window_s \(10\)"),
        ({"late_s": -1}, "late_s must be 0 or more"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        StockTicks(**options)  # type: ignore[arg-type]


def test_the_application_is_one_that_can_run_and_its_functions_travel(tmp_path: Path) -> None:
    apart = replace(StockTicks.small(), apart=True).application(tmp_path)
    apart.check()
    assert {name: node.shards for name, node in apart.operators.items()} == {"select": 0, "windows": 8}
    app = StockTicks.small().application(tmp_path)
    app.check()
    assert {name: node.shards for name, node in app.operators.items()} == {"rejected": 0, "windows": 8}
    assert app.operators["windows"].output_mode == "update"
    for node in app.operators.values():
        assert len(cloudpickle.dumps(node.function)) < 10_000


def test_a_small_run_is_small_and_the_usual_one_has_the_rates_it_should() -> None:
    small = StockTicks.small()
    ticks = small.ticks()
    assert 2_000 < ticks.table.num_rows < 6_000
    assert ticks.times_s[-1] / small.speed_up < 25
    usual = StockTicks(day=Day.MADE)
    seconds = np.bincount((usual.ticks().times_s / usual.speed_up).astype(int))
    assert 120 < seconds.size < 180
    assert 200 < seconds.max() < 600


def test_hours_without_trade_are_refused_and_too_small_a_share_too() -> None:
    with pytest.raises(InvalidValue, match="no trade between hour 3 and 4 of made"):
        StockTicks(day=Day.MADE, from_hour=3).ticks()
    with pytest.raises(InvalidValue, match="leaves no tick"):
        StockTicks(day=Day.MADE, hours=0.02, share=1e-9).ticks()


def test_without_the_recording_it_says_what_it_does_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPRINGTIDE_DATA", str(tmp_path))
    file = "xetra_20170728_minute_by_security.csv.gz"
    assert StockTicks().data() == f"made from seed 7: no {file} in {tmp_path}"
    assert StockTicks(day=Day.MADE).data() == "made from seed 7"
    assert StockTicks().ticks().table.equals(StockTicks(day=Day.MADE).ticks().table)


@pytest.mark.parametrize("day", [Day.FIRST, Day.SECOND])
def test_every_trade_of_a_recorded_day_becomes_a_tick(day: Day) -> None:
    whole = StockTicks(day=day, from_hour=0, hours=24, share=1.0)
    if not whole.data().startswith("xetra"):
        pytest.skip(f"the recorded day is not here ({whole.data()})")
    ticks = whole.ticks()
    volumed = {Day.FIRST: 394_607 - 44, Day.SECOND: 364_208 - 132}[day]  # the whole file, less trades without volume
    assert ticks.table.num_rows == volumed
    per_sector = Counter(ticks.table["sector"].to_pylist())
    assert set(per_sector) == set(range(10))
