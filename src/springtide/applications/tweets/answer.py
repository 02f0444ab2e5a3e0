"""What the results must be, computed once more: one tweet after the other, in plain Python, without Spark or state to clear."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from springtide.applications.tweets import words
from springtide.applications.tweets.history import DUPLICATE, KEPT
from springtide.applications.tweets.operators import (
    BAD_TIME,
    FROM_THE_FUTURE,
    INCOMPLETE,
    LINK,
    TIME,
    TOO_LATE,
    UNREADABLE,
    TweetOperators,
)

_MINUTE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What is known of one tweet that is kept."""

    row: int
    at_us: int
    tweet_id: int
    author: int
    author_kind: str
    content: str
    topic: str
    sentiment: int


@dataclass
class Answer:
    """The tweets that are kept, and all rows per minute, outcome, content and kind of author, with their sentiment."""

    tweets: list[Analysis] = field(default_factory=list)
    per_minute: dict[tuple[int, str, str, str], tuple[int, int]] = field(default_factory=dict)

    @property
    def outcomes(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for (_, outcome, _, _), (tweets, _) in self.per_minute.items():
            found[outcome] += tweets
        return found

    def pulse(self) -> dict[tuple[int, str], tuple[int, ...]]:
        """Per minute and topic: news, those of newsrooms, opinions, praise, blame."""
        sums: dict[tuple[int, str], tuple[int, ...]] = {}
        for tweet in self.tweets:
            if tweet.content == "news":
                counted = (1, int(tweet.author_kind == "newsroom"), 0, 0, 0)
            elif tweet.content == "opinion" and tweet.author_kind != "bot":
                counted = (0, 0, 1, int(tweet.sentiment > 0), int(tweet.sentiment < 0))
            else:
                continue
            key = (tweet.at_us // 1_000_000 // _MINUTE_S * _MINUTE_S, tweet.topic)
            sums[key] = tuple(a + b for a, b in zip(sums.get(key, (0,) * 5), counted, strict=True))
        return sums


def answer(rows: Iterable[tuple[int, int, str]], rules: TweetOperators) -> Answer:
    """Of rows (number, received in microseconds, line) in their order."""
    found = Answer()
    open_until_us: dict[tuple[int, int], int] = {}
    by_author: dict[int, list[tuple[int, str, bool]]] = defaultdict(list)
    for row, received_us, line in rows:
        outcome, tweet = _read(line, received_us, round(rules.allowed_lateness_s * 1e6))
        if outcome == KEPT and received_us < open_until_us.get((tweet["user"]["id"], tweet["id"]), 0):
            outcome = DUPLICATE
        content, kind, sentiment, at_us = "", "", 0, received_us
        if outcome == KEPT:
            open_until_us[tweet["user"]["id"], tweet["id"]] = tweet["until_us"]
            content, topic, sentiment, said, linked = _content(tweet["text"].lower())
            author, at_us = tweet["user"]["id"], tweet["created_us"]
            by_author[author].append((received_us, said, linked))
            since_us = received_us - rules.history.history_s * 1e6
            last = [past for past in by_author[author][-rules.history.history_tweets :] if past[0] > since_us]
            kind = _author_kind(last)
            found.tweets.append(
                Analysis(
                    row=row,
                    at_us=at_us,
                    tweet_id=tweet["id"],
                    author=author,
                    author_kind=kind,
                    content=content,
                    topic=topic,
                    sentiment=sentiment,
                )
            )
        minute = (at_us // 1_000_000 // _MINUTE_S * _MINUTE_S, outcome, content, kind)
        tweets, total = found.per_minute.get(minute, (0, 0))
        found.per_minute[minute] = (tweets + 1, total + sentiment)
    return found


def _read(line: str, received_us: int, lateness_us: int) -> tuple[str, dict[str, Any]]:
    tweet = _object(line)
    if tweet is None:
        return UNREADABLE, {}
    user = tweet.get("user") or {}
    if any(value is None for value in (tweet.get("id"), user.get("id"), tweet.get("created_at"), tweet.get("text"))):
        return INCOMPLETE, {}
    created_us = _microseconds(tweet["created_at"])
    if created_us is None:
        return BAD_TIME, {}
    if created_us > received_us:
        return FROM_THE_FUTURE, {}
    until_us = (created_us // 1_000_000 // _MINUTE_S + 1) * _MINUTE_S * 1_000_000 + lateness_us
    if received_us >= until_us:
        return TOO_LATE, {}
    return KEPT, {**tweet, "created_us": created_us, "until_us": until_us}


def _object(line: str) -> dict[str, Any] | None:
    """The line as JSON, if it is an object with fields of the right types."""
    try:
        tweet = json.loads(line)
    except ValueError:
        return None
    return tweet if isinstance(tweet, dict) and _has_right_types(tweet) else None


def _has_right_types(tweet: dict[str, Any]) -> bool:
    if not isinstance(tweet.get("user"), dict | None):
        return False
    numbers = [tweet.get("id"), (tweet.get("user") or {}).get("id")]
    texts = [tweet.get("created_at"), tweet.get("text")]
    return all(n is None or (type(n) is int and abs(n) < 2**63) for n in numbers) and all(
        t is None or isinstance(t, str) for t in texts
    )


def _microseconds(stamp: str) -> int | None:
    if not re.fullmatch(TIME, stamp):
        return None
    try:
        since = datetime.fromisoformat(stamp) - datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    except ValueError:
        return None
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _content(text: str) -> tuple[str, str, int, str, bool]:
    """Content, topic, sentiment, the bare words, and whether there is a link."""
    links = re.findall(LINK, text)
    said = re.sub("[^a-z0-9_@#]+", " ", re.sub(LINK, " ", text)).strip()
    counts = Counter(said.split(" "))
    praise, blame, opinion, reporting = (
        sum(counts[word] for word in of) for of in (words.PRAISE, words.BLAME, words.OPINION, words.REPORTING)
    )
    tags = sum(times for word, times in counts.items() if word.startswith("#"))
    topics = {topic: sum(counts[word] for word in of) for topic, of in words.TOPICS.items()}
    topic = max(topics, key=lambda name: topics[name])  # the first of those with most
    topic = topic if topics[topic] else words.OTHER_TOPIC
    if tags >= words.PROMOTION_HASHTAGS or len(links) >= words.PROMOTION_LINKS:
        content = "promotion"
    elif links and reporting and not opinion:
        content = "news"
    else:
        content = "opinion" if opinion or praise or blame else "chat"
    return content, topic, praise - blame, said, bool(links)


def _author_kind(last: list[tuple[int, str, bool]]) -> str:
    if len(last) < 3:
        return "unknown"
    repeated = len(last) - len({said for _, said, _ in last})
    if len(last) >= 5 and repeated >= len(last) / 2:
        return "bot"
    return "newsroom" if sum(linked for _, _, linked in last) * 3 >= len(last) * 2 else "person"
