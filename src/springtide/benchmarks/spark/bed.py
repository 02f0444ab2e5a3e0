"""Where the cases run: an embedded cluster in a folder of its own, and an application on it whose batches are watched.

Both are gone when their block ends, however it ends.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame, SparkSession

from springtide.backends.spark.application import Application, Save
from springtide.backends.spark.backend import SparkBackend, Start
from springtide.backends.spark.cluster.embedded import session
from springtide.backends.spark.deployment import Deployment, deployed
from springtide.backends.spark.files import Folder
from springtide.backends.spark.fusion import described, fused, pool_of
from springtide.backends.spark.hosts import Fleet
from springtide.backends.spark.query import OperatorQuery
from springtide.backends.spark.scaling import Scaling
from springtide.benchmarks.spark.batches import Batch, batch_times_s, settled
from springtide.errors import SpringtideError
from springtide.model.allocation import OperatorAllocation

EXECUTORS = 4
CORES = 1
MEMORY_MB = 600

_PATIENCE_S = 180.0  # without a batch, something has gone wrong
_KEPT_PROGRESS = 2000
_CLEANING_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bed:
    """A session on four executors, a folder, and how to say what is going on. `quick` asks for less of everything."""

    spark: SparkSession
    folder: Path
    say: Callable[[str], None]
    quick: bool


@contextmanager
def _folder(prefix: str) -> Iterator[str]:
    """A folder that is removed for good: executors may still write into it for a moment after their session has ended."""
    with TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        try:
            yield folder
        finally:
            gone_by_s = time.monotonic() + _CLEANING_S
            shutil.rmtree(folder, ignore_errors=True)
            while Path(folder).exists() and time.monotonic() < gone_by_s:
                time.sleep(0.2)
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def made_up(name: str, say: Callable[[str], None], *, quick: bool) -> Iterator[Bed]:
    """A bed for one case."""
    with _folder(f"springtide-{name}-") as folder:
        settings = {
            "spark.local.dir": f"{folder}/local",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.sql.streaming.numRecentProgressUpdates": str(_KEPT_PROGRESS),
        }
        say(f"{name}: starting Spark with {EXECUTORS} executors")
        with session(
            f"springtide-bench-{name}", executors=EXECUTORS, cores=CORES, memory_mb=MEMORY_MB, settings=settings
        ) as spark:
            yield Bed(spark=spark, folder=Path(folder), say=say, quick=quick)


class Watched:
    """An application that runs, and the batches of the operator that ends in `save`."""

    def __init__(self, backend: SparkBackend, query: OperatorQuery, spark: SparkSession) -> None:
        self.backend = backend
        self._query, self._spark = query, spark
        self._batches: list[Batch] = []
        self._ids: list[int] = []
        self._one_more = threading.Condition()

    @property
    def name(self) -> str:
        return self._query.name

    def save(self, df: DataFrame, batch_id: int) -> None:
        """Run the batch, keep nothing of it, and note when."""
        began_s = time.monotonic()
        df.write.format("noop").mode("overwrite").save()
        followed = self._query.applied
        assert followed is not None
        with self._one_more:
            self._batches.append(Batch(began_s=began_s, ended_s=time.monotonic(), followed=followed))
            self._ids.append(batch_id)
            self._one_more.notify_all()

    @property
    def batches(self) -> Sequence[Batch]:
        with self._one_more:
            return tuple(self._batches)

    def rows(self) -> list[float]:
        """Rows that each batch has read, by Spark's own account; 0 for one that it has not given account of yet."""
        found: dict[int, float] = {}
        for query in self._spark.streams.active:
            if query.name == self.name:
                found = {p["batchId"]: float(p["numInputRows"]) for p in query.recentProgress}
        with self._one_more:
            return [found.get(batch_id, 0.0) for batch_id in self._ids]

    def wait_until(self, over: Callable[[Sequence[Batch]], bool]) -> int:
        """Wait until the batches so far are as wanted; how many they are then."""
        patient_until_s = time.monotonic() + _PATIENCE_S
        seen = len(self.batches)
        while not over(batches := self.batches):
            if len(batches) > seen:
                seen, patient_until_s = len(batches), time.monotonic() + _PATIENCE_S
            for name, why in self.backend.failures().items():
                raise SpringtideError(f"operator {name!r} has stopped: {why}")
            if time.monotonic() > patient_until_s:
                raise SpringtideError(f"operator {self.name!r} has run no batch for {_PATIENCE_S:.0f} s: see Spark's log")
            with self._one_more:
                self._one_more.wait(1.0)
        return len(batches)

    def wait_for(self, more: int) -> int:
        """Wait for so many batches more; how many there are then."""
        wanted = len(self.batches) + more
        return self.wait_until(lambda batches: len(batches) >= wanted)

    def settle(self, *, at_least_s: float = 0.0, at_most_s: float = 120.0) -> None:
        """Wait until batches have stopped getting faster."""
        began_s = time.monotonic()

        def over(batches: Sequence[Batch]) -> bool:
            taken_s = time.monotonic() - began_s
            return taken_s >= at_most_s or (taken_s >= at_least_s and settled(batch_times_s(batches)))

        self.wait_until(over)


@contextmanager
def watched(bed: Bed, make: Callable[[Save], Application], scaling: Scaling) -> Iterator[Watched]:
    """An application that runs on all executors, with its state in a folder of its own name.

    `make(save)` gives an application whose last operator's sink is `save`; it is started again from where it was when the
    folder is there already.
    """
    kept: list[Deployment] = []
    found: list[Watched] = []

    def save(df: DataFrame, batch_id: int) -> None:
        found[0].save(df, batch_id)

    application = make(save)
    plans = fused(application)
    folder = Folder(str(bed.folder / application.name))

    def deploy(fleet: Fleet, placed: Mapping[str, OperatorAllocation]) -> Deployment:
        kept.append(deployed(bed.spark, application, folder, fleet, placed, scaling))
        return kept[0]

    start = Start(hosts=EXECUTORS, replicas={plan.name: plan.head.replicas for plan in plans}, scaling=scaling)
    pool = pool_of(CORES, MEMORY_MB * 2**20, 1, EXECUTORS)
    backend = SparkBackend(bed.spark, described(application, plans), pool, deploy, start)
    found.append(Watched(backend, kept[0].queries[plans[-1].name], bed.spark))
    try:
        backend.start()
        yield found[0]
    finally:
        backend.stop()
