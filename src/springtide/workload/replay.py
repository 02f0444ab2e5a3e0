"""A streaming source that replays a trace, on Spark's Python Data Source API; and the same rows as a batch.

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

import base64
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from io import BytesIO
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from springtide.errors import InvalidValue, SpringtideError, nearest, require
from springtide.model.application import KeyDistribution
from springtide.model.observation import FloatArray
from springtide.workload.loading import load
from springtide.workload.making import RowMaker
from springtide.workload.rows import ByteArray, ReplayedRows, cumulative_rows
from springtide.workload.traces import Trace

SOURCE = "springtide-replay"

SCHEMA = StructType(
    [
        StructField("row", LongType()),
        StructField("offered_at", TimestampType()),
        StructField("key", LongType()),
        StructField("value", LongType()),
        StructField("payload", StringType()),
    ]
)

# Spark refuses any other than the types it would choose itself.
ARROW_SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("offered_at", pa.timestamp("us", tz="UTC")),
        ("key", pa.int64()),
        ("value", pa.int64()),
        ("payload", pa.string()),
    ]
)

_OWN = 2  # columns that every row has: `row`, `offered_at`

_INLINE = "inline:"  # before a trace that is itself written into the option
_EVENLY = KeyDistribution()
_US_PER_S = 1_000_000

# Of one Arrow batch: enough to be fast, and little enough to be held by every task at once.
_BATCH_ROWS = 65_536
_BATCH_PAYLOAD_BYTES = 2**24


@dataclass(frozen=True, slots=True)
class _Kind:
    """What an option may be."""

    wanted: str
    parse: Callable[[str], Any]
    accepts: Callable[[Any], bool]


_TEXT = _Kind("a file or generator:NAME", str, bool)
_FROM_0 = _Kind("a number, 0 or more", float, lambda value: 0 <= value < math.inf)
_ABOVE_0 = _Kind("a number above 0", float, lambda value: 0 < value < math.inf)
_WHOLE_FROM_0 = _Kind("a whole number, 0 or more", int, lambda value: isinstance(value, Integral) and int(value) >= 0)
_WHOLE_FROM_1 = _Kind("a whole number, 1 or more", int, lambda value: isinstance(value, Integral) and int(value) >= 1)

_KINDS: Mapping[str, _Kind] = {
    "trace": _TEXT,
    "speed_up": _ABOVE_0,
    "keys": _WHOLE_FROM_1,
    "zipf": _FROM_0,
    "shuffles_per_minute": _FROM_0,
    "payload_bytes": _WHOLE_FROM_0,
    "seed": _WHOLE_FROM_0,
    "partitions": _WHOLE_FROM_1,
    "max_rows_per_batch": _WHOLE_FROM_1,
    "scale": _FROM_0,
    "peak": _ABOVE_0,
    "started_at": _FROM_0,
    "until_row": _WHOLE_FROM_0,
    "made_by": _TEXT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """The options of the source. Spark's users write them in camel case: `speed_up` is the option `speedUp`.

    `trace` is a file or `generator:NAME[:PARAMETER=VALUE,...]`; `scale` multiplies it, `peak` is the rate per second of
    the trace's own time that its busiest step is scaled to. `speed_up` seconds of the trace pass in one of the replay.
    `keys`, `zipf` and `shuffles_per_minute` make a `KeyDistribution`. `partitions` are the tasks of a batch.

    `started_at` (seconds since 1970) is when the replay starts. Without it, a new query starts it at once; a batch
    takes 0. A query with a checkpoint keeps the start it has. `until_row` is for batches only, `max_rows_per_batch`
    for streams only. `made_by` is a pickled `RowMaker`.
    """

    trace: str
    speed_up: float = 1.0
    keys: int = _EVENLY.keys
    zipf: float = _EVENLY.zipf
    shuffles_per_minute: float = _EVENLY.shuffles_per_minute
    payload_bytes: int = 0
    seed: int = 0
    partitions: int = 2
    max_rows_per_batch: int | None = None
    scale: float | None = None
    peak: float | None = None
    started_at: float | None = None
    until_row: int | None = None
    made_by: str | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            kind, value = _KINDS[field.name], getattr(self, field.name)
            if value is not None and not kind.accepts(value):
                raise _refusal(field.name, value)
        require(
            self.scale is None or self.peak is None,
            f"{SOURCE}: the options scale and peak exclude one another; give one of them",
        )

    @staticmethod
    def parsed(texts: Mapping[str, str]) -> ReplayOptions:
        """The options as Spark hands them over: text, under names in any case."""
        names = {_option(name).lower(): name for name in _KINDS}
        given: dict[str, Any] = {}
        for key, text in texts.items():
            name = names.get(key.lower())
            if name is None:
                raise InvalidValue(f"{SOURCE}: there is no option {key!r}; {nearest(key, map(_option, _KINDS))}")
            try:
                given[name] = _KINDS[name].parse(text)
            except ValueError:
                raise _refusal(name, text) from None
        require("trace" in given, f"{SOURCE}: the option trace is missing; give {_TEXT.wanted}")
        return ReplayOptions(**given)

    def texts(self) -> dict[str, str]:
        """What `parsed` makes these options of."""
        return {_option(name): str(value) for name, value in asdict(self).items() if value is not None}

    def maker(self) -> RowMaker | None:
        """Who makes the rows, if not the replay itself."""
        if self.made_by is None:
            return None
        maker: RowMaker = cloudpickle.loads(base64.b64decode(self.made_by))
        return maker

    def schema(self) -> StructType:
        maker = self.maker()
        if maker is None:
            return SCHEMA
        return StructType([*SCHEMA.fields[:_OWN], *from_arrow_schema(maker.schema).fields])

    def rows(self) -> ReplayedRows:
        """Load the trace: this may read a file, and takes its time."""
        trace = self._loaded()
        return ReplayedRows(
            step_s=trace.step_s,
            cumulative=cumulative_rows(trace),
            speed_up=self.speed_up,
            keys=KeyDistribution(keys=self.keys, zipf=self.zipf, shuffles_per_minute=self.shuffles_per_minute),
            payload_bytes=self.payload_bytes,
            seed=self.seed,
        )

    def _loaded(self) -> Trace:
        try:
            trace = _written_out(self.trace) if self.trace.startswith(_INLINE) else load(self.trace, seed=self.seed)
            trace = trace if self.scale is None else trace.scaled(self.scale)
            return trace if self.peak is None else trace.scaled_to_peak(self.peak)
        except SpringtideError as error:
            raise InvalidValue(f"{SOURCE}: option trace: {error}") from None


_WAITING: ContextVar[int | None] = ContextVar("waiting", default=None)
_LONG_AGO = 0.0
_DEFAULTS = ReplayOptions(trace="generator:")


def replay(  # noqa: PLR0913 - one parameter is one option
    spark: SparkSession,
    trace: str | Trace,
    *,
    speed_up: float = _DEFAULTS.speed_up,
    keys: KeyDistribution = _EVENLY,
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
        made_by=_pickled(rows),
        trace=_written(trace),
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
    keys: KeyDistribution = _EVENLY,
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
        made_by=_pickled(rows),
        trace=_written(trace),
        speed_up=speed_up,
        **asdict(keys),
        payload_bytes=payload_bytes,
        seed=seed,
        partitions=partitions,
        started_at=started_at,
        until_row=until_row,
    )
    return spark.read.format(_registered(spark, options)).options(**options.texts()).load()


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
    schema = pa.schema([ARROW_SCHEMA.field(i) for i in range(_OWN)] + list(made.schema))
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


def _registered(spark: SparkSession, options: ReplayOptions) -> str:
    """Register the source. What is wrong with a trace is said here, not by a Python worker with its traceback."""
    options.rows()
    spark.dataSource.register(ReplaySource)
    return SOURCE


def _written(trace: str | Trace) -> str:
    """The trace as an option. A path is made absolute: the reader's process may have another working directory."""
    if isinstance(trace, str):
        return str(Path(trace).absolute()) if trace and Path(trace).exists() else trace
    file = BytesIO()
    np.savez_compressed(file, name=trace.name, step_s=trace.step_s, counts=trace.counts)
    return _INLINE + base64.b64encode(file.getvalue()).decode("ascii")


def _written_out(text: str) -> Trace:
    try:
        with np.load(BytesIO(base64.b64decode(text.removeprefix(_INLINE), validate=True)), allow_pickle=False) as file:
            return Trace(name=str(file["name"]), step_s=float(file["step_s"]), counts=file["counts"])
    except (OSError, ValueError, KeyError, EOFError, AttributeError) as error:
        raise InvalidValue(f"the trace written into it cannot be read ({error}); pass a Trace to replay()") from None


def _pickled(maker: RowMaker | None) -> str | None:
    return None if maker is None else base64.b64encode(cloudpickle.dumps(maker)).decode("ascii")  # type: ignore[no-untyped-call]


def _option(name: str) -> str:
    """The name of an option as Spark's users write it.

    >>> _option("speed_up")
    'speedUp'
    """
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _refusal(name: str, value: object) -> InvalidValue:
    return InvalidValue(f"{SOURCE}: option {_option(name)} must be {_KINDS[name].wanted}, not {value!r}")
