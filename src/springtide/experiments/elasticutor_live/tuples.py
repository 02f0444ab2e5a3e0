"""The micro-benchmark of section 5.1 for live runs: the application that comes with Springtide, with keys as `world` says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

import springtide
from springtide.applications.answers import compared
from springtide.applications.micro_benchmark.application import MicroBenchmark
from springtide.applications.micro_benchmark.checksum import summed
from springtide.applications.shipped import Checked
from springtide.experiments.elasticutor import paper
from springtide.experiments.elasticutor_live import world
from springtide.experiments.elasticutor_live.trial import Kept
from springtide.workload.loading import load

ZIPF = 1.4
_BUCKETS = 32
_BEYOND_S = 30.0  # the generator makes rows for longer than a run lasts


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuples:
    """Tuples whose keys are shuffled so many times a minute; `row_s` is what each waits."""

    shuffles_per_minute: float
    counted_s: float
    row_s: float = world.ROW_S
    rows_per_batch: int = world.ROWS_PER_BATCH
    seed: int = 0

    @property
    def data(self) -> str:
        return f"{paper.KEYS:,} keys, Zipf {ZIPF:g}, made from seed {self.seed}"

    def application(self, operator: str, folder: Path, kept: Kept) -> springtide.Application:  # noqa: ARG002 - it has no files
        shipped = self._shipped()
        app = springtide.Application(operator, slo=springtide.SLO(latency_s=5))
        generator = app.source("generator", shipped.generated, ingest_time="offered_at")
        sums = app.operator(
            operator,
            shipped.calculator().calculated,
            generator,
            shards=world.SHARDS,
            replicas=world.SLOTS,
            output_mode="update",
        )
        app.sink(sums, kept.save)
        return app

    def checked(self, spark: SparkSession, kept: Kept, rows: int) -> Checked:
        """A key's last sum is that of the most tuples: its state only grows."""
        shipped = self._shipped()
        keys = springtide.KeyDistribution(keys=shipped.keys, zipf=shipped.zipf, shuffles_per_minute=shipped.shuffles_per_minute)
        tuples = springtide.replayed(
            spark, shipped.trace, keys=keys, payload_bytes=shipped.payload_bytes, seed=shipped.seed, until_row=rows
        )
        right = summed(tuples.select("row", "key", "value", "payload").toPandas())
        last = {row.key: row for row in sorted(kept.rows(), key=lambda row: row.tuples)}
        found = [(row.key, row.tuples, row.checksum) for row in last.values()]
        return compared("keys with their counts and checksums", _rows(right), found)

    def rows_at_shuffles(self) -> list[float]:
        if self.shuffles_per_minute <= 0:
            return []
        trace = load(self._shipped().trace, seed=self.seed)
        read = np.concatenate([[0.0], np.cumsum(trace.counts)])
        times_s = np.arange(60 / self.shuffles_per_minute, trace.steps * trace.step_s, 60 / self.shuffles_per_minute)
        return [float(row) for row in np.interp(times_s, np.arange(len(read)) * trace.step_s, read)]

    def _shipped(self) -> MicroBenchmark:
        return MicroBenchmark(
            trace=world.trace(self.counted_s + _BEYOND_S),
            cost_us_per_tuple=1e6 * self.row_s,
            waits=True,
            payload_bytes=paper.ROW_BYTES,
            keys=paper.KEYS,
            zipf=ZIPF,
            shuffles_per_minute=self.shuffles_per_minute,
            state_kb_per_shard=paper.STATE_BYTES_PER_SHARD / 1024,
            shards=world.SHARDS,
            buckets=_BUCKETS,
            max_rows_per_batch=self.rows_per_batch,
            seed=self.seed,
        )


def _rows(sums: Any) -> list[tuple[int, int, int]]:
    return list(sums[["key", "tuples", "checksum"]].itertuples(index=False, name=None))
