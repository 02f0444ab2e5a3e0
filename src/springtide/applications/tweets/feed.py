"""The tweets, as lines of JSON: row n is a pure function of n, its time and the seed. Nothing here loops over rows.

    {"id":...,"created_at":"2020-04-01T00:00:12.345678Z","user":{"id":17,"name":"user17"},"lang":"en","text":"..."}

What is in them: few authors write most (Zipf). Newsrooms report with a link, persons chat and have opinions, bots say one of
three things again and again. Popular tweets are delivered several times: there is one in every 20 s of the trace, and a share
of the rows is a delivery of one of the last four. Some lines come late, and some are broken: cut off, without a text, with a
time that is none, or from the future.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from springtide.applications.chance import Chance, IntArray
from springtide.applications.tweets import words
from springtide.errors import require
from springtide.model.observation import FloatArray

BEGIN_US = 1_585_699_200_000_000  # 1 April 2020: second 0 of the trace
FIRST_ID = 1_245_000_000_000_000_000

_SCHEMA = pa.schema([("received_at", pa.timestamp("us", tz="UTC")), ("line", pa.string())])

_POPULAR = 1 << 40  # numbers from here on are of popular tweets
_REPEATED = 1 << 50  # and from here on of texts that bots repeat
_POPULAR_EVERY_S = 20
_POPULAR_AT_ONCE = 4
_BOT_TEXTS = 3
_USUAL_LAG_S = 0.5
_FUTURE_US = 3_600_000_000
_CUT_AT = 60  # characters that are left of a line that is cut off

_NEWSROOM, _BOT, _PERSON = range(3)
_AUTHOR_KINDS = (0.08, 0.05, 0.87)
_REPORT, _OPINION, _CHAT, _PROMOTION = range(4)
_STYLES = np.array([[0.85, 0.0, 0.15, 0.0], [0.2, 0.2, 0.2, 0.4], [0.1, 0.5, 0.35, 0.05]])  # of each kind of author

_Slot = tuple[Sequence[str], IntArray, NDArray[np.bool_]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TweetFeed:
    """Makes the rows: `received_at`, the collector's own stamp, which never falls, and the `line`."""

    seed: int = 7
    authors: int = 3000
    author_zipf: float = 0.9
    malformed_share: float = 0.01
    redelivered_share: float = 0.03
    late_share: float = 0.02
    late_by_s: float = 240.0

    def __post_init__(self) -> None:
        require(self.seed >= 0, f"seed must be 0 or more, not {self.seed}")
        require(self.authors >= 1, f"authors must be at least 1, not {self.authors}")
        require(self.author_zipf >= 0, f"author_zipf must be 0 or more, not {self.author_zipf}")
        for what in ("malformed_share", "redelivered_share", "late_share"):
            require(0 <= getattr(self, what) <= 1, f"{what} must be between 0 and 1, not {getattr(self, what)}")
        require(self.late_by_s >= 0, f"late_by_s must be 0 or more, not {self.late_by_s}")

    @property
    def schema(self) -> pa.Schema:
        return _SCHEMA

    def made(self, first: int, after: int, elapsed_s: FloatArray) -> pa.Table:
        rows = np.arange(first, after, dtype=np.int64)
        received_us = BEGIN_US + np.rint(elapsed_s * 1e6).astype(np.int64)
        tweets, created_us = self._tweets(rows, elapsed_s, received_us)
        broken = self._broken(rows)
        created_us = np.where(broken == 4, received_us + _FUTURE_US, created_us)
        line = self._lines(tweets, created_us, broken)
        received = pa.array(received_us.view("datetime64[us]"), _SCHEMA.field("received_at").type)
        return pa.table([received, line], schema=_SCHEMA)

    def _tweets(self, rows: IntArray, elapsed_s: FloatArray, received_us: IntArray) -> tuple[IntArray, IntArray]:
        """The number of each row's tweet, and when it was created."""
        chance = Chance(self.seed)
        late = chance.share("late", rows) < self.late_share
        lag_s = chance.share("lag", rows) * np.where(late, self.late_by_s, _USUAL_LAG_S)
        created_us = received_us - np.rint(lag_s * 1e6).astype(np.int64)

        which = np.floor(elapsed_s / _POPULAR_EVERY_S).astype(np.int64) - 1 - chance.whole("ago", rows, _POPULAR_AT_ONCE)
        popular = (chance.share("redelivered", rows) < self.redelivered_share) & (which >= 0)
        tweets = np.where(popular, _POPULAR + which, rows)
        within_us = chance.whole("within", tweets, _POPULAR_EVERY_S * 1_000_000)
        return tweets, np.where(popular, BEGIN_US + which * _POPULAR_EVERY_S * 1_000_000 + within_us, created_us)

    def _broken(self, rows: IntArray) -> IntArray:
        """0: not at all, 1: cut off, 2: without text, 3: a time that is none, 4: from the future."""
        chance = Chance(self.seed)
        return np.where(
            chance.share("malformed", rows) < self.malformed_share, 1 + chance.whole("how malformed", rows, 4), 0
        ).astype(np.int64)

    def _lines(self, tweets: IntArray, created_us: IntArray, broken: IntArray) -> pa.Array:
        chance = Chance(self.seed)
        author = chance.zipf("author", tweets, self.authors, self.author_zipf)
        user = pa.array(author).cast(pa.string())
        stamps = pa.array(np.char.add(np.datetime_as_string(created_us.view("datetime64[us]")), "Z"))
        lines = pc.binary_join_element_wise(
            '{"id":',
            pa.array(FIRST_ID + tweets).cast(pa.string()),
            ',"created_at":"',
            pc.if_else(pa.array(broken == 3), "yesterday", stamps),
            '","user":{"id":',
            user,
            ',"name":"user',
            user,
            '"},"lang":"',
            _taken(words.LANGUAGES, chance.zipf("language", author, len(words.LANGUAGES), 1.5)),
            pc.if_else(pa.array(broken == 2), '","body":"', '","text":"'),
            self._texts(tweets, author),
            '"}',
            "",
        )
        return pc.if_else(pa.array(broken == 1), pc.utf8_slice_codeunits(lines, 0, _CUT_AT), lines)

    def _texts(self, tweets: IntArray, author: IntArray) -> pa.Array:
        """Each text from a number: that of its tweet, or, for a bot, that of one of its three."""
        chance = Chance(self.seed)
        kind = chance.among("author's kind", author, _AUTHOR_KINDS)
        again = _REPEATED + author * _BOT_TEXTS + chance.whole("which again", tweets, _BOT_TEXTS)
        number = np.where(kind == _BOT, again, tweets)
        style = (chance.share("style", number)[:, None] >= np.cumsum(_STYLES[kind], axis=1)[:, :-1]).sum(axis=1)
        parts = [
            _slot(*slot) for slot in (*self._opening(number, style), *self._middle(number, style), *_end(chance, number, style))
        ]
        return pc.binary_join_element_wise(*parts, " ", null_handling="skip")

    def _opening(self, number: IntArray, style: IntArray) -> list[_Slot]:
        chance = Chance(self.seed)
        return [
            (words.REPORTING, chance.whole("report", number, len(words.REPORTING)), style == _REPORT),
            (words.OPINION, chance.whole("opinion", number, len(words.OPINION)), style == _OPINION),
            (_MENTIONS, chance.whole("mention", number, len(_MENTIONS)), chance.share("mentions", number) < 0.3),
        ]

    def _middle(self, number: IntArray, style: IntArray) -> list[_Slot]:
        """Up to ten words, some of the text's topic, some of praise or blame, the others mean nothing."""
        chance = Chance(self.seed)
        length = 4 + chance.whole("length", number, 7)
        topic = chance.zipf("topic", number, len(_TOPIC_WORDS), 0.7)
        praises = chance.share("praises", number) < 0.5
        slots: list[_Slot] = []
        for at in range(10):
            use = chance.share(f"use {at}", number)
            of_topic, moody = use < 0.3, (use > 0.8) & (style == _OPINION)
            drawn, there = chance.bits(f"word {at}", number), at < length
            slots += [
                (_ALL_TOPIC_WORDS, topic * 10 + (drawn % np.uint64(10)).astype(np.int64), there & of_topic),
                (words.PRAISE, (drawn % np.uint64(10)).astype(np.int64), there & moody & praises),
                (words.BLAME, (drawn % np.uint64(10)).astype(np.int64), there & moody & ~praises),
                (_FILLERS, (drawn % np.uint64(len(_FILLERS))).astype(np.int64), there & ~of_topic & ~moody),
            ]
        return slots


