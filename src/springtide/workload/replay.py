"""A stream that replays a trace, and the same rows as a batch: the exact answer to compare with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, replace

from pyspark.sql import DataFrame, SparkSession

from springtide.model.application import KeyDistribution
from springtide.workload.making import RowMaker
from springtide.workload.replay_options import EVENLY, SOURCE, ReplayOptions, pickled, written
from springtide.workload.replay_source import ReplaySource
from springtide.workload.traces import Trace

_WAITING: ContextVar[int | None] = ContextVar("waiting", default=None)
_LONG_AGO = 0.0
_DEFAULTS = ReplayOptions(trace="generator:")


def replay(  # noqa: PLR0913 - one parameter is one option
    spark: SparkSession,
    trace: str | Trace,
    *,
    speed_up: float = _DEFAULTS.speed_up,
    keys: KeyDistribution = EVENLY,
    payload_bytes: int = _DEFAULTS.payload_bytes,
    seed: int = _DEFAULTS.seed,
    partitions: int = _DEFAULTS.partitions,
    max_rows_per_batch: int | None = None,
    started_at: float | None = None,
    rows: RowMaker | None = None,
) -> DataFrame:
    """A stream of the trace's rows, each from the moment on at which it is offered; see `ReplayOptions`.

    With `rows` they have its columns after `row` and `offered_at`, and `keys`, `payload_bytes` and `seed` mean nothing to them.
    """
    options = ReplayOptions(
        made_by=pickled(rows),
        trace=written(trace),
        speed_up=speed_up,
        **asdict(keys),
        payload_bytes=payload_bytes,
        seed=seed,
        partitions=partitions,
        max_rows_per_batch=max_rows_per_batch,
        started_at=started_at,
    )
    waiting = _WAITING.get()
    if waiting is not None:
        options = replace(options, started_at=_LONG_AGO, max_rows_per_batch=waiting)
    return spark.readStream.format(_registered(spark, options)).options(**options.texts()).load()


@contextmanager
def waiting_replays(*, max_rows_per_batch: int) -> Iterator[None]:
    """Within it, streams are replayed that have begun long ago: all their rows wait, and come so many at a time."""
    before = _WAITING.set(max_rows_per_batch)
    try:
        yield
    finally:
        _WAITING.reset(before)


def replayed(  # noqa: PLR0913 - one parameter is one option
    spark: SparkSession,
    trace: str | Trace,
    *,
    speed_up: float = _DEFAULTS.speed_up,
    keys: KeyDistribution = EVENLY,
    payload_bytes: int = _DEFAULTS.payload_bytes,
    seed: int = _DEFAULTS.seed,
    partitions: int = _DEFAULTS.partitions,
    started_at: float | None = None,
    until_row: int | None = None,
    rows: RowMaker | None = None,
) -> DataFrame:
    """All rows that `replay` offers with the same arguments, or those before `until_row`, as a batch: the exact answer.

    `offered_at` is the same as in a stream when `started_at` is: a stream's is in its offsets.
    """
    options = ReplayOptions(
        made_by=pickled(rows),
        trace=written(trace),
        speed_up=speed_up,
        **asdict(keys),
        payload_bytes=payload_bytes,
        seed=seed,
        partitions=partitions,
        started_at=started_at,
        until_row=until_row,
    )
    return spark.read.format(_registered(spark, options)).options(**options.texts()).load()


def _registered(spark: SparkSession, options: ReplayOptions) -> str:
    """Register the source. What is wrong with a trace is said here, not by a Python worker with its traceback."""
    options.rows()
    spark.dataSource.register(ReplaySource)
    return SOURCE
