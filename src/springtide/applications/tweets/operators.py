"""The functions of the operators. Those without state are Spark's own expressions.

What becomes of a row is its `outcome`, decided by the row alone, from the first that fits:

unreadable        the line is no JSON object with fields of these types
incomplete        no id, no author, no time or no text
bad-time          the time is not like 2020-04-01T00:00:12.345678Z
from-the-future   created after the collector received it
too-late          received `allowed_lateness_s` or more after the end of the minute in which it was created
duplicate         its id was received before, in a tweet of the same author whose minute is still open (see `history`)
kept              everything else: it counts in the minute in which it was created

Every row has one outcome and is counted once: what is not kept counts in the minute in which it was received.

Watermarks only clear state. One lags behind the newest row by more than a row that is kept can: whatever batches come, Spark
finds no row too late.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from springtide.applications.tweets import words
from springtide.applications.tweets.history import (
    DUPLICATE,
    JUDGED_SCHEMA,
    KEPT,
    MEMORY_SCHEMA,
    AuthorKind,
    History,
)
from springtide.applications.tweets.words import Content
from springtide.errors import require

UNREADABLE = "unreadable"
INCOMPLETE = "incomplete"
BAD_TIME = "bad-time"
FROM_THE_FUTURE = "from-the-future"
TOO_LATE = "too-late"
OUTCOMES = (UNREADABLE, INCOMPLETE, BAD_TIME, FROM_THE_FUTURE, TOO_LATE, DUPLICATE, KEPT)

TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$"
LINK = r"https?://[^ ]+"
MINUTE_US = 60_000_000

_BROKEN = "_broken"
_TWEET = f"id bigint, created_at string, user struct<id:bigint>, text string, {_BROKEN} string"
# Spark would read more than JSON is.
_STRICT = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BROKEN, "allowSingleQuotes": "false"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TweetOperators:
    """The operators with their options; a method is the function of one."""

    allowed_lateness_s: float = 60.0
    buckets: int = 32
    history: History = field(default_factory=History)

    def __post_init__(self) -> None:
        require(self.allowed_lateness_s >= 0, f"allowed_lateness_s must be 0 or more, not {self.allowed_lateness_s}")
        require(self.buckets >= 1, f"buckets must be at least 1, not {self.buckets}")

    def parsed(self, rows: DataFrame) -> DataFrame:
        """Lines as columns, with their outcome. Times are microseconds since 1970."""
        read = rows.select(
            "row", F.unix_micros("received_at").alias("received_us"), F.from_json("line", _TWEET, _STRICT).alias("t")
        )
        created = F.when(F.col("t.created_at").rlike(TIME), F.unix_micros(F.try_to_timestamp("t.created_at")))
        fields = read.select("row", "received_us", "t", created.alias("created_us"))
        closed_us = (
            F.col("created_us") - F.pmod("created_us", F.lit(MINUTE_US)) + MINUTE_US + round(self.allowed_lateness_s * 1e6)
        )
        known = fields.withColumn("until_us", closed_us).withColumn("outcome", _outcome())
        fine = F.col("outcome") == KEPT
        return known.select(
            "row",
            "received_us",
            F.when(fine, F.col("created_us")).otherwise(F.col("received_us")).alias("at_us"),
            F.when(fine, F.col("until_us")).otherwise(0).alias("until_us"),
            "outcome",
            F.when(fine, F.col("t.id")).otherwise(0).alias("tweet_id"),
            F.when(fine, F.col("t.user.id")).otherwise(0).alias("author"),
            F.when(fine, F.lower("t.text")).otherwise("").alias("text"),
        )

    @staticmethod
    def by_content(tweets: DataFrame) -> DataFrame:
        """What a tweet is about, in which mood, and what it is: see `words`."""
        bare = F.regexp_replace("text", LINK, " ")
        split = tweets.select(
            "*",
            F.regexp_count("text", F.lit(LINK)).alias("links"),
            F.split(F.trim(F.regexp_replace(bare, "[^a-z0-9_@#]+", " ")), " ").alias("words"),
        )
        counted = split.select(
            "*",
            F.size(F.filter("words", lambda word: word.startswith("#"))).alias("tags"),
            *(_how_many(list_).alias(name) for name, list_ in _LISTS.items()),
            F.array(*map(_how_many, words.TOPICS.values())).alias("topics"),
        )
        fine = F.col("outcome") == KEPT
        return counted.select(
            *("row", "received_us", "at_us", "until_us", "outcome", "tweet_id", "author"),
            F.xxhash64(F.array_join("words", " ")).alias("text_key"),
            (F.col("links") > 0).cast("long").alias("linked"),
            F.when(fine, _content()).otherwise("").alias("content"),
            F.when(fine, _topic()).otherwise("").alias("topic"),
            (F.col("praise") - F.col("blame")).alias("sentiment"),
        )

    def by_author(self, tweets: DataFrame) -> DataFrame:
        """Copies told from tweets, and authors by what they wrote: see `history`."""
        # What was refused has no author: any bucket passes it on.
        bucket = F.pmod(F.when(F.col("outcome") == KEPT, F.xxhash64("author")).otherwise(F.col("row")), F.lit(self.buckets))
        return (
            tweets.withColumn("bucket", bucket)
            .groupBy("bucket")
            .applyInPandasWithState(self.history.judged, JUDGED_SCHEMA, MEMORY_SCHEMA, "append", "NoTimeout")
        )

    def per_minute(self, tweets: DataFrame) -> DataFrame:
        """How many rows of each kind, minute by minute. What is said last of a minute counts."""
        counts = self._timed(tweets).groupBy(F.window("at", "1 minute"), "outcome", "content", "author_kind")
        summed = counts.agg(F.count("*").alias("tweets"), F.sum("sentiment").alias("sentiment"))
        return summed.select(F.col("window.start").alias("minute"), "outcome", "content", "author_kind", "tweets", "sentiment")

    @staticmethod
    def news(tweets: DataFrame) -> DataFrame:
        """The news, and whether a newsroom stands behind them."""
        from_newsroom = (F.col("author_kind") == AuthorKind.NEWSROOM).cast("long")
        return _kept(tweets, Content.NEWS).select("at_us", "topic", from_newsroom.alias("from_newsrooms"))

    @staticmethod
    def opinions(tweets: DataFrame) -> DataFrame:
        """The opinions, for or against; those of bots are nobody's."""
        people = _kept(tweets, Content.OPINION).where(F.col("author_kind") != AuthorKind.BOT)
        mood = F.col("sentiment")
        return people.select("at_us", "topic", (mood > 0).cast("long").alias("praise"), (mood < 0).cast("long").alias("blame"))

    def pulse(self, news: DataFrame, opinions: DataFrame) -> DataFrame:
        """News and opinions joined by topic and minute, each as soon as it is there: neither waits for the other.

        Each side has its own watermark, and the slower one's counts, so the faster side clears nothing too early.
        """
        zero = F.lit(0).cast("long")
        left = self._timed(news).select("at", "topic", F.lit(1).alias("news"), "from_newsrooms", *_zeros(zero, _OF_OPINIONS))
        right = self._timed(opinions).select(
            "at", "topic", *_zeros(zero, _OF_NEWS), F.lit(1).alias("opinions"), "praise", "blame"
        )
        both = left.union(right).groupBy(F.window("at", "1 minute"), "topic")
        summed = both.agg(*(F.sum(name).alias(name) for name in (*_OF_NEWS, *_OF_OPINIONS)))
        return summed.select(F.col("window.start").alias("minute"), "topic", *_OF_NEWS, *_OF_OPINIONS)

    def _timed(self, rows: DataFrame) -> DataFrame:
        # A second more than is allowed: Spark keeps watermarks in milliseconds.
        delay = f"{round(self.allowed_lateness_s * 1000) + 1000} milliseconds"
        return rows.withColumn("at", F.timestamp_micros("at_us")).withWatermark("at", delay)