def _end(chance: Chance, number: IntArray, style: IntArray) -> list[_Slot]:
    tags = np.where(style == _PROMOTION, 4, chance.whole("tags", number, 3))
    links = np.where(style == _PROMOTION, 1 + chance.whole("links", number, 2), style == _REPORT)
    slots: list[_Slot] = [(_TAGS, chance.whole(f"tag {at}", number, len(_TAGS)), tags > at) for at in range(4)]
    slots += [(_LINKS, chance.whole(f"link {at}", number, len(_LINKS)), links > at) for at in range(2)]
    return slots


def _slot(choice: Sequence[str], index: IntArray, there: NDArray[np.bool_]) -> pa.Array:
    """A word of the choice, or none."""
    return pa.array(choice, pa.string()).take(pa.array(index, mask=~there))


def _taken(choice: Sequence[str], index: IntArray) -> pa.Array:
    return pa.array(choice, pa.string()).take(pa.array(index))


_TOPIC_WORDS = tuple(words.TOPICS.values())
_ALL_TOPIC_WORDS = tuple(word for topic in _TOPIC_WORDS for word in topic)
_FILLERS = (*words.FILLERS, "Today,", "NOW!", "más", "für", "😷", "n°1")  # a reader must cope with more than plain words
_MENTIONS = tuple(f"@user{number}" for number in range(200))
_TAGS = tuple(f"#{word}" for word in (*_ALL_TOPIC_WORDS, "stayhome", "bigsale", "followme", "giveaway"))
_LINKS = tuple(f"https://t.co/{number:08x}" for number in range(1, 5_000_000_000, 9_999_991))
