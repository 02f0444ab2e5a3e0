"""The application: its options, its wiring, and the check of its results.

    parse -> features -> windows -> verdicts

Result, in a table under `results`/dns: `verdicts`, on each client and domain in each window: normal, suspicious or tunnel, with
the features it was made of; and how many rows were refused, by their outcome. What is said last of a window counts: it has
most queries.

Reference: D. Wladdimiro, L. Arantes, P. Sens, N. Hidalgo, "A predictive approach for dynamic replication of operators in
distributed stream processing systems" (PSPS), SBAC-PAD 2022, section V-G 2 (figure 13).

Departures from the paper. Its text says that there are four operators, which analyse and classify, and names the data: the
CIRA-CIC-DoHBrw-2020 set, which is of traffic through tunnels. What each operator does here is ours, and the log is made from a
seed in the likeness of such traffic: that set could not be had. The rates are recorded ones, of requests to web sites.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import pyspark.sql.functions as F

import springtide
from springtide.applications.answers import compared
from springtide.applications.dns.answer import Key, Window, answer, detection
from springtide.applications.dns.feed import DnsFeed
from springtide.applications.dns.operators import KEPT, DnsOperators, Thresholds
from springtide.applications.rates import Rates
from springtide.applications.results import ResultTable
from springtide.applications.shipped import Checked
from springtide.errors import require

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KEY = ("window_start", "outcome", "client", "domain")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dns:
    """Options. Rates and `duration_s` are of the replay's clock, all other times of the trace's, `speed_up` times as fast.

    `apart` gives every operator a query and replicas of its own, as in the paper, instead of running all in that of `windows`.
    """

    name: ClassVar[str] = "dns"
    summary: ClassVar[str] = "DNS queries, searched for tunnels by client, domain and window"
    reference: ClassVar[str] = "D. Wladdimiro et al. (PSPS), SBAC-PAD 2022, section V-G 2"

    rates: str = "nasa-launch"
    peak_rows_per_s: float = 400.0
    duration_s: float = 150.0
    speed_up: float = 10.0
    seed: int = 7
    clients: int = 400
    client_zipf: float = 0.6
    domains: int = 3000
    domain_zipf: float = 1.0
    tunnels: int = 4
    tunnel_share: float = 0.08
    malformed_share: float = 0.01
    late_share: float = 0.02
    late_by_s: float = 240.0
    allowed_lateness_s: float = 60.0
    window_s: int = 60
    min_queries: int = 8
    min_mean_entropy_millibit: int = 3300
    min_mean_sub_chars: int = 30
    min_distinct_percent: int = 80
    min_data_percent: int = 50
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
            rates="generator:steps:levels=10/20/10,hold_s=80",
            peak_rows_per_s=240.0,
            duration_s=20.0,
            clients=60,
            domains=300,
            malformed_share=0.03,
            late_share=0.05,
        )

    def data(self) -> str:
        return f"{self._rates().data()}; queries made from seed {self.seed}"

    def application(self, folder: Path) -> springtide.Application:
        does = self.operators()
        app = springtide.Application(self.name, slo=springtide.SLO(latency_s=self.latency_slo_s))
        lines = app.source("resolver", self.stream, ingest_time="offered_at")
        inline = not self.apart
        parsed = app.operator("parse", does.parsed, lines, inline=inline)
        measured = app.operator("features", does.features, parsed, fuse=inline, inline=inline)
        windows = app.operator("windows", does.windows, measured, shards=self.shards, output_mode="update")
        verdicts = app.operator("verdicts", does.classified, windows, fuse=inline)
        app.sink(verdicts, self.table(folder).save)
        return app

    def check(self, spark: SparkSession, folder: Path) -> list[Checked]:
        """The windows, exactly; and, for information, how many of the tunnels that the feed knows of were found."""
        right, limits = self.answer(spark), self.operators().thresholds
        wanted = [(*key, *w.row(), w.verdict(limits) if key[1] == KEPT else "") for key, w in right.items()]
        found = detection(right, self.feed().tunnels_there(), limits)
        told = f"windows called tunnels (precision {found.precision:.1%}, recall {found.recall:.1%}, for information)"
        return [
            compared("windows of a client and a domain", wanted, self._last(spark, folder)),
            Checked(what=told, rows=found.right + found.wrong, wrong=0, exact=False),
        ]

    def answer(self, spark: SparkSession) -> dict[Key, Window]:
        """The right windows, from the same lines."""
        rows = springtide.replayed(spark, self.trace(), rows=self.feed(), speed_up=self.speed_up)
        lines = rows.selectExpr("unix_micros(received_at)", "line").collect()
        return answer(((row[0], row[1]) for row in lines), self.operators())

    def stream(self, spark: SparkSession) -> DataFrame:
        """The lines as they come from the resolvers."""
        return springtide.replay(
            spark, self.trace(), rows=self.feed(), speed_up=self.speed_up, max_rows_per_batch=self.max_rows_per_batch
        )

    def trace(self) -> springtide.Trace:
        return self._rates().trace()

    def table(self, folder: Path) -> ResultTable:
        return ResultTable(folder / "results" / self.name / "verdicts")

    def operators(self) -> DnsOperators:
        thresholds = Thresholds(
            min_queries=self.min_queries,
            min_mean_entropy_millibit=self.min_mean_entropy_millibit,
            min_mean_sub_chars=self.min_mean_sub_chars,
            min_distinct_percent=self.min_distinct_percent,
            min_data_percent=self.min_data_percent,
        )
        return DnsOperators(window_s=self.window_s, allowed_lateness_s=self.allowed_lateness_s, thresholds=thresholds)

    def feed(self) -> DnsFeed:
        return DnsFeed(
            seed=self.seed,
            clients=self.clients,
            client_zipf=self.client_zipf,
            domains=self.domains,
            domain_zipf=self.domain_zipf,
            tunnels=self.tunnels,
            tunnel_share=self.tunnel_share,
            malformed_share=self.malformed_share,
            late_share=self.late_share,
            late_by_s=self.late_by_s,
        )

    def _last(self, spark: SparkSession, folder: Path) -> list[tuple[object, ...]]:
        """What was said last of each key. One batch may say several things of it: the one with most queries is the last."""
        said = self.table(folder).read(spark).drop("batch").withColumn("window_start", F.unix_seconds("window_start"))
        values = said.columns[len(_KEY) :]
        last = said.groupBy(*_KEY).agg(F.max_by(F.struct(*values), "queries").alias("last"))
        return [tuple(row) for row in last.select(*_KEY, "last.*").collect()]

    def _rates(self) -> Rates:
        return Rates(
            rates=self.rates,
            peak_rows_per_s=self.peak_rows_per_s,
            duration_s=self.duration_s,
            speed_up=self.speed_up,
            seed=self.seed,
        )
