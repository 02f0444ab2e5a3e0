"""Elasticutor's micro-benchmark: a generator of tuples, and a calculator with state.

Wang, Fu, Ma, Winslett, Zhang: Elasticutor, SIGMOD 2019, section 5.1.

    paper                                    option                  unit         paper's default   here
    input rate                               trace                   tuples/s     saturating        100/500/100, 45 s each
    tuple size s                             payload_bytes           bytes        128               128
    CPU cost of a tuple                      cost_us_per_tuple       us           1000              1000
    distinct keys                            keys                                 10,000            10,000
    skew of their frequencies                zipf                                 0.5               0.5
    shuffles omega                           shuffles_per_minute     per minute   2                 2
    state of a shard                         state_kb_per_shard      KiB          32                32
    shards                                   shards                               256 per executor  8

Departures from the paper. The generator is the source, not an operator that is scaled. State is kept by Spark for buckets
of keys (see `calculator`), and a bucket that has had tuples is written anew after every batch, ballast and all: with a large
`state_kb_per_shard` that is work of its own, which the paper's state, changed in place, does not have.

Semantics: every tuple of the trace counts once. Rows come in the order of their numbers and there is no event time, so none
is late; state is bounded by the number of keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import springtide
from springtide.applications.answers import compared
from springtide.applications.micro_benchmark.calculator import Calculator
from springtide.applications.micro_benchmark.checksum import summed
from springtide.applications.results import ResultTable
from springtide.applications.shipped import Checked
from springtide.errors import require
from springtide.workload.loading import load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBenchmark:
    """Options; their meaning is in the module's text. `waits` makes a tuple's cost a wait instead of processor time."""

    name: ClassVar[str] = "micro-benchmark"
    summary: ClassVar[str] = "skewed keys whose frequencies change; each tuple costs processor time and changes its key's state"
    reference: ClassVar[str] = "Wang et al., Elasticutor, SIGMOD 2019, section 5.1"

    trace: str = "generator:steps:levels=100/500/100,hold_s=45"
    payload_bytes: int = 128
    cost_us_per_tuple: float = 1000.0
    waits: bool = False
    keys: int = 10_000
    zipf: float = 0.5
    shuffles_per_minute: float = 2.0
    state_kb_per_shard: float = 32.0
    shards: int = 8
    buckets: int = 64
    max_rows_per_batch: int = 1000
    seed: int = 7

    def __post_init__(self) -> None:
        for what in ("payload_bytes", "cost_us_per_tuple", "state_kb_per_shard", "seed"):
            require(getattr(self, what) >= 0, f"{self.name}: {what} must be 0 or more, not {getattr(self, what)}")
        for what in ("shards", "buckets", "max_rows_per_batch"):
            require(getattr(self, what) >= 1, f"{self.name}: {what} must be 1 or more, not {getattr(self, what)}")
        self._distribution()

    def data(self) -> str:
        tuples = load(self.trace, seed=self.seed).rows
        return f"{self.trace}: {tuples:,.0f} tuples made from seed {self.seed}"

    def application(self, folder: Path) -> springtide.Application:
        app = springtide.Application(self.name, slo=springtide.SLO(latency_s=5))
        generator = app.source("generator", self.generated, ingest_time="offered_at")
        sums = app.operator("calculator", self.calculator().calculated, generator, shards=self.shards, output_mode="update")
        app.sink(sums, self.sums(folder).save)
        return app

    def generated(self, spark: SparkSession) -> DataFrame:
        return springtide.replay(spark, self.trace, max_rows_per_batch=self.max_rows_per_batch, **self._tuples())

    def calculator(self) -> Calculator:
        return Calculator(
            cost_us_per_tuple=self.cost_us_per_tuple,
            waits=self.waits,
            buckets=self.buckets,
            state_bytes_per_bucket=round(self.state_kb_per_shard * 1024 * self.shards / self.buckets),
        )

    def sums(self, folder: Path) -> ResultTable:
        return ResultTable(folder / "results" / "sums")

    def check(self, spark: SparkSession, folder: Path) -> list[Checked]:
        """A key's last sum is that of the most tuples: its state only grows."""
        tuples = springtide.replayed(spark, self.trace, **self._tuples()).select("row", "key", "value", "payload")
        right = summed(tuples.toPandas())
        said: Any = self.sums(folder).read(spark).select("key", "tuples", "checksum").toPandas()
        last = said.sort_values("tuples").groupby("key").tail(1)
        return [compared("keys with their counts and checksums", _rows(right), _rows(last))]

    def _tuples(self) -> dict[str, Any]:
        return {"keys": self._distribution(), "payload_bytes": self.payload_bytes, "seed": self.seed}

    def _distribution(self) -> springtide.KeyDistribution:
        return springtide.KeyDistribution(keys=self.keys, zipf=self.zipf, shuffles_per_minute=self.shuffles_per_minute)

    @classmethod
    def small(cls) -> MicroBenchmark:
        return cls(
            trace="generator:steps:levels=50/200/50,hold_s=7", keys=300, buckets=32, shards=4, cost_us_per_tuple=200.0, zipf=0.8
        )


def _rows(sums: Any) -> list[tuple[int, int, int]]:
    return list(sums[["key", "tuples", "checksum"]].itertuples(index=False, name=None))
