"""Tweets without Spark: the feed, the rates, what is kept of authors, and the plain answer that results are compared with."""

from __future__ import annotations

import json
import pickle
from collections import Counter, deque
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.applications.chance import Chance
from springtide.applications.rates import Rates
from springtide.applications.tweets.answer import answer
from springtide.applications.tweets.application import Graph, Tweets
from springtide.applications.tweets.feed import BEGIN_US, TweetFeed
from springtide.applications.tweets.history import DUPLICATE, KEPT, History, Memory, kind_of
from springtide.applications.tweets.operators import (
    BAD_TIME,
    FROM_THE_FUTURE,
    INCOMPLETE,
    OUTCOMES,
    TOO_LATE,
    UNREADABLE,
    TweetOperators,
)
from springtide.errors import InvalidValue
from springtide.workload.recordings import data_folder

ROWS = 4000
ELAPSED_S = np.linspace(0, 600, ROWS, endpoint=False)
RULES = TweetOperators(allowed_lateness_s=60.0)


def lines_of(feed: TweetFeed, elapsed_s: np.ndarray = ELAPSED_S) -> list[tuple[int, int, str]]:
    made = feed.made(0, elapsed_s.size, elapsed_s).to_pydict()
    stamps = [round(at.timestamp() * 1e6) for at in made["received_at"]]
    return list(zip(range(elapsed_s.size), stamps, made["line"], strict=True))


# The feed


@settings(max_examples=25)
@given(st.integers(0, ROWS), st.integers(0, ROWS))
def test_any_range_of_rows_is_the_same_rows(a: int, b: int) -> None:
    first, after = sorted((a, b))
    feed = TweetFeed(malformed_share=0.1)
    whole = feed.made(0, ROWS, ELAPSED_S)
    assert feed.made(first, after, ELAPSED_S[first:after]).equals(whole.slice(first, after - first))


def test_a_feed_is_small_and_another_seed_makes_other_tweets() -> None:
    feed = TweetFeed()
    assert len(pickle.dumps(feed)) < 500
    assert not feed.made(0, 50, ELAPSED_S[:50]).equals(replace(feed, seed=8).made(0, 50, ELAPSED_S[:50]))


def test_tweets_are_json_by_few_busy_authors_and_the_same_id_is_the_same_tweet() -> None:
    feed = TweetFeed(malformed_share=0.0, redelivered_share=0.1)
    tweets = [json.loads(line) for _, _, line in lines_of(feed)]
    by_author = Counter(tweet["user"]["id"] for tweet in tweets)
    assert by_author[0] > 20 * by_author[1000]
    by_id: dict[int, set[str]] = {}
    for tweet in tweets:
        by_id.setdefault(tweet["id"], set()).add(json.dumps(tweet))
    assert len(by_id) < ROWS - 200
    assert all(len(copies) == 1 for copies in by_id.values())


def test_each_way_of_being_broken_comes_and_is_found() -> None:
    feed = TweetFeed(malformed_share=0.2, late_share=0.2, redelivered_share=0.1)
    found = answer(lines_of(feed), RULES).outcomes
    assert sum(found.values()) == ROWS
    assert set(found) == set(OUTCOMES)
    for reason in (UNREADABLE, INCOMPLETE, BAD_TIME, FROM_THE_FUTURE):
        assert found[reason] == pytest.approx(ROWS * 0.05, rel=0.35)


def test_a_clean_feed_has_nothing_to_refuse() -> None:
    feed = TweetFeed(malformed_share=0.0, redelivered_share=0.0, late_share=0.0)
    assert dict(answer(lines_of(feed), RULES).outcomes) == {KEPT: ROWS}


