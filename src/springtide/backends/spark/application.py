"""What a user writes: sources, operators that are functions DataFrame -> DataFrame, and sinks.

    app = Application("clicks", slo=SLO(latency_s=5))
    events = app.source("events", read_events)
    parsed = app.operator("parse", parse, events)
    counts = app.operator("count", count, parsed, shards=8, output_mode="update")
    app.sink(counts, save)

Nothing runs here; what can be refused without Spark is refused when it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from springtide.errors import InvalidValue, SpringtideError, nearest, require
from springtide.model.application import SLO, Grouping

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Read = Callable[["SparkSession"], "DataFrame"]
Transform = Callable[..., "DataFrame"]
Save = Callable[["DataFrame", int], None]

OUTPUT_MODES = ("append", "update", "complete")


class OnError(StrEnum):
    """What becomes of a row that makes an operator's function fail."""

    FAIL = "fail"  # the operator stops with the function's own error
    DEAD_LETTER = "dead-letter"  # the row is set aside with the reason, the others go on


class ExternalEdge(Protocol):
    """A stream of the user's own in the place of an edge: see `edges.own` for a table and a Kafka topic.

    `write` is called at least once per batch id; whether a repeated one leaves rows twice is in its hands. It may have
    an `ingest_time`: the name of the column that says when a row entered the application.
    """

    def write(self, df: DataFrame, batch_id: int) -> None: ...

    def read(self, spark: SparkSession) -> DataFrame: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceNode:
    """`ingest_time` names the column that says when a row entered; without one a row enters when its batch begins."""

    name: str
    read: Read
    ingest_time: str | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OperatorNode:
    """One operator as the user gave it. `shards` is 0 for one without state or key."""

    name: str
    function: Transform
    inputs: tuple[str, ...]
    shards: int
    grouping: Grouping
    key: tuple[str, ...]
    replicas: int
    max_replicas: int
    output_mode: str
    fuse: bool
    max_rows_per_batch: int | None
    on_error: OnError
    edge: ExternalEdge | None

    @property
    def stateful(self) -> bool:
        """Keyed grouping of an operator without state needs a key; state brings its own, in the user's function."""
        return self.shards > 0 and not self.key


@dataclass(frozen=True, slots=True, eq=False)
class Inlined:
    """An operator without a query of its own: a function of these inputs, which whoever reads it applies first."""

    function: Transform
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Composed:
    """A function of the inputs of all its parts; a part makes one argument of some inputs, or is None for an input as it is."""

    function: Transform
    parts: tuple[Inlined | None, ...]

    def __call__(self, *inputs: DataFrame) -> DataFrame:
        left = list(inputs)
        arguments = []
        for part in self.parts:
            taken = [left.pop(0) for _ in range(1 if part is None else len(part.inputs))]
            arguments.append(taken[0] if part is None else part.function(*taken))
        return self.function(*arguments)


@dataclass(frozen=True, slots=True)
class Stream:
    """What a source or an operator gives, to be named as an input."""

    name: str


