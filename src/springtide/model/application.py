"""An application: sources, operators and edges that form a DAG, and a service-level objective.

Values here describe what the user runs, never how it is placed (see `allocation`) or how it behaves (see `observation`).
They check themselves when built, so every later stage may rely on them.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from springtide.errors import InvalidValue, nearest, require


class Grouping(StrEnum):
    """How an operator's rows are spread over its replicas."""

    SHUFFLE = "shuffle"  # evenly over the replicas, blind to their load
    KEY = "key"  # by hash(key) mod shards; a replica serves a group of shards
    LOAD_BALANCED = "load_balanced"  # to the least utilised replica (PSPS, Algorithm 1)
    SHARED = "shared"  # one queue for all replicas (the M/M/k of Elasticutor's model)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyDistribution:
    """How often each key occurs: Zipf frequencies whose order is shuffled now and then.

    `zipf` is the exponent (0 is uniform); `shuffles_per_minute` is Elasticutor's omega.
    """

    keys: int = 10_000
    zipf: float = 0.0
    shuffles_per_minute: float = 0.0

    def __post_init__(self) -> None:
        require(self.keys >= 1, f"keys must be at least 1, not {self.keys}")
        require(_finite(self.zipf) and self.zipf >= 0, f"zipf must be 0 or more, not {self.zipf}")
        require(
            _finite(self.shuffles_per_minute) and self.shuffles_per_minute >= 0,
            f"shuffles_per_minute must be 0 or more, not {self.shuffles_per_minute}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """The unit that is scaled.

    `service_time_s` is the core time one row takes. Only a key-grouped operator has shards; their number never
    changes. `queue_rows` bounds the rows that may wait for the operator; what comes beyond is dropped and counted.
    """

    name: str
    service_time_s: float
    grouping: Grouping = Grouping.KEY
    shards: int = 16
    max_replicas: int = 64
    state_bytes_per_shard: int = 0
    row_bytes: int = 128
    memory_bytes: int = 0
    queue_rows: float = math.inf
    keys: KeyDistribution = field(default_factory=KeyDistribution)

    def __post_init__(self) -> None:
        require(bool(self.name), "an operator needs a name")
        require(
            _finite(self.service_time_s) and self.service_time_s > 0,
            f"operator {self.name!r}: service_time_s must be above 0, not {self.service_time_s}",
        )
        for what in ("shards", "max_replicas"):
            require(getattr(self, what) >= 1, f"operator {self.name!r}: {what} must be at least 1, not {getattr(self, what)}")
        for what in ("state_bytes_per_shard", "row_bytes", "memory_bytes"):
            require(getattr(self, what) >= 0, f"operator {self.name!r}: {what} must be 0 or more, not {getattr(self, what)}")
        require(self.queue_rows > 0, f"operator {self.name!r}: queue_rows must be above 0, not {self.queue_rows}")

    @property
    def keyed(self) -> bool:
        return self.grouping is Grouping.KEY

    @property
    def replica_limit(self) -> int:
        """The most replicas that can do work: a keyed operator cannot use more than one per shard."""
        return min(self.max_replicas, self.shards) if self.keyed else self.max_replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where rows come from. `share` multiplies the trace's count: the part of it that this source offers."""

    name: str
    share: float = 1.0

    def __post_init__(self) -> None:
        require(bool(self.name), "a source needs a name")
        require(_finite(self.share) and self.share >= 0, f"source {self.name!r}: share must be 0 or more, not {self.share}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A stream from a source or operator to an operator. `selectivity`: rows sent per row processed upstream."""

    upstream: str
    downstream: str
    selectivity: float = 1.0

    def __post_init__(self) -> None:
        require(
            _finite(self.selectivity) and self.selectivity >= 0,
            f"edge {self.upstream} -> {self.downstream}: selectivity must be 0 or more, not {self.selectivity}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SLO:
    """At least the share `percentile` of rows leave the application within `latency_s` of entering it."""

    latency_s: float = 5.0
    percentile: float = 0.9

    def __post_init__(self) -> None:
        require(_finite(self.latency_s) and self.latency_s > 0, f"slo: latency_s must be above 0, not {self.latency_s}")
        require(0 < self.percentile < 1, f"slo: percentile must lie between 0 and 1, not {self.percentile}")


@dataclass(frozen=True, kw_only=True)
class Application:
    """A DAG of operators with an SLO. Operators are kept in topological order, whatever order they were given in.

    Without sources, one named `source` feeds every operator that has no other input. A row older than `timeout_s`
    is dropped instead of processed (PSPS's t_out).
    """

    name: str
    operators: tuple[Operator, ...]
    edges: tuple[Edge, ...] = ()
    sources: tuple[Source, ...] = ()
    slo: SLO = field(default_factory=SLO)
    timeout_s: float = math.inf

    def __post_init__(self) -> None:
        require(bool(self.name), "an application needs a name")
        require(bool(self.operators), f"application {self.name!r} has no operator: add at least one [[operator]]")
        require(self.timeout_s > 0, f"application {self.name!r}: timeout_s must be above 0, not {self.timeout_s}")
        self._check_names()
        if not self.sources:
            self._add_default_source()
        object.__setattr__(self, "operators", self._in_topological_order())
        for source in self.sources:
            require(bool(self.outputs(source.name)), f"source {source.name!r} feeds nobody: add an [[edge]] from it")
        for operator in self.operators:
            require(
                bool(self.inputs(operator.name)),
                f"operator {operator.name!r} has no input: add an [[edge]] to it from a source or another operator",
            )

    def _check_names(self) -> None:
        names = [o.name for o in self.operators] + [s.name for s in self.sources]
        for name, count in Counter(names).items():
            require(count == 1, f"the name {name!r} is used {count} times: operators and sources need names of their own")
        operator_names = {o.name for o in self.operators}
        upstream_names = set(names) if self.sources else operator_names | {"source"}
        seen: set[tuple[str, str]] = set()
        for edge in self.edges:
            where = f"edge {edge.upstream} -> {edge.downstream}"
            if edge.upstream not in upstream_names:
                raise InvalidValue(
                    f"{where}: there is no operator or source {edge.upstream!r}; {nearest(edge.upstream, upstream_names)}"
                )
            if edge.downstream not in operator_names:
                raise InvalidValue(
                    f"{where}: there is no operator {edge.downstream!r}; {nearest(edge.downstream, operator_names)}"
                )
            require((edge.upstream, edge.downstream) not in seen, f"{where} is given twice")
            seen.add((edge.upstream, edge.downstream))

    def _add_default_source(self) -> None:
        require(
            all(o.name != "source" for o in self.operators),
            f"application {self.name!r}: an operator is called 'source', as the source that is added when none is given:"
            " add a [[source]] with another name",
        )
        fed = {e.downstream for e in self.edges}
        roots = tuple(Edge(upstream="source", downstream=o.name) for o in self.operators if o.name not in fed)
        object.__setattr__(self, "sources", (Source(name="source"),))
        object.__setattr__(self, "edges", self.edges + roots)

    def _in_topological_order(self) -> tuple[Operator, ...]:
        by_name = {o.name: o for o in self.operators}
        waiting = {o.name: 0 for o in self.operators}
        successors: dict[str, list[str]] = {o.name: [] for o in self.operators}
        for edge in self.edges:
            if edge.upstream in by_name:
                waiting[edge.downstream] += 1
                successors[edge.upstream].append(edge.downstream)
        ready = [name for name, count in waiting.items() if count == 0]
        order: list[Operator] = []
        while ready:
            name = ready.pop(0)
            order.append(by_name[name])
            for successor in successors[name]:
                waiting[successor] -= 1
                if waiting[successor] == 0:
                    ready.append(successor)
        if len(order) < len(self.operators):
            cycle = _find_cycle({n: s for n, s in successors.items() if waiting[n] > 0}, waiting)
            raise InvalidValue(f"application {self.name!r}: the edges form a cycle: {' -> '.join(cycle)}; remove one of them")
        return tuple(order)

    @cached_property
    def _operators_by_name(self) -> dict[str, Operator]:
        return {o.name: o for o in self.operators}

    @cached_property
    def _inputs(self) -> dict[str, tuple[Edge, ...]]:
        found: dict[str, list[Edge]] = {}
        for edge in self.edges:
            found.setdefault(edge.downstream, []).append(edge)
        return {name: tuple(edges) for name, edges in found.items()}

    @cached_property
    def _outputs(self) -> dict[str, tuple[Edge, ...]]:
        found: dict[str, list[Edge]] = {}
        for edge in self.edges:
            found.setdefault(edge.upstream, []).append(edge)
        return {name: tuple(edges) for name, edges in found.items()}

    def operator(self, name: str) -> Operator:
        try:
            return self._operators_by_name[name]
        except KeyError:
            raise InvalidValue(f"there is no operator {name!r}; {nearest(name, self._operators_by_name)}") from None

    def inputs(self, operator: str) -> tuple[Edge, ...]:
        return self._inputs.get(operator, ())

    def outputs(self, name: str) -> tuple[Edge, ...]:
        return self._outputs.get(name, ())

    def neighbours(self, operator: str) -> frozenset[str]:
        """The operators one edge away, up or down the stream."""
        near = [e.upstream for e in self.inputs(operator)] + [e.downstream for e in self.outputs(operator)]
        return frozenset(n for n in near if n in self._operators_by_name)


def _find_cycle(successors: dict[str, list[str]], waiting: dict[str, int]) -> list[str]:
    name = min(successors)
    path: list[str] = []
    predecessors = {n: [m for m, nexts in successors.items() if n in nexts and waiting[m] > 0] for n in successors}
    while name not in path:
        path.append(name)
        name = min(predecessors[name])
    return [*path[path.index(name) :], name][::-1]


def _finite(value: float) -> bool:
    return math.isfinite(value)