def test_the_authors_that_the_feed_makes_are_told_by_what_they_write() -> None:
    feed = TweetFeed(authors=100, malformed_share=0.0, redelivered_share=0.0, late_share=0.0)
    kinds = Chance(feed.seed).among("author's kind", np.arange(100), (0.08, 0.05, 0.87))
    told: dict[int, str] = {tweet.author: tweet.author_kind for tweet in answer(lines_of(feed), RULES).tweets}
    right = sum(told[author] == ("newsroom", "bot", "person")[kinds[author]] for author in told)
    assert right >= 0.9 * len(told)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"late_share": 1.5}, "late_share must be between 0 and 1, not 1.5"),
        ({"authors": 0}, "authors must be at least 1"),
        ({"allowed_lateness_s": -1.0}, "allowed_lateness_s must be 0 or more"),
        ({"history_tweets": 0}, "history_tweets must be at least 1"),
        ({"shards": 0}, "shards must be at least 1"),
        ({"peak_rows_per_s": 0.0}, "peak_rows_per_s must be above 0"),
        ({"rates": "myspace"}, "the name of a recording or generator:NAME, not 'myspace'"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Tweets(**options)


# The rates


def test_the_liveliest_stretch_is_taken_and_brought_to_the_peak() -> None:
    rates = Rates(
        rates="generator:spikes:base_per_s=10,spike_per_s=90,every_s=4000,width_s=60,duration_s=4000",
        peak_rows_per_s=300.0,
        duration_s=40.0,
        speed_up=5.0,
        seed=7,
    )
    trace = rates.trace()
    assert (trace.step_s, trace.duration_s) == (5.0, 200.0)
    assert trace.peak_rate_per_s * 5.0 == pytest.approx(300.0)
    assert trace.counts.max() == pytest.approx(9 * trace.counts.min())


def test_without_the_recording_a_generated_day_takes_its_place_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPRINGTIDE_DATA", str(tmp_path))
    app = Tweets()
    assert f"no covid_tweets_usc_20200122_0131_1min.csv.gz in {tmp_path}" in app.data()
    assert app.trace().duration_s == pytest.approx(9000.0)


@pytest.mark.parametrize(("rates", "speed_up"), [("covid-usc", 60.0), ("covid-rpi-seconds", 4.0), ("twitter", 4.0)])
def test_recorded_rates_are_brought_to_a_run_of_a_few_minutes(rates: str, speed_up: float) -> None:
    app = Tweets(rates=rates, speed_up=speed_up)
    if "; no " in app.data():
        pytest.skip(f"no recording {rates} in {data_folder()}")
    trace = app.trace()
    assert trace.duration_s == pytest.approx(150.0 * speed_up, rel=0.02)
    assert trace.peak_rate_per_s * speed_up == pytest.approx(400.0)
    assert trace.counts.max() > 2 * np.median(trace.counts)


# What is kept of authors


def tweets(*rows: tuple[int, float, int, int], text: int = 0, linked: int = 0) -> pd.DataFrame:
    """Tweets (row, second, id, author) that count in the minute of that second."""
    of = pd.DataFrame(rows, columns=["row", "received_s", "tweet_id", "author"])
    received_us = (of.pop("received_s") * 1e6).astype("int64")
    return of.assign(
        received_us=received_us,
        at_us=received_us,
        until_us=(received_us // 60_000_000 + 2) * 60_000_000,
        outcome=KEPT,
        text_key=text if text else of["tweet_id"],
        linked=linked,
        content="chat",
        topic="other",
        sentiment=1,
    )


def test_a_copy_is_dropped_once_and_counts_when_it_came_as_nothing_else() -> None:
    judged, memory = History().judge(tweets((0, 10.0, 5, 1), (1, 11.0, 5, 1), (2, 70.0, 6, 1)), Memory())
    assert judged["outcome"].tolist() == [KEPT, DUPLICATE, KEPT]
    again, _ = History().judge(tweets((3, 100.0, 5, 1)), memory)
    assert again[["outcome", "at_us", "content", "topic", "sentiment"]].to_numpy().tolist() == [
        [DUPLICATE, 100_000_000, "", "", 0]
    ]


def test_an_id_that_comes_again_when_its_minute_is_closed_is_another_tweet() -> None:
    rows = tweets((0, 10.0, 5, 1), (1, 119.9, 5, 1), (2, 120.0, 5, 1))
    judged, _ = History().judge(rows, Memory())
    assert judged["outcome"].tolist() == [KEPT, DUPLICATE, KEPT]
    again = [line(5, "hi", second) for second in (10.0, 119.9, 120.0)]
    assert dict(answer(again, RULES).outcomes) == {KEPT: 2, DUPLICATE: 1}


def test_an_author_cannot_take_the_id_of_anothers_tweet() -> None:
    judged, _ = History().judge(tweets((0, 10.0, 5, 1), (1, 11.0, 5, 2)), Memory())
    assert judged["outcome"].tolist() == [KEPT, KEPT]
    assert dict(answer([line(5, "hi", author=1), line(5, "hi", author=2)], RULES).outcomes) == {KEPT: 2}


def test_the_order_within_a_batch_does_not_count_the_row_does() -> None:
    shuffled, _ = History().judge(tweets((2, 12.0, 5, 1), (0, 10.0, 5, 1), (1, 11.0, 7, 1)), Memory())
    assert shuffled[["row", "outcome"]].to_numpy().tolist() == [[0, KEPT], [1, KEPT], [2, DUPLICATE]]


def test_what_was_refused_passes_and_leaves_no_trace() -> None:
    refused = tweets((0, 10.0, 5, 1)).assign(outcome=TOO_LATE, tweet_id=0)
    judged, memory = History().judge(refused, Memory())
    assert judged["outcome"].tolist() == [TOO_LATE]
    assert (memory.ids, memory.tweets) == (0, 0)


@pytest.mark.parametrize(
    ("past", "kind"),
    [
        ([(0, 1, 1), (0, 2, 1)], "unknown"),
        ([(0, 1, 1), (0, 2, 1), (0, 3, 0)], "newsroom"),
        ([(0, 1, 1), (0, 2, 0), (0, 3, 0)], "person"),
        ([(0, 1, 1)] * 4, "newsroom"),
        ([(0, 1, 1)] * 5, "bot"),
        ([(0, 1, 0)] * 3 + [(0, 2, 0), (0, 3, 0), (0, 4, 0)], "person"),
        ([(0, 1, 0)] * 4 + [(0, 2, 0), (0, 3, 0)], "bot"),
    ],
)
def test_who_an_author_is(past: list[tuple[int, int, int]], kind: str) -> None:
    assert kind_of(deque(past)) == kind


def test_an_author_is_forgotten_after_a_while_and_what_was_long_ago_does_not_count() -> None:
    rules = History(history_s=100.0)
    first, memory = rules.judge(tweets((0, 0.0, 1, 1), (1, 1.0, 2, 1), (2, 2.0, 3, 1)), Memory())
    assert first["author_kind"].tolist() == ["unknown", "unknown", "person"]
    later, memory = rules.judge(tweets((3, 101.5, 4, 1)), memory)
    assert later["author_kind"].tolist() == ["unknown"]
    assert memory.tweets == 2


def test_what_is_kept_has_a_bound_however_long_the_stream() -> None:
    rules, memory = History(history_s=120.0, history_tweets=20), Memory()
    most_ids = most_tweets = 0
    for batch in range(80):  # ten tweets a second by ever new authors, and one who never stops
        rows = [(batch * 100 + n, batch * 10 + n / 10, batch * 100 + n, 1 if n % 2 else batch * 100 + n) for n in range(100)]
        _, memory = rules.judge(tweets(*rows), memory)
        most_ids, most_tweets = max(most_ids, memory.ids), max(most_tweets, memory.tweets)
    assert most_ids <= 10 * 130
    assert most_tweets <= 5 * 130 + 20


@settings(max_examples=30)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.integers(0, 3))
def test_the_batches_do_not_change_an_answer(sizes: list[int], seed: int) -> None:
    chance = np.random.default_rng(seed)
    count = sum(sizes)
    rows = tweets(*zip(range(count), np.arange(count) * 2.0, chance.integers(0, 60, count).tolist(), [1] * count, strict=True))
    rows = rows.assign(author=rows["tweet_id"] % 5, text_key=rows["tweet_id"] % 7, linked=rows["tweet_id"] % 2)
    rules = History(history_s=90.0, history_tweets=8)
    at_once, kept_at_once = rules.judge(rows, Memory())
    memory, parts = Memory(), []
    for first, after in zip(np.cumsum([0, *sizes[:-1]]), np.cumsum(sizes), strict=True):
        part, memory = rules.judge(rows.iloc[first:after].sample(frac=1.0, random_state=seed), memory)
        parts.append(part)
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), at_once)
    assert (memory.ids, memory.tweets) == (kept_at_once.ids, kept_at_once.tweets)


