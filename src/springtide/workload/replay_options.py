"""The options of the replay source: what they may be, as text and as values, and what they load."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from io import BytesIO
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from springtide.errors import InvalidValue, SpringtideError, nearest, require
from springtide.model.application import KeyDistribution
from springtide.workload.loading import load
from springtide.workload.making import RowMaker
from springtide.workload.rows import ReplayedRows, cumulative_rows
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

OWN_COLUMNS = 2  # columns that every row has: `row`, `offered_at`

_INLINE = "inline:"  # before a trace that is itself written into the option
EVENLY = KeyDistribution()


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
    keys: int = EVENLY.keys
    zipf: float = EVENLY.zipf
    shuffles_per_minute: float = EVENLY.shuffles_per_minute
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
        return StructType([*SCHEMA.fields[:OWN_COLUMNS], *from_arrow_schema(maker.schema).fields])

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


def written(trace: str | Trace) -> str:
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


def pickled(maker: RowMaker | None) -> str | None:
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