@dataclass
class Application:
    """Sources, operators and sinks under construction. See the module's text for an example."""

    name: str
    slo: SLO = field(default_factory=SLO)
    trigger_s: float = 0.0
    sources: dict[str, SourceNode] = field(default_factory=dict)
    operators: dict[str, OperatorNode] = field(default_factory=dict)
    sinks: dict[str, list[Save]] = field(default_factory=dict)
    inlined: dict[str, Inlined] = field(default_factory=dict)
    _applied: set[str] = field(default_factory=set)  # names of those inlined that somebody reads

    def __post_init__(self) -> None:
        _check_name(self.name, "an application")
        require(self.trigger_s >= 0, f"application {self.name!r}: trigger_s must be 0 or more, not {self.trigger_s}")

    def source(self, name: str, read: Read, *, ingest_time: str | None = None) -> Stream:
        """A stream to start from: `read(spark)` gives a streaming DataFrame."""
        self._check_new(name)
        _check_callable(read, f"source {name!r}", "spark")
        self.sources[name] = SourceNode(name=name, read=read, ingest_time=ingest_time)
        return Stream(name)

    def operator(  # noqa: PLR0913 - one keyword for each choice, all with a default
        self,
        name: str,
        function: Transform,
        *inputs: Stream,
        shards: int | None = None,
        grouping: str = "shuffle",
        key: str | Sequence[str] = (),
        replicas: int = 1,
        max_replicas: int = 64,
        output_mode: str = "append",
        fuse: bool = True,
        max_rows_per_batch: int | None = None,
        on_error: str = "fail",
        edge: ExternalEdge | None = None,
        inline: bool = False,
    ) -> Stream:
        """A function of one or more streaming DataFrames.

        shards: give it to an operator that keeps state (a window, a de-duplication, `applyInPandasWithState`, ...): the number
            of slices of its key space, fixed at the first start.
        grouping: how rows of an operator without state reach its replicas: `shuffle`, `load_balanced`, or `key` with the
            column(s) in `key`.
        fuse: run in one query with the operator before it, where no shuffle lies between them.
        on_error: `dead-letter` sets aside rows that make the function fail, for operators without state.
        edge: a stream of your own in the place of the edge behind this operator.
        inline: for a cheap function without state: it gets no query, replicas or edge of its own, but runs in the query of each
            operator that reads it, before that one's shuffle. The other options are not for such an operator.
        """
        where = f"operator {name!r}"
        self._check_new(name)
        _check_callable(function, where, ", ".join(["DataFrame"] * max(1, len(inputs))))
        require(bool(inputs), f"{where} has no input: name the streams it reads after its function")
        for stream in inputs:
            known = [*self.sources, *self.operators, *self.inlined]
            if not isinstance(stream, Stream) or stream.name not in known:
                shown = stream.name if isinstance(stream, Stream) else stream
                raise InvalidValue(
                    f"{where}: the input {shown!r} is not a stream of this application; {nearest(str(shown), known)}"
                )
        keys = (key,) if isinstance(key, str) else tuple(key)
        applied, read = self._with_inlined(function, [s.name for s in inputs])
        node = OperatorNode(
            name=name,
            function=applied,
            inputs=read,
            shards=_shards(shards, keys, where),
            grouping=_grouping(grouping, shards, keys, where),
            key=keys,
            replicas=replicas,
            max_replicas=max_replicas,
            output_mode=output_mode,
            fuse=fuse,
            max_rows_per_batch=max_rows_per_batch,
            on_error=_member(OnError, on_error, f"{where}: on_error"),
            edge=edge,
        )
        _check_operator(node, where)
        if inline:
            _check_inline(node, where)
            self.inlined[name] = Inlined(applied, read)
        else:
            self.operators[name] = node
        return Stream(name)

    def _with_inlined(self, function: Transform, names: Sequence[str]) -> tuple[Transform, tuple[str, ...]]:
        """The function that begins with what is inlined before it, and what that reads."""
        parts = tuple(self.inlined.get(name) for name in names)
        if not any(parts):
            return function, tuple(names)
        self._applied.update(name for name in names if name in self.inlined)
        read = [i for name, part in zip(names, parts, strict=True) for i in ((name,) if part is None else part.inputs)]
        return _Composed(function, parts), tuple(read)

    def sink(self, stream: Stream, save: Save) -> None:
        """Where a stream ends: `save(df, batch_id)`, as for Spark's `foreachBatch`, and with the same promise: a batch may
        come again after a failure, with the same id and the same rows."""
        if not isinstance(stream, Stream):
            raise InvalidValue(f"a sink takes the stream that app.operator(...) returns, not {str(stream)[:40]!r}")
        require(
            stream.name not in self.inlined,
            f"a sink cannot take {stream.name!r}, which is inline and runs in other operators' queries: leave inline=True out",
        )
        require(
            stream.name in self.operators,
            f"a sink takes the stream of an operator, not {stream.name!r}: put an operator between the source and the sink",
        )
        _check_callable(save, f"sink of {stream.name!r}", "df, batch_id")
        self.sinks.setdefault(stream.name, []).append(save)

    def check(self) -> None:
        """Refuse an application that could not run."""
        require(bool(self.operators), f"application {self.name!r} has no operator")
        read = {i for o in self.operators.values() for i in o.inputs}
        for name in self.sources:
            require(name in read, f"source {name!r} feeds nobody: name it as an operator's input, or leave it out")
        for name in self.inlined:
            require(
                name in self._applied, f"operator {name!r} is inline and nobody reads it: let another read it, or leave it out"
            )
        for name in self.operators:
            require(
                name in read or name in self.sinks, f"operator {name!r} leads nowhere: give it a sink, or let another read it"
            )

    def _check_new(self, name: str) -> None:
        _check_name(name, "a source or operator")
        require(
            name not in self.sources and name not in self.operators and name not in self.inlined,
            f"the name {name!r} is used twice in application {self.name!r}",
        )