# The plain answer


def line(number: int, text: str, second: float = 1.0, author: int = 9) -> tuple[int, int, str]:
    stamp = np.datetime64(BEGIN_US + round(second * 1e6), "us")
    tweet = {"id": number, "created_at": f"{stamp}Z", "user": {"id": author}, "text": text}
    return number, BEGIN_US + round(second * 1e6), json.dumps(tweet)


@pytest.mark.parametrize(
    ("text", "content", "topic", "sentiment"),
    [
        ("Breaking: officials closed the AIRPORT https://t.co/1", "news", "travel", 0),
        ("Breaking news I think https://t.co/1", "opinion", "other", 0),
        ("great great virus, terrible election", "opinion", "health", 1),
        ("look https://t.co/1 https://t.co/2", "promotion", "other", 0),
        ("#a #b #c #d", "promotion", "other", 0),
        ("the day is #great #vote", "chat", "other", 0),
        ("https://t.co/great-virus", "chat", "other", 0),
        ("", "chat", "other", 0),
    ],
)
def test_what_a_text_is(text: str, content: str, topic: str, sentiment: int) -> None:
    (tweet,) = answer([line(1, text)], RULES).tweets
    assert (tweet.content, tweet.topic, tweet.sentiment) == (content, topic, sentiment)


def test_a_late_tweet_counts_in_its_own_minute_while_that_is_open() -> None:
    number, _, text = line(1, "hi", second=30.0)
    begin_s = BEGIN_US // 1_000_000
    for late_s, outcome, minute in ((89.9, KEPT, begin_s), (90.0, TOO_LATE, begin_s + 120)):
        found = answer([(number, BEGIN_US + round((30.0 + late_s) * 1e6), text)], RULES)
        assert [key[:2] for key in found.per_minute] == [(minute, outcome)]


def test_news_and_opinions_are_joined_by_topic_and_minute() -> None:
    rows = [
        *(line(n, f"reports virus {n} https://t.co/{n}", second=n) for n in (1, 2, 3)),
        line(4, "hate this virus", second=59.0, author=4),
        line(5, "love this virus", second=61.0, author=4),
    ]
    begin_s = BEGIN_US // 1_000_000
    assert answer(rows, RULES).pulse() == {(begin_s, "health"): (3, 1, 1, 0, 1), (begin_s + 60, "health"): (0, 0, 1, 1, 0)}


# The application


def test_the_graphs_are_those_of_the_paper(tmp_path: Path) -> None:
    simple = Tweets(apart=True).application(tmp_path)
    assert list(simple.operators) == ["parse", "content", "author", "minutes"]
    assert list(Tweets().application(tmp_path).operators) == ["author", "minutes"]
    both = Tweets(graph=Graph.COMPLEX).application(tmp_path)
    assert both.operators["pulse"].inputs == ("news", "opinions")
    assert both.operators["news"].inputs == both.operators["opinions"].inputs == ("author",)
    for app in (simple, both):
        app.check()
