"""The replay of a trace as a source of Spark's, on its Python Data Source API: as a stream, and as a batch.

Rules: an offset is `{"row": n, "started_at": s}`: the rows before n have been read, and row 0's clock started at s,
in seconds since 1970. The start is decided once, when a query starts for the first time, and every offset carries it
on, so that a query that is restarted from its checkpoint goes on with the same replay. Rows are a pure function of
their number (see `rows`): whatever is read again is the same. What is offered but not yet read is the query's lag:
`latestOffset` less `endOffset` of the progress, in "row".

Tasks get all they need with their partition, which holds no more of the trace than its own rows span. Only the
reader on the driver's machine loads the trace.

    spark.readStream.format("springtide-replay").option("trace", "generator:steps").option("speedUp", 10).load()

Rows have a key, a value and a payload, or the columns of a `RowMaker`, which the option `madeBy` carries pickled.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from springtide.errors import require
from springtide.model.observation import FloatArray
from springtide.workload.making import RowMaker
from springtide.workload.replay_options import ARROW_SCHEMA, OWN_COLUMNS, SOURCE, ReplayOptions
from springtide.workload.rows import ByteArray, ReplayedRows

_US_PER_S = 1_000_000

# Of one Arrow batch: enough to be fast, and little enough to be held by every task at once.
_BATCH_ROWS = 65_536
_BATCH_PAYLOAD_BYTES = 2**24


class ReplaySource(DataSource):
    """The source as Spark knows it. Its options are those of `ReplayOptions`."""

    @classmethod
    def name(cls) -> str:
        return SOURCE

    def schema(self) -> StructType:
        return self._options().schema()  # refuses a bad option when the stream is defined, not only when it is started

    def reader(self, schema: StructType) -> ReplayReader:
        return ReplayReader(self._own(schema))

    def streamReader(self, schema: StructType) -> ReplayStreamReader:
        return ReplayStreamReader(self._own(schema))

    def _own(self, schema: StructType) -> ReplayOptions:
        options = self._options()
        require(schema == options.schema(), f"{SOURCE}: the source has a schema of its own; leave out .schema(...)")
        return options

    def _options(self) -> ReplayOptions:
        return ReplayOptions.parsed(self.options)


@dataclass(frozen=True, kw_only=True)
class ReplayPartition(InputPartition):
    """The rows from `first` on and before `after`, and as much of the curve as they need."""

    rows: ReplayedRows
    first: int
    after: int
    started_at: float


class ReplayReader(DataSourceReader):
    """Reads all rows of the trace, or those before `until_row`."""

    def __init__(self, options: ReplayOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        rows = self._options.rows()
        until = rows.total_rows if self._options.until_row is None else min(self._options.until_row, rows.total_rows)
        started_at = self._options.started_at or 0.0
        # Spark makes up a partition of its own where there is none.
        return _partitions(rows, 0, until, started_at, self._options.partitions) or [_partition(rows, 0, 0, started_at)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _arrow_batches(partition, self._options.maker())


class ReplayStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the rows that have been offered by now: one instance on the driver's machine plans, one in every task reads."""

    def __init__(self, options: ReplayOptions, clock: Callable[[], float] = time.time) -> None:
        self._options = options
        self._clock = clock
        self._started_at: float | None = None
        self._ends_at = math.inf

    def __reduce__(self) -> tuple[type[ReplayStreamReader], tuple[ReplayOptions, Callable[[], float]]]:
        # A task gets its rows with its partition: the loaded trace must not travel with the reader.
        return type(self), (self._options, self._clock)

    @cached_property
    def _rows(self) -> ReplayedRows:
        # Kept by the reader and not by the module: a Python process serves one query after another, and files change.
        return self._options.rows()

    def initialOffset(self) -> dict[str, Any]:
        if self._started_at is None:
            self._started_at = self._clock() if self._options.started_at is None else self._options.started_at
        return _offset(0, self._started_at)

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self._options.max_rows_per_batch
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:
        self._ends_at = self._clock()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        self._started_at = start["started_at"]
        # A clock that is set back must not take rows back.
        row = max(start["row"], self._offered(start["started_at"]))
        if isinstance(limit, ReadMaxRows):
            row = min(row, start["row"] + limit.max_rows)
        return _offset(row, start["started_at"])

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return None if self._started_at is None else _offset(self._offered(self._started_at), self._started_at)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        # Before the first batch is committed, Spark asks for the initial offset anew after a restart: its start is
        # another, and that of the end is the one that was decided.
        self._started_at = end["started_at"]
        require(
            end["row"] <= self._rows.total_rows,
            f"{SOURCE}: the query's checkpoint is at row {end['row']}, but the trace ends with row {self._rows.total_rows}; "
            "restart it with the trace and options it was started with, or with a new checkpoint",
        )
        return _partitions(self._rows, start["row"], end["row"], end["started_at"], self._options.partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _arrow_batches(partition, self._options.maker())

    def _offered(self, started_at: float) -> int:
        return self._rows.rows_before(min(self._clock(), self._ends_at) - started_at)


def _offset(row: int, started_at: float) -> dict[str, Any]:
    return {"row": row, "started_at": started_at}


def _partitions(rows: ReplayedRows, first: int, after: int, started_at: float, count: int) -> list[InputPartition]:
    edges = [first + (after - first) * part // count for part in range(count + 1)]
    return [_partition(rows, begin, end, started_at) for begin, end in pairwise(edges) if begin < end]


def _partition(rows: ReplayedRows, first: int, after: int, started_at: float) -> ReplayPartition:
    return ReplayPartition(rows=rows.between(first, after), first=first, after=after, started_at=started_at)


def _arrow_batches(partition: InputPartition, maker: RowMaker | None = None) -> Iterator[pa.RecordBatch]:
    assert isinstance(partition, ReplayPartition)
    step = max(1, min(_BATCH_ROWS, _BATCH_PAYLOAD_BYTES // max(1, partition.rows.payload_bytes)))
    for first in range(partition.first, partition.after, step):
        after = min(first + step, partition.after)
        yield _own_rows(partition, first, after) if maker is None else _made_rows(partition, maker, first, after)


def _own_rows(partition: ReplayPartition, first: int, after: int) -> pa.RecordBatch:
    columns = partition.rows.batch(first, after)
    arrays = [
        pa.array(columns["row"]),
        _stamps(partition, columns["offered_at_s"]),
        pa.array(columns["key"]),
        pa.array(columns["value"]),
        _strings(columns["payload"]),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW_SCHEMA)


def _made_rows(partition: ReplayPartition, maker: RowMaker, first: int, after: int) -> pa.RecordBatch:
    rows = np.arange(first, after, dtype=np.int64)
    offered_at_s = partition.rows.offered_at_s(rows)
    made = maker.made(first, after, offered_at_s * partition.rows.speed_up)
    require(made.num_rows == len(rows), f"{SOURCE}: of the rows {first} to {after} its maker has made {made.num_rows}")
    arrays = [column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in made.columns]
    schema = pa.schema([ARROW_SCHEMA.field(i) for i in range(OWN_COLUMNS)] + list(made.schema))
    return pa.RecordBatch.from_arrays([pa.array(rows), _stamps(partition, offered_at_s), *arrays], schema=schema)


def _stamps(partition: ReplayPartition, offered_at_s: FloatArray) -> pa.Array:
    """The sum is taken in whole microseconds: as a float, seconds since 1970 are no more precise than that."""
    offered_us = round(partition.started_at * _US_PER_S) + np.rint(offered_at_s * _US_PER_S).astype(np.int64)
    return pa.array(offered_us.view("datetime64[us]"), ARROW_SCHEMA.field("offered_at").type)


def _strings(lines: ByteArray) -> pa.StringArray:
    """Each line as a string, without making Python objects of them."""
    count, length = lines.shape
    ends = np.arange(count + 1, dtype=np.int32) * np.int32(length)
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(lines))
