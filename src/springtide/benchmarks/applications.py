"""How fast the applications are that come with Springtide: beside the same functions as plain queries, without it.

All rows wait when a run begins, and are read as fast as can be, on the same executors. A figure is rows per second and core
from the end of the first batch, in which everything is compiled, to the end of the last one.
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
    """What Spark tells of every batch with rows: when it began and ended, and how many."""

    def __init__(self) -> None:
        self._batches: list[tuple[float, float, int, bool]] = []
        self._heard_s = time.monotonic()

    def onQueryStarted(self, event: QueryStartedEvent) -> None: ...

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None: ...

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        if progress.numInputRows:
            began_s = datetime.fromisoformat(progress.timestamp).timestamp()
            from_replay = any("started_at" in str(source.endOffset) for source in progress.sources)
            self._batches.append((began_s, began_s + progress.batchDuration / 1000, progress.numInputRows, from_replay))
        self._heard_s = time.monotonic()

    def speed(self) -> tuple[int, float]:
        """Rows of the source, and how many of them a second went through after the first batch."""
        while time.monotonic() - self._heard_s < 2.0:  # Spark tells with a delay
            time.sleep(0.1)
        from_replay = sorted(batch for batch in self._batches if batch[3])
        if len(from_replay) < 2:
            raise SpringtideError(f"there were {len(from_replay)} batches, which says nothing: measure more rows")
        first, *others = from_replay
        end_s = max(ended_s for _, ended_s, _, _ in self._batches)
        rows = sum(rows for _, _, rows, _ in others)
        return first[2] + rows, rows / (end_s - first[1])
