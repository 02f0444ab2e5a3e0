"""What is kept of authors: who an author is, is decided by the author's own last tweets; and a tweet counts once.

Rules:

* Tweets are taken in the order in which the collector received them (`row`), whatever batches they come in. All that is decided
  depends on the tweets' own times and on that order, so neither the batches nor the moment of forgetting change an answer.
* A tweet is a `duplicate` if its id was received before, in a tweet of the same author whose minute is still open. Ids are kept
  until then: a copy that comes later is too late anyway, and does not get here.
* The history of an author is the last `history_tweets` tweets, this one included, as far as they were received less than
  `history_s` before it. With fewer than 3 the author is `unknown`; a `bot` if at least half of them (of 5 or more) say what
  another of them says already; a `newsroom` if two thirds have a link; else a `person`.
* Authors are kept in `buckets`, a bucket being a key of the operator's state: one call serves all authors of a bucket.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pyspark.sql.streaming.state import GroupState

from springtide.errors import require


class AuthorKind(StrEnum):
    UNKNOWN = "unknown"
    BOT = "bot"
    NEWSROOM = "newsroom"
    PERSON = "person"


KEPT = "kept"
DUPLICATE = "duplicate"

MEMORY_SCHEMA = "seen binary, past binary"
JUDGED_SCHEMA = (
    "row long, received_us long, at_us long, outcome string, tweet_id long, author long, author_kind string, "
    "content string, topic string, sentiment int"
)
_JUDGED = [column.split()[0] for column in JUDGED_SCHEMA.split(", ")]

KNOWN_FROM_TWEETS = 3
BOT_FROM_TWEETS = 5

_SEEN = np.dtype([("author", "<i8"), ("tweet_id", "<i8"), ("until_us", "<i8")])
_PAST = np.dtype([("author", "<i8"), ("received_us", "<i8"), ("text_key", "<i8"), ("linked", "<i8")])

Id = tuple[int, int]  # author and tweet: one author cannot take the id of another's tweet
Past = tuple[int, int, int]  # received_us, text_key, 1 with a link
Judged = tuple[int, int, int, str, int, int, str, str, str, int]  # the columns of JUDGED_SCHEMA


class Tweet(NamedTuple):
    """A row as it comes from the operator before."""

    row: int
    received_us: int
    at_us: int
    until_us: int  # its minute is closed then
    outcome: str
    tweet_id: int
    author: int
    text_key: int
    linked: int
    content: str
    topic: str
    sentiment: int


@dataclass(frozen=True, slots=True)
class Memory:
    """What a bucket keeps, as it lies in the state store."""

    seen: bytes = b""
    past: bytes = b""

    @property
    def ids(self) -> int:
        return len(self.seen) // _SEEN.itemsize

    @property
    def tweets(self) -> int:
        return len(self.past) // _PAST.itemsize


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The rules of the module's text, with their numbers."""

    history_s: float = 1800.0
    history_tweets: int = 20

    def __post_init__(self) -> None:
        require(self.history_s > 0, f"history_s must be above 0, not {self.history_s}")
        require(self.history_tweets >= 1, f"history_tweets must be at least 1, not {self.history_tweets}")

    def judged(self, _key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        """For `applyInPandasWithState`: the tweets of a bucket in one batch."""
        memory = Memory(*map(bytes, state.get)) if state.exists else Memory()
        rows, memory = self.judge(pd.concat(list(frames)), memory)
        state.update((memory.seen, memory.past))
        yield rows

    def judge(self, rows: pd.DataFrame, memory: Memory) -> tuple[pd.DataFrame, Memory]:
        """Rows with their outcome and their author's kind. What was refused before passes through as it is."""
        rows = rows.iloc[np.argsort(rows["row"].to_numpy())]
        seen = {(author, tweet): until_us for author, tweet, until_us in _unpacked(memory.seen, _SEEN)}
        past: dict[int, deque[Past]] = {}
        for author, received_us, text_key, linked in _unpacked(memory.past, _PAST):
            past.setdefault(author, deque()).append((received_us, text_key, linked))
        # Plain tuples: a batch has few rows of a bucket, and each operation of pandas takes longer than all of them.
        tweets = map(Tweet._make, zip(*(rows[name].tolist() for name in Tweet._fields), strict=True))
        judged = [self._judged(tweet, seen, past) for tweet in tweets]
        return pd.DataFrame(judged, columns=_JUDGED), self._kept(seen, past, judged[-1][1])

    def _judged(self, tweet: Tweet, seen: dict[Id, int], past: dict[int, deque[Past]]) -> Judged:
        row, received_us = tweet.row, tweet.received_us
        if tweet.outcome != KEPT:
            return row, received_us, tweet.at_us, tweet.outcome, tweet.tweet_id, tweet.author, "", "", "", 0
        if seen.get((tweet.author, tweet.tweet_id), received_us) > received_us:
            # It is counted in the minute in which it came, and as nothing else: the tweet has been counted.
            return row, received_us, received_us, DUPLICATE, tweet.tweet_id, tweet.author, "", "", "", 0
        seen[tweet.author, tweet.tweet_id] = tweet.until_us
        last = past.setdefault(tweet.author, deque())
        last.append((received_us, tweet.text_key, tweet.linked))
        while len(last) > self.history_tweets or self._is_past(last[0][0], received_us):
            last.popleft()
        about = (tweet.content, tweet.topic, tweet.sentiment)
        return row, received_us, tweet.at_us, KEPT, tweet.tweet_id, tweet.author, kind_of(last).value, *about

    def _kept(self, seen: dict[Id, int], past: dict[int, deque[Past]], now_us: int) -> Memory:
        """Without what no later row can ask for: none is received before `now_us`."""
        ids = ((*tweet, until_us) for tweet, until_us in seen.items() if until_us > now_us)
        tweets = (
            (author, *tweet) for author, of_author in past.items() for tweet in of_author if not self._is_past(tweet[0], now_us)
        )
        return Memory(seen=_packed(ids, _SEEN), past=_packed(tweets, _PAST))

    def _is_past(self, received_us: int, now_us: int) -> bool:
        return received_us <= now_us - self.history_s * 1e6


def kind_of(tweets: deque[Past]) -> AuthorKind:
    """Who writes such tweets. Counted in whole numbers, so that nothing is rounded."""
    count = len(tweets)
    if count < KNOWN_FROM_TWEETS:
        return AuthorKind.UNKNOWN
    if count >= BOT_FROM_TWEETS and 2 * (count - len({text for _, text, _ in tweets})) >= count:
        return AuthorKind.BOT
    if 3 * sum(linked for _, _, linked in tweets) >= 2 * count:
        return AuthorKind.NEWSROOM
    return AuthorKind.PERSON


def _packed(records: Iterable[tuple[int, ...]], kind: np.dtype[Any]) -> bytes:
    return np.array(list(records), dtype=kind).tobytes()


def _unpacked(packed: bytes, kind: np.dtype[Any]) -> list[tuple[int, ...]]:
    unpacked: list[tuple[int, ...]] = np.frombuffer(packed, dtype=kind).tolist()
    return unpacked
