"""Which operators share a query: pure.

A query costs a batch of latency, so operators with no shuffle between them run in one. Between two operators there is a shuffle
when the second one groups rows by a key, or asks for replicas, a limit or a grouping of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from springtide.backends.spark.application import Application, OnError, OperatorNode
from springtide.model.allocation import HostType, Pool
from springtide.model.application import Application as ApplicationModel
from springtide.model.application import Edge, Grouping, Operator, Source

# What a row is taken to cost before any has been measured.
UNKNOWN_SERVICE_TIME_S = 0.001


@dataclass(frozen=True, slots=True, eq=False)
class QueryPlan:
    """One query: a chain of operators, of which only the first may be grouped by key or keep state."""

    chain: tuple[OperatorNode, ...]

    @property
    def name(self) -> str:
        return "+".join(o.name for o in self.chain)

    @property
    def head(self) -> OperatorNode:
        return self.chain[0]

    @property
    def last(self) -> OperatorNode:
        return self.chain[-1]


def fused(application: Application) -> list[QueryPlan]:
    """The queries of an application, upstream first."""
    application.check()
    readers: dict[str, int] = {}
    for node in application.operators.values():
        for name in node.inputs:
            readers[name] = readers.get(name, 0) + 1
    chains: dict[str, list[OperatorNode]] = {}  # by the name of the chain's last operator
    for node in application.operators.values():
        before = chains.get(node.inputs[0])
        if (
            before is not None
            and _may_follow(before, node)
            and readers[node.inputs[0]] == 1
            and before[-1].name not in application.sinks
        ):
            del chains[node.inputs[0]]
            chains[node.name] = [*before, node]
        else:
            chains[node.name] = [node]
    return [QueryPlan(tuple(chain)) for chain in chains.values()]


def _may_follow(chain: list[OperatorNode], node: OperatorNode) -> bool:
    """One that asks for a pace or replicas of its own gets a query of its own."""
    head, before = chain[0], chain[-1]
    return (
        node.fuse
        and node.replicas in (1, head.replicas)
        and node.max_replicas >= head.max_replicas
        and node.max_rows_per_batch is None
        and len(node.inputs) == 1
        and node.shards == 0
        and node.grouping is Grouping.SHUFFLE
        and node.on_error is OnError.FAIL
        and before.on_error is OnError.FAIL
        and before.edge is None
    )


def described(application: Application, plans: list[QueryPlan]) -> ApplicationModel:
    """The application as policies see it: one operator per query."""
    query_of = {o.name: plan.name for plan in plans for o in plan.chain}
    operators = tuple(
        Operator(
            name=plan.name,
            service_time_s=UNKNOWN_SERVICE_TIME_S,
            grouping=plan.head.grouping,
            shards=plan.head.shards or 1,
            max_replicas=plan.head.max_replicas,
        )
        for plan in plans
    )
    ends = dict.fromkeys((query_of.get(name, name), plan.name) for plan in plans for name in plan.head.inputs)
    edges = tuple(Edge(upstream=upstream, downstream=downstream) for upstream, downstream in ends)
    sources = tuple(Source(name=name) for name in application.sources)
    return ApplicationModel(name=application.name, operators=operators, edges=edges, sources=sources, slo=application.slo)


def pool_of(cores: int, memory_bytes: int, min_hosts: int, max_hosts: int) -> Pool:
    """The executors that may be asked for, as policies see them; times are those of an executor on a warm machine."""
    return Pool(
        host=HostType(cores=cores, memory_bytes=memory_bytes, start_s=4.0, release_s=5.0),
        min_hosts=min_hosts,
        max_hosts=max_hosts,
    )