def _check_name(name: str, what: str) -> None:
    """Names become folders and query names."""
    fine = bool(name) and all(c.isalnum() or c in "-_." for c in name) and not name.startswith(".")
    require(fine, f"{name!r} cannot be the name of {what}: use letters, digits, '-', '_' and '.'")


def _check_callable(value: object, where: str, takes: str) -> None:
    if not callable(value):
        raise SpringtideError(f"{where}: expected a function of ({takes}), not {repr(value).splitlines()[0]:.60}")


def _check_operator(node: OperatorNode, where: str) -> None:
    require(node.replicas >= 1, f"{where}: replicas must be at least 1, not {node.replicas}")
    require(
        node.max_replicas >= node.replicas, f"{where}: max_replicas ({node.max_replicas}) is below replicas ({node.replicas})"
    )
    limit = node.max_rows_per_batch
    require(limit is None or limit >= 1, f"{where}: max_rows_per_batch must be at least 1, not {limit}")
    if node.output_mode not in OUTPUT_MODES:
        raise InvalidValue(f"{where}: output_mode cannot be {node.output_mode!r}; {nearest(node.output_mode, OUTPUT_MODES)}")
    require(
        node.on_error is OnError.FAIL or (not node.stateful and len(node.inputs) == 1),
        f"{where}: rows can be set aside only by an operator without state and with one input:"
        " put what may fail (parsing, say) into an operator of its own before it",
    )


def _check_inline(node: OperatorNode, where: str) -> None:
    plain = replace(
        node,
        shards=0,
        grouping=Grouping.SHUFFLE,
        key=(),
        replicas=1,
        output_mode="append",
        fuse=True,
        max_rows_per_batch=None,
        on_error=OnError.FAIL,
        edge=None,
    )
    wrong = [f.name for f in fields(node) if getattr(node, f.name) != getattr(plain, f.name)]
    require(not wrong, f"{where}: it is inline and has no query of its own, so leave out {', '.join(wrong)}")


def _shards(shards: int | None, key: tuple[str, ...], where: str) -> int:
    if shards is None:
        return 64 if key else 0
    require(shards >= 1, f"{where}: shards must be at least 1, not {shards}")
    return shards


def _grouping(text: str, shards: int | None, key: tuple[str, ...], where: str) -> Grouping:
    grouping: Grouping = _member(Grouping, text, f"{where}: grouping")
    if key:
        fits = grouping in (Grouping.KEY, Grouping.SHUFFLE)
        require(fits, f"{where}: with key= rows are grouped by that key, not by {text!r}: leave one of them out")
    if key or grouping is Grouping.KEY:
        require(bool(key) or shards is not None, f"{where}: key grouping needs the column(s) in key=")
        return Grouping.KEY
    if shards is not None:
        require(grouping is Grouping.SHUFFLE, f"{where}: an operator with shards is grouped by its own key, not by {text!r}")
        return Grouping.KEY
    require(grouping is not Grouping.SHARED, f"{where}: the grouping 'shared' exists in the simulator only")
    return grouping


def _member(kind: Any, text: str, where: str) -> Any:
    known = [m.value for m in kind]
    if text not in known:
        raise InvalidValue(f"{where} cannot be {text!r}; {nearest(text, known)}")
    return kind(text)
