"""DNS without Spark: the feed, what names tell, the plain answer, and how well tunnels are found."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.applications.dns import names
from springtide.applications.dns.answer import Window, answer, detection, entropy_millibit, outcome_of, registered
from springtide.applications.dns.application import Dns
from springtide.applications.dns.feed import BEGIN_US, DnsFeed
from springtide.applications.dns.operators import KEPT, TOO_LATE
from springtide.errors import InvalidValue
from springtide.workload.recordings import data_folder

ROWS = 6000
ELAPSED_S = np.linspace(0, 600, ROWS, endpoint=False)
RULES = Dns().operators()


def lines_of(feed: DnsFeed) -> list[tuple[int, str]]:
    made = feed.made(0, ROWS, ELAPSED_S).to_pydict()
    return [(round(at.timestamp() * 1e6), line) for at, line in zip(made["received_at"], made["line"], strict=True)]


# The feed


@settings(max_examples=25)
@given(st.integers(0, ROWS), st.integers(0, ROWS))
def test_any_range_of_rows_is_the_same_rows(a: int, b: int) -> None:
    first, after = sorted((a, b))
    feed = DnsFeed(malformed_share=0.1)
    whole = feed.made(0, ROWS, ELAPSED_S)
    assert feed.made(first, after, ELAPSED_S[first:after]).equals(whole.slice(first, after - first))


def test_a_feed_is_small_and_another_seed_makes_other_queries() -> None:
    feed = DnsFeed()
    assert len(pickle.dumps(feed)) < 500
    assert not feed.made(0, 50, ELAPSED_S[:50]).equals(replace(feed, seed=8).made(0, 50, ELAPSED_S[:50]))


def test_every_line_is_counted_once_under_its_outcome() -> None:
    feed = DnsFeed(malformed_share=0.2, late_share=0.2)
    found: Counter[str] = Counter()
    for (_, outcome, _, _), window in answer(lines_of(feed), RULES).items():
        found[outcome] += window.queries
    assert sum(found.values()) == ROWS
    made = ("bad-fields", "bad-client", "bad-name", "bad-type", "from-the-future")
    assert set(found) == {*made, TOO_LATE, KEPT}
    for outcome in made:
        assert found[outcome] == pytest.approx(ROWS * 0.04, rel=0.35)


def test_a_clean_feed_has_nothing_to_refuse() -> None:
    feed = DnsFeed(malformed_share=0.0, late_share=0.0)
    assert all(outcome_of(line, us, RULES) == KEPT for us, line in lines_of(feed))


def test_lines_come_a_little_out_of_order() -> None:
    stamps = [line.split(" ")[0] for _, line in lines_of(DnsFeed(malformed_share=0.0))]
    assert stamps != sorted(stamps)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"malformed_share": -0.1}, "malformed_share must be between 0 and 1"),
        ({"tunnels": 5, "clients": 4}, "there must be a client for each of 5 tunnels"),
        ({"window_s": 0}, "window_s must be at least 1"),
        ({"min_queries": 0}, "min_queries must be at least 1"),
        ({"allowed_lateness_s": -1.0}, "allowed_lateness_s must be 0 or more"),
        ({"speed_up": 0.0}, "speed_up must be above 0"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Dns(**options)


@pytest.mark.parametrize(("rates", "speed_up"), [("nasa-launch", 10.0), ("nasa-july", 60.0), ("worldcup98", 60.0)])
def test_recorded_rates_are_brought_to_a_run_of_a_few_minutes(rates: str, speed_up: float) -> None:
    app = Dns(rates=rates, speed_up=speed_up)
    if "; no " in app.data():
        pytest.skip(f"no recording {rates} in {data_folder()}")
    assert app.trace().duration_s == pytest.approx(150.0 * speed_up, rel=0.02)
    assert app.trace().peak_rate_per_s * speed_up == pytest.approx(400.0)


def test_without_the_recording_a_generated_day_takes_its_place_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPRINGTIDE_DATA", str(tmp_path))
    assert f"no nasa_http_19950711_14_1s.csv.gz in {tmp_path}" in Dns().data()


# What names tell

TEXTS = st.lists(st.text("ab.01z", max_size=names.MAX_NAME), max_size=20)


@given(TEXTS)
def test_names_are_measured_all_at_once_as_one_by_one(texts: list[str]) -> None:
    column = pa.array(texts, pa.string())
    assert names.entropies_millibit(column).tolist() == [entropy_millibit(text) for text in texts]
    assert names.digits(column).tolist() == [sum(c.isdigit() for c in text) for text in texts]
    assert names.longest_labels(column).tolist() == [max(map(len, text.split("."))) for text in texts]


def test_a_slice_of_names_is_measured_as_if_it_were_alone() -> None:
    column = pa.array(["xxxx.1", "ab", "", "aa.b2"]).slice(1)
    assert names.entropies_millibit(column).tolist() == [1000, 0, entropy_millibit("aa.b2")]
    assert names.longest_labels(column).tolist() == [2, 0, 2]
    assert names.digits(column).tolist() == [0, 0, 1]


def test_entropy_is_that_of_shannon_to_a_millibit() -> None:
    text = "3es6agtrcqsftkennubtecfvyuve4k"
    shares = np.array(list(Counter(text).values())) / len(text)
    assert entropy_millibit(text) == pytest.approx(-1000 * float((shares * np.log2(shares)).sum()), abs=1.0)


def test_the_registered_domain_is_found_below_double_suffixes_too() -> None:
    assert registered("a.b.shop.com.au") == ("shop.com.au", "a.b")
    assert registered("a.xcom.au") == ("xcom.au", "a")


# The plain answer, and the verdicts


def query(second: float, name: str = "www.example.com", kind: str = "A", client: str = "10.0.0.1") -> tuple[int, str]:
    us = BEGIN_US + round(second * 1e6)
    return us, f"{np.datetime64(us, 'us')}Z {client} {name} {kind} 100"


def test_a_window_counts_queries_and_distinct_subdomains_of_a_client_and_a_domain() -> None:
    rows = [query(1), query(2), query(3, "MAIL.example.com", "TXT"), query(61), query(4, client="10.0.0.2")]
    found = answer(rows, RULES)
    begin_s = BEGIN_US // 1_000_000
    assert {key[:1] + key[2:]: window.row()[:4] for key, window in found.items()} == {
        (begin_s, "10.0.0.1", "example.com"): (3, 2, 1, 300),
        (begin_s + 60, "10.0.0.1", "example.com"): (1, 1, 0, 100),
        (begin_s, "10.0.0.2", "example.com"): (1, 1, 0, 100),
    }


def test_a_late_query_counts_in_its_own_window_while_that_is_open() -> None:
    us, line = query(30.0)
    begin_s = BEGIN_US // 1_000_000
    for late_s, outcome, window_s in ((89.9, KEPT, begin_s), (90.0, TOO_LATE, begin_s + 120)):
        assert [key[:2] for key in answer([(us + round(late_s * 1e6), line)], RULES)] == [(window_s, outcome)]


@given(st.permutations(range(12)))
def test_the_order_of_the_lines_changes_nothing(order: list[int]) -> None:
    rows = [query(n * 9.0, f"host{n % 5}.example.com", "TXT" if n % 3 else "A") for n in range(12)]
    assert answer([rows[n] for n in order], RULES) == answer(rows, RULES)


@pytest.mark.parametrize(
    ("window", "verdict"),
    [
        (Window(queries=8, subdomains=set("abcdefgh"), sub_chars=240, entropy_millibit=26_400), "tunnel"),
        (Window(queries=7, subdomains=set("abcdefg"), sub_chars=210, entropy_millibit=23_100), "suspicious"),
        (Window(queries=8, subdomains=set("abcdefgh"), sub_chars=239, entropy_millibit=26_400), "suspicious"),
        (Window(queries=8, subdomains=set("abcdefgh"), sub_chars=239, entropy_millibit=26_400, data_queries=4), "tunnel"),
        (Window(queries=8, subdomains=set("ab"), sub_chars=239, entropy_millibit=26_400), "normal"),
        (Window(queries=8, subdomains=set("abcdefgh")), "normal"),
    ],
)
def test_three_signs_make_a_tunnel_and_two_a_suspicion(window: Window, verdict: str) -> None:
    assert window.verdict(RULES.thresholds) == verdict


def test_most_windows_with_a_tunnel_are_found_and_content_networks_are_not_taken_for_one() -> None:
    feed = DnsFeed(domains=200)
    windows = answer(lines_of(feed), RULES)
    found = detection(windows, feed.tunnels_there(), RULES.thresholds)
    assert found.precision > 0.95
    assert 0.6 < found.recall < 1.0
    quiet = replace(feed, tunnels=0)
    assert quiet.tunnels_there() == set()
    assert detection(answer(lines_of(quiet), RULES), set(), RULES.thresholds).wrong == 0


def test_there_are_four_operators(tmp_path: Path) -> None:
    app = Dns(apart=True).application(tmp_path)
    app.check()
    assert list(app.operators) == ["parse", "features", "windows", "verdicts"]
    assert list(Dns().application(tmp_path).operators) == ["windows", "verdicts"]
