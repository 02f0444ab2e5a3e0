"""Random applications, worlds and changes of plan, for tests of laws that hold whatever happens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from springtide.backends.simulator.settings import (
    Activation,
    Arrivals,
    Failure,
    MicroBatch,
    Moves,
    RestartScope,
    ServiceModel,
    ServiceTimes,
    SimulatorSettings,
)
from springtide.model.allocation import Allocation, OperatorAllocation, new_host_names
from springtide.model.application import Application, Edge, Grouping, KeyDistribution, Operator, Source

MAX_HOSTS = 4
STEPS = 90


@dataclass(frozen=True)
class PlanChange:
    """One thing a policy might want next: `kind`, and two numbers that say of what and how much."""

    kind: str
    which: int
    amount: int

    def of(self, now: Allocation, application: Application, taken: Sequence[str]) -> Allocation:
        """The plan after the change; the same plan where it cannot be made."""
        operator = application.operators[self.which % len(application.operators)]
        match self.kind:
            case "replicas":
                return with_replicas(now, operator, 1 + self.amount % operator.replica_limit)
            case "route" if operator.keyed:
                return _with_routes(now, operator, self.amount)
            case "place":
                return _with_places(now, operator, self.amount)
            case "add" if len(now.hosts) < MAX_HOSTS:
                return now.with_hosts((*now.hosts, *new_host_names(frozenset(taken) | set(now.hosts), 1)))
            case "release" if len(now.hosts) > 1:
                return without_host(now, now.hosts[self.amount % len(now.hosts)])
        return now


def with_replicas(now: Allocation, operator: Operator, count: int) -> Allocation:
    placed = now.operators[operator.name]
    extra = tuple(now.hosts[i % len(now.hosts)] for i in range(max(0, count - placed.replicas)))
    hosts = (*placed.replica_hosts, *extra)[:count]
    return now.with_operator(operator.name, OperatorAllocation(hosts, tuple(r % count for r in placed.shard_replicas)))


def without_host(now: Allocation, host: str) -> Allocation:
    left = tuple(h for h in now.hosts if h != host)
    moved = {
        name: OperatorAllocation(
            tuple(left[i % len(left)] if h == host else h for i, h in enumerate(placed.replica_hosts)), placed.shard_replicas
        )
        for name, placed in now.operators.items()
    }
    return Allocation(left, moved)


def _with_routes(now: Allocation, operator: Operator, amount: int) -> Allocation:
    placed = now.operators[operator.name]
    routes = tuple((r + amount * s) % placed.replicas for s, r in enumerate(placed.shard_replicas))
    return now.with_operator(operator.name, OperatorAllocation(placed.replica_hosts, routes))


def _with_places(now: Allocation, operator: Operator, amount: int) -> Allocation:
    placed = now.operators[operator.name]
    hosts = tuple(now.hosts[(amount * (r + 1)) % len(now.hosts)] for r in range(placed.replicas))
    return now.with_operator(operator.name, OperatorAllocation(hosts, placed.shard_replicas))


plan_changes = st.builds(
    PlanChange,
    st.sampled_from(["replicas", "route", "place", "add", "release"]),
    st.integers(0, 5),
    st.integers(0, 11),
)


@st.composite
def operators(draw: st.DrawFn, name: str, *, lossless: bool) -> Operator:
    return Operator(
        name=name,
        service_time_s=draw(st.sampled_from([0.004, 0.02, 0.05, 0.3])),
        grouping=draw(st.sampled_from(list(Grouping))),
        shards=draw(st.integers(1, 6)),
        max_replicas=draw(st.integers(1, 5)),
        state_bytes_per_shard=draw(st.sampled_from([0, 10**6])),
        row_bytes=draw(st.sampled_from([0, 100])),
        queue_rows=math.inf if lossless else draw(st.sampled_from([math.inf, math.inf, 3.0, 40.0, 400.0])),
        keys=KeyDistribution(
            keys=draw(st.sampled_from([7, 300])),
            zipf=draw(st.sampled_from([0.0, 1.2])),
            shuffles_per_minute=draw(st.sampled_from([0.0, 5.0] if lossless else [0.0, 6.0, 40.0])),
        ),
    )


@st.composite
def applications(draw: st.DrawFn, *, lossless: bool = False) -> Application:
    """One to five operators fed by one or two sources and by one another, in any acyclic way."""
    count = draw(st.integers(1, 5))
    sources = tuple(Source(name=f"s{i}", share=1.0) for i in range(draw(st.integers(1, 2))))
    placed = tuple(draw(operators(f"o{i}", lossless=lossless)) for i in range(count))
    edges = []
    for i in range(count):
        possible = [s.name for s in sources] + [f"o{j}" for j in range(i)]
        for upstream in draw(st.lists(st.sampled_from(possible), min_size=1, max_size=3, unique=True)):
            selectivity = draw(st.sampled_from([0.0, 0.3, 1.0, 1.0, 2.0]))
            edges.append(Edge(upstream=upstream, downstream=f"o{i}", selectivity=selectivity))
    fed = {e.upstream for e in edges}
    edges += [Edge(upstream=s.name, downstream=f"o{count - 1}") for s in sources if s.name not in fed]
    timeout_s = math.inf if lossless else draw(st.sampled_from([math.inf, math.inf, 2.0, 9.0]))
    return Application(name="random", operators=placed, edges=tuple(edges), sources=sources, timeout_s=timeout_s)


@st.composite
def settings(draw: st.DrawFn, *, lossless: bool = False, **fixed: Any) -> SimulatorSettings:
    step_s = draw(st.sampled_from([0.5, 1.0]))
    failures = draw(st.lists(st.builds(Failure, at_s=st.floats(1.0, 40.0), host=st.sampled_from(["", "host-0"])), max_size=2))
    values: dict[str, Any] = {
        "service": draw(st.sampled_from(list(ServiceModel))),
        "step_s": step_s,
        "interval_s": 5.0,
        "arrivals": draw(st.sampled_from(list(Arrivals))),
        "service_times": draw(st.sampled_from([ServiceTimes.CONSTANT, ServiceTimes.CONSTANT, ServiceTimes.EXPONENTIAL])),
        "activation": draw(st.sampled_from(list(Activation))),
        "restart_s": draw(st.sampled_from([0.7, 8.0])),
        "restart_scope": draw(st.sampled_from(list(RestartScope))),
        "restart_drops_queue": not lossless and draw(st.booleans()),
        "recovery_s": draw(st.sampled_from([0.0, 4.0])),
        "moves": Moves(synchronisation_s=draw(st.sampled_from([0.0, 0.002, 3.0]))),
        "micro_batch": MicroBatch(
            trigger_s=draw(st.sampled_from([0.0, 3.0])), max_rows=draw(st.sampled_from([math.inf, 10.0, 200.0]))
        ),
        "failures": tuple(failures),
    }
    return SimulatorSettings(**{**values, **fixed})


@st.composite
def loads(draw: st.DrawFn, sources: int) -> NDArray[np.float64]:
    """Rows per step that come and go, with silence in between."""
    levels = draw(st.lists(st.sampled_from([0.0, 0.0, 1.0, 7.5, 40.0, 200.0]), min_size=6, max_size=6))
    rows = np.repeat(np.array(levels), STEPS // 6)
    return np.ascontiguousarray(np.vstack([np.roll(rows, 11 * i) for i in range(sources)]))
