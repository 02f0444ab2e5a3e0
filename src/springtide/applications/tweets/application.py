"""The application: its options, its wiring, and the check of its results.

    simple     parse -> content -> author -> minutes
    complex    parse -> content -> author -> minutes
                                          -> news     \\
                                          -> opinions  -> pulse

Results, in tables under `results`/tweets: `tweets` (the analysis of each tweet that is kept), `minutes` (how many rows of each
outcome, content and kind of author) and, of the complex graph, `pulse` (news and opinions of each topic, minute by minute).

Reference: D. Wladdimiro, L. Arantes, P. Sens, N. Hidalgo, "A predictive approach for dynamic replication of operators in
distributed stream processing systems" (PSPS), SBAC-PAD 2022, sections V-A 2 (figure 7) and V-G 1 (figure 12).

Departures from the paper. Its text does not say what the operators do: what each does here, the words and the rules of the
classes are ours, as is the join. So are the texts, which are made from a seed: the paper's were collected from Twitter and are
not public. The rates are recorded ones. The database is a Parquet table for each kind of result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyspark.sql.functions as F

import springtide
from springtide.applications.answers import compared
from springtide.applications.rates import Rates
from springtide.applications.results import ResultTable
from springtide.applications.shipped import Checked
from springtide.applications.tweets.answer import Answer, answer
from springtide.applications.tweets.feed import TweetFeed
from springtide.applications.tweets.history import KEPT, History
from springtide.applications.tweets.operators import TweetOperators
from springtide.errors import require

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STORED = ("row", "at_us", "tweet_id", "author", "author_kind", "content", "topic", "sentiment")


class Graph(StrEnum):
    SIMPLE = "simple"
    COMPLEX = "complex"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tweets:
    """Options. Rates and `duration_s` are of the replay's clock, all other times of the trace's, `speed_up` times as fast.

    `apart` gives `parse` and `content` queries and replicas of their own, as in the paper, instead of running them in that of
    `author`.
    """

    name: ClassVar[str] = "tweets"
    summary: ClassVar[str] = "tweets, classified by what they say and by who says it"
    reference: ClassVar[str] = "D. Wladdimiro et al. (PSPS), SBAC-PAD 2022, sections V-A 2 and V-G 1"

    graph: Graph = Graph.SIMPLE
    rates: str = "covid-usc"
    peak_rows_per_s: float = 400.0
    duration_s: float = 150.0
    speed_up: float = 60.0
    seed: int = 7
    authors: int = 3000
    author_zipf: float = 0.9
    malformed_share: float = 0.01
    redelivered_share: float = 0.03
    late_share: float = 0.02
    late_by_s: float = 240.0
    allowed_lateness_s: float = 60.0
    history_s: float = 1800.0
    history_tweets: int = 20
    buckets: int = 32
    shards: int = 8
    apart: bool = False
    latency_slo_s: float = 5.0
    max_rows_per_batch: int = 2000

    def __post_init__(self) -> None:
        require(self.shards >= 1, f"shards must be at least 1, not {self.shards}")
        for made in (self._rates, self.feed, self.operators):
            made()  # each refuses what cannot be

    @classmethod
    def small(cls) -> Self:
        return cls(
            graph=Graph.COMPLEX,
            rates="generator:steps:levels=30/60/30,hold_s=400",
            peak_rows_per_s=240.0,
            duration_s=20.0,
            authors=200,
            malformed_share=0.03,
            late_share=0.05,
        )

    def data(self) -> str:
        return f"{self._rates().data()}; texts made from seed {self.seed}"

    def application(self, folder: Path) -> springtide.Application:
        does = self.operators()
        app = springtide.Application(self.name, slo=springtide.SLO(latency_s=self.latency_slo_s))
        lines = app.source("collector", self.stream, ingest_time="offered_at")
        parsed = app.operator("parse", does.parsed, lines, inline=not self.apart)
        known = app.operator("content", does.by_content, parsed, fuse=not self.apart, inline=not self.apart)
        judged = app.operator("author", does.by_author, known, shards=self.shards)
        app.sink(judged, partial(store, self.table(folder, "tweets")))
        minutes = app.operator("minutes", does.per_minute, judged, shards=self.shards, output_mode="update")
        app.sink(minutes, self.table(folder, "minutes").save)
        if self.graph is Graph.COMPLEX:
            news = app.operator("news", does.news, judged)
            opinions = app.operator("opinions", does.opinions, judged)
            pulse = app.operator("pulse", does.pulse, news, opinions, shards=self.shards, output_mode="update")
            app.sink(pulse, self.table(folder, "pulse").save)
        return app

    def check(self, spark: SparkSession, folder: Path) -> list[Checked]:
        right = self.answer(spark)
        stored = self.table(folder, "tweets").read(spark).select(*_STORED).collect()
        checks = [
            compared("tweets", map(astuple, right.tweets), map(tuple, stored)),
            compared("counts per minute and class", _flat(right.per_minute), self._last(spark, folder, "minutes", 4)),
        ]
        if self.graph is Graph.COMPLEX:
            pulse = self._last(spark, folder, "pulse", 2)
            checks.append(compared("counts per minute and topic", _flat(right.pulse()), pulse))
        return checks

    def answer(self, spark: SparkSession) -> Answer:
        """The right results, from the same lines."""
        rows = springtide.replayed(spark, self.trace(), rows=self.feed(), speed_up=self.speed_up)
        lines = rows.selectExpr("row", "unix_micros(received_at)", "line").orderBy("row").collect()
        return answer(((row[0], row[1], row[2]) for row in lines), self.operators())

    def stream(self, spark: SparkSession) -> DataFrame:
        """The lines as they come from the collector."""
        return springtide.replay(
            spark,
            self.trace(),
            rows=self.feed(),
            speed_up=self.speed_up,
            max_rows_per_batch=self.max_rows_per_batch,
        )

    def trace(self) -> springtide.Trace:
        return self._rates().trace()

    def operators(self) -> TweetOperators:
        history = History(history_s=self.history_s, history_tweets=self.history_tweets)
        return TweetOperators(allowed_lateness_s=self.allowed_lateness_s, buckets=self.buckets, history=history)

    def table(self, folder: Path, name: str) -> ResultTable:
        return ResultTable(folder / "results" / self.name / name)

    def _last(self, spark: SparkSession, folder: Path, name: str, keys: int) -> list[tuple[object, ...]]:
        """What was said last of each key, which are the first columns; a batch says one thing of a key."""
        said = self.table(folder, name).read(spark).withColumn("minute", F.unix_seconds("minute"))
        of, values = said.columns[:keys], [column for column in said.columns[keys:] if column != "batch"]
        last = said.groupBy(*of).agg(F.max_by(F.struct(*values), "batch").alias("last"))
        return [tuple(row) for row in last.select(*of, "last.*").collect()]

    def _rates(self) -> Rates:
        return Rates(
            rates=self.rates,
            peak_rows_per_s=self.peak_rows_per_s,
            duration_s=self.duration_s,
            speed_up=self.speed_up,
            seed=self.seed,
        )

    def feed(self) -> TweetFeed:
        return TweetFeed(
            seed=self.seed,
            authors=self.authors,
            author_zipf=self.author_zipf,
            malformed_share=self.malformed_share,
            redelivered_share=self.redelivered_share,
            late_share=self.late_share,
            late_by_s=self.late_by_s,
        )


def store(table: ResultTable, judged: DataFrame, batch_id: int) -> None:
    """Save the tweets that are kept."""
    table.save(judged.where(F.col("outcome") == KEPT).select(*_STORED), batch_id)


def _flat(results: Mapping[Any, tuple[int, ...]]) -> list[tuple[object, ...]]:
    return [(*key, *values) for key, values in results.items()]