_OF_NEWS = ("news", "from_newsrooms")
_OF_OPINIONS = ("opinions", "praise", "blame")
_LISTS = {"praise": words.PRAISE, "blame": words.BLAME, "opinion": words.OPINION, "reporting": words.REPORTING}


def _outcome() -> Column:
    missing = [F.col(name).isNull() for name in ("t.id", "t.user.id", "t.created_at", "t.text")]
    return (
        F.when(F.col("t").isNull() | F.col(f"t.{_BROKEN}").isNotNull(), UNREADABLE)
        .when(missing[0] | missing[1] | missing[2] | missing[3], INCOMPLETE)
        .when(F.col("created_us").isNull(), BAD_TIME)
        .when(F.col("created_us") > F.col("received_us"), FROM_THE_FUTURE)
        .when(F.col("received_us") >= F.col("until_us"), TOO_LATE)
        .otherwise(KEPT)
    )


def _how_many(of: Iterable[str]) -> Column:
    return F.size(F.filter("words", lambda word: word.isin(*of)))


def _content() -> Column:
    promotion = (F.col("tags") >= words.PROMOTION_HASHTAGS) | (F.col("links") >= words.PROMOTION_LINKS)
    return (
        F.when(promotion, Content.PROMOTION.value)
        .when((F.col("links") >= 1) & (F.col("reporting") >= 1) & (F.col("opinion") == 0), Content.NEWS.value)
        .when(F.col("opinion") + F.col("praise") + F.col("blame") >= 1, Content.OPINION.value)
        .otherwise(Content.CHAT.value)
    )


def _topic() -> Column:
    most = F.array_max("topics")
    names = F.array(*map(F.lit, words.TOPICS))
    return F.when(most == 0, words.OTHER_TOPIC).otherwise(F.element_at(names, F.array_position("topics", most).cast("int")))


def _kept(tweets: DataFrame, content: Content) -> DataFrame:
    return tweets.where((F.col("outcome") == KEPT) & (F.col("content") == content.value))


def _zeros(zero: Column, names: Iterable[str]) -> list[Column]:
    return [zero.alias(name) for name in names]
