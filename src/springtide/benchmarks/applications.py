"""How fast the applications are that come with Springtide: beside the same functions as plain queries, without it.

All rows wait when a run begins, and are read as fast as can be, on the same executors. A figure is rows per second and core
from the end of the first batches, in which everything is compiled, to the end of the last one.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.streaming.listener import StreamingQueryListener
from rich.table import Table

from springtide.applications import registry
from springtide.applications.shipped import ShippedApplication
from springtide.backends.spark.fusion import pool_of
from springtide.benchmarks.plain import plainly_running
from springtide.benchmarks.spark.bed import CORES, MEMORY_MB, Bed, made_up
from springtide.errors import SpringtideError
from springtide.live import LiveRun
from springtide.plan.policies.static import Static
from springtide.report.units import count
from springtide.workload.replay import waiting_replays

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import QueryProgressEvent, QueryStartedEvent, QueryTerminatedEvent

SPEED_BAR = 0.95
_HOSTS = 2
_ROWS_PER_BATCH, _QUICK_ROWS_PER_BATCH = 5000, 500
_ROUNDS, _QUICK_ROUNDS = 3, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Rows per second and core, the median of the rounds, with Springtide and without; and whether the answers were right.

    Plain ones may be wrong: a query that reads another's files may find a part of a batch, and then what it makes of the order
    of rows is not what it would make of the whole.
    """

    application: str
    rows: int
    springtide_rows_per_s: float
    plain_rows_per_s: float
    ratio: float
    correct: bool
    plain_correct: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    load_before: float
    rounds: int
    results: list[Result]
    bars: dict[str, float]
    within_bars: bool


def measure(only: Sequence[str] = (), *, quick: bool = False, say: Callable[[str], None] = print) -> Report:
    load = os.getloadavg()[0]
    names = [registry.kind(name).name for name in only] or registry.names()
    rounds = _QUICK_ROUNDS if quick else _ROUNDS
    results = []
    with made_up("applications", say, quick=quick) as bed:
        for name in names:
            owner = registry.kind(name)
            results.append(_measured(bed, owner.small() if quick else owner(), rounds))
    return Report(
        load_before=load,
        rounds=rounds,
        results=results,
        bars={"ratio": SPEED_BAR},
        within_bars=all(r.ratio >= SPEED_BAR and r.correct for r in results),
    )


def table(report: Report) -> Table:
    shown = Table("application", "rows", "with Springtide", "plain", "ratio", "answers", "plain answers")
    for r in report.results:
        speeds = (f"{count(r.springtide_rows_per_s)} rows/s a core", f"{count(r.plain_rows_per_s)} rows/s a core")
        shown.add_row(r.application, f"{r.rows:,}", *speeds, f"{r.ratio:.2f}", _right(r.correct), _right(r.plain_correct))
    shown.caption = f"The ratio should be {SPEED_BAR:g} or more"
    return shown


def _right(correct: bool) -> str:
    return "right" if correct else "WRONG"


def _measured(bed: Bed, shipped: ShippedApplication, rounds: int) -> Result:
    ours: list[float] = []
    theirs: list[float] = []
    correct, rows = {True: True, False: True}, 0
    for turn in range(rounds):
        for plain in (True, False) if turn % 2 else (False, True):
            bed.say(f"{shipped.name}: {'plain queries' if plain else 'with Springtide'}, round {turn + 1} of {rounds}")
            folder = bed.folder / f"{shipped.name}-{turn}-{plain}"
            watch = _Watch()
            bed.spark.streams.addListener(watch)
            try:
                with waiting_replays(max_rows_per_batch=_QUICK_ROWS_PER_BATCH if bed.quick else _ROWS_PER_BATCH):
                    (_run_plain if plain else _run_ours)(bed, shipped, folder)
                rows, speed = watch.speed()
            finally:
                bed.spark.streams.removeListener(watch)
            (theirs if plain else ours).append(speed / (_HOSTS * CORES))
            for checked in shipped.check(bed.spark, folder):
                if checked.wrong:
                    bed.say(f"{shipped.name}: {checked}")
                    correct[plain] = False
    mine, other = statistics.median(ours), statistics.median(theirs)
    return Result(
        application=shipped.name,
        rows=rows,
        springtide_rows_per_s=mine,
        plain_rows_per_s=other,
        ratio=mine / other,
        correct=correct[False],
        plain_correct=correct[True],
    )


def _run_ours(bed: Bed, shipped: ShippedApplication, folder: Path) -> None:
    live = LiveRun(
        application=shipped.application(folder),
        pool=pool_of(CORES, MEMORY_MB * 2**20, _HOSTS, _HOSTS),
        policy=Static(replicas=_HOSTS),
        policy_name=Static.name,
        folder=str(folder),
        hosts=_HOSTS,
        interval_s=2.0,
    )
    result = live.run(bed.spark, until_drained=True, silence_s=6.0)
    for name, why in result.failures.items():
        raise SpringtideError(f"{shipped.name}: operator {name!r} has stopped: {why}")


def _run_plain(bed: Bed, shipped: ShippedApplication, folder: Path) -> None:
    with plainly_running(bed.spark, shipped.application(folder), folder / "plain") as queries:
        for query in queries:
            query.processAllAvailable()


class _Watch(StreamingQueryListener):
    """What Spark tells of every batch with rows."""

    def __init__(self) -> None:
        self._batches: list[ToldBatch] = []
        self._heard_s = time.monotonic()

    def onQueryStarted(self, event: QueryStartedEvent) -> None: ...

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None: ...

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        if progress.numInputRows:
            began_s = datetime.fromisoformat(progress.timestamp).timestamp()
            self._batches.append(
                ToldBatch(
                    query=str(progress.id),
                    ended_s=began_s + progress.batchDuration / 1000,
                    rows=progress.numInputRows,
                    from_replay=any("started_at" in str(source.endOffset) for source in progress.sources),
                )
            )
        self._heard_s = time.monotonic()

    def speed(self) -> tuple[int, float]:
        while time.monotonic() - self._heard_s < 2.0:  # Spark tells with a delay
            time.sleep(0.1)
        return speed_of(self._batches)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldBatch:
    """A batch: its query, when it ended, its rows, and whether those came from the replay or from another query."""

    query: str
    ended_s: float
    rows: int
    from_replay: bool


def speed_of(batches: Sequence[ToldBatch]) -> tuple[int, float]:
    """Rows of the replay, and how many of them a second went through from the moment on at which every query that reads it had
    ended its first batch. Where several read it, those count that the one with most left had left then."""
    readers: dict[str, list[ToldBatch]] = {}
    for batch in batches:
        if batch.from_replay:
            readers.setdefault(batch.query, []).append(batch)
    if not readers or min(map(len, readers.values())) < 2:
        fewest = min(map(len, readers.values()), default=0)
        raise SpringtideError(f"there were {fewest} batches, which says nothing: measure more rows")
    begun_s = max(min(batch.ended_s for batch in told) for told in readers.values())
    left = max(sum(batch.rows for batch in told if batch.ended_s > begun_s) for told in readers.values())
    end_s = max(batch.ended_s for batch in batches)
    return max(sum(batch.rows for batch in told) for told in readers.values()), left / (end_s - begun_s)
