"""What tests of live applications share: a replayed trace, sinks that keep what they get, and ways to drive a backend."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, Row, SparkSession

from springtide.backends.spark.application import Application
from springtide.backends.spark.backend import SparkBackend, backend_for
from springtide.backends.spark.controlled import Controlled
from springtide.backends.spark.fusion import pool_of
from springtide.backends.spark.scaling import Scaling
from springtide.execute.diff import actions
from springtide.model.allocation import Allocation, OperatorAllocation, new_host_names
from springtide.model.application import KeyDistribution
from springtide.model.observation import Observation
from springtide.workload.replay import replay, replayed

KEYS = KeyDistribution(keys=60, zipf=0.9, shuffles_per_minute=6)
PATIENCE_S = 240.0  # a machine that has other things to do


@dataclass(frozen=True)
class Load:
    """Rows that come at a given rate, beginning now, and are the same ones every time they are asked for."""

    trace: str
    max_rows_per_batch: int | None = None  # however fast this machine is, there are as many batches
    started_at: float = field(default_factory=time.time)

    def stream(self, spark: SparkSession) -> DataFrame:
        return replay(spark, self.trace, keys=KEYS, started_at=self.started_at, max_rows_per_batch=self.max_rows_per_batch)

    def batch(self, spark: SparkSession) -> DataFrame:
        return replayed(spark, self.trace, keys=KEYS, started_at=self.started_at)


@dataclass
class Kept:
    """A sink: the rows of each batch, once, however often the batch comes."""

    batches: dict[int, list[Row]] = field(default_factory=dict)

    def save(self, df: DataFrame, batch_id: int) -> None:
        self.batches[batch_id] = df.collect()

    def rows(self) -> list[tuple[object, ...]]:
        """Everything that came, in order."""
        return [tuple(row) for batch in sorted(self.batches) for row in self.batches[batch]]

    def latest(self, key_columns: int = 1) -> dict[tuple[object, ...], tuple[object, ...]]:
        """The last row of each key: what an operator in update mode has said in the end."""
        return {row[:key_columns]: row[key_columns:] for row in self.rows()}


def answer(df: DataFrame, key_columns: int = 1) -> dict[tuple[object, ...], tuple[object, ...]]:
    return {tuple(row)[:key_columns]: tuple(row)[key_columns:] for row in df.collect()}


@contextmanager
def running(
    spark: SparkSession, application: Application, folder: Path, *, hosts: int = 2, scaling: Scaling = Scaling.ELASTIC
) -> Iterator[SparkBackend]:
    backend = backend_for(spark, application, pool_of(1, 600 * 2**20, 1, 4), str(folder), hosts=hosts, scaling=scaling)
    backend.start()
    try:
        yield backend
    finally:
        backend.stop()


def observations(backend: SparkBackend, every_s: float = 1.0, patience_s: float = PATIENCE_S) -> Iterator[Observation]:
    """What is seen, again and again, until nobody asks any more; a wait without end is a failure."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        backend.clock.advance_to(backend.clock.now_s() + every_s)
        yield backend.observe()
    raise AssertionError(f"nothing came of it in {patience_s} s; failures: {backend.failures()}")


def wait_until(backend: SparkBackend, happened: Callable[[Observation], bool]) -> Observation:
    for observation in observations(backend):
        assert not backend.failures(), backend.failures()
        if happened(observation):
            return observation
    raise AssertionError  # observations() does not end by itself


class Drained:
    """Whether so many rows have been processed by an operator, and nothing waits anywhere."""

    def __init__(self, operator: str, rows: int) -> None:
        self._operator, self._left = operator, rows
        self.still = 0

    def __call__(self, observation: Observation) -> bool:
        self._left -= round(observation.operators[self._operator].processed_rows)
        idle = all(o.backlog_rows == 0 and o.processed_rows == 0 for o in observation.operators.values())
        self.still = self.still + 1 if idle and self._left <= 0 else 0
        return self.still >= 2


def wait_for_answer(running: Controlled, kept: Kept, truth: dict[tuple[object, ...], tuple[object, ...]]) -> None:
    """Wait until what runs in the background has said what is true, and see that it still runs."""
    patience = 150
    while kept.latest() != truth and patience:
        running.awaitTermination(1)
        patience -= 1
    assert running.isActive
    assert kept.latest() == truth


def random_allocation(rng: np.random.Generator, observation: Observation, shards: dict[str, int]) -> Allocation:
    """Any hosts, any replicas, any routing."""
    requested = observation.requested
    kept = [h for h in requested.hosts if rng.random() < 0.7] or [requested.hosts[0]]
    wanted = int(rng.integers(1, 5))
    hosts = tuple(kept[:wanted]) + new_host_names(frozenset(observation.hosts), max(0, wanted - len(kept)))
    operators = {}
    for name in requested.operators:
        replicas = int(rng.integers(1, min(4, shards[name] or 4) + 1))
        places = tuple(str(h) for h in rng.choice(hosts, replicas))
        routes = tuple(int(r) for r in rng.integers(0, replicas, shards[name]))
        operators[name] = OperatorAllocation(places, routes)
    return Allocation(hosts, operators)


def shards_of(backend: SparkBackend) -> dict[str, int]:
    return {o.name: o.shards if o.keyed else 0 for o in backend.application.operators}


def change_to(backend: SparkBackend, requested: Allocation, planned: Allocation) -> None:
    backend.apply(actions(requested, planned))


def executor_pids(executor_ids: Iterable[str] | None = None) -> dict[str, int]:
    """Process ids of the executors that run on this machine, by executor id."""
    found: dict[str, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in words and "--executor-id" in words:
                found[words[words.index("--executor-id") + 1]] = int(entry.name)
    return found if executor_ids is None else {e: found[e] for e in executor_ids if e in found}
