"""Telling a guard's story: a policy that plans what the script says, an application that gets what was decided.

The application is `parse` (any replica) -> `count` (8 shards of 1 MB) -> `rank` (4 shards of 1 kB).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from factories import allocation, application, latency, observation, operator
from springtide.model.allocation import Allocation, OperatorAllocation, Pool
from springtide.model.application import SLO, Grouping
from springtide.model.decision import Decision
from springtide.model.protocols import AnyPolicy, View

APPLICATION = application(
    operator("parse", grouping=Grouping.SHUFFLE, max_replicas=12),
    operator("count", state_bytes_per_shard=1_000_000),
    operator("rank", shards=4, state_bytes_per_shard=1_000),
    slo=SLO(latency_s=0.2),
)
INTERVAL_S = 20.0

unhurried = settings(max_examples=50, deadline=None)  # a busy machine is no defect


@dataclass(frozen=True)
class Scripted:
    """Plans the script's allocations one after another, then the last one for ever. Its memory is how many it planned."""

    script: tuple[Allocation, ...]

    def start(self) -> int:
        return 0

    def decide(self, view: View, memory: int) -> tuple[Decision, int]:
        planned = self.script[min(memory, len(self.script) - 1)]
        return Decision(planned=planned, reason="the script says so"), memory + 1


def placed(hosts: int | Sequence[str] = 2, **replicas: int) -> Allocation:
    """The application spread over hosts: `placed(2, parse=4)`."""
    return allocation(APPLICATION, hosts=hosts, replicas=replicas)


def with_replicas(base: Allocation, name: str, *hosts: str) -> Allocation:
    """The allocation with an operator's replicas on these hosts, its shards dealt to them in turn; new hosts are added."""
    routes = tuple(s % len(hosts) for s in range(len(base.operators[name].shard_replicas)))
    return Allocation(tuple(dict.fromkeys((*base.hosts, *hosts))), {**base.operators, name: OperatorAllocation(hosts, routes)})


def view(requested: Allocation, *, index: int = 0, latency_s: float = 1.0, **fields: Any) -> View:
    seen = observation(
        index=index, interval_s=INTERVAL_S, application=APPLICATION, allocation=requested, latency_s=latency_s, **fields
    )
    return View(application=APPLICATION, pool=Pool(), observation=seen, demand_rows_per_s={})


def stalled_view(requested: Allocation) -> View:
    """Rows wait, and none leaves."""
    return view(requested, backlog_rows=100.0, latency=latency(rows=0.0, latency_s=0.0))


def play(guard: AnyPolicy, start: Allocation, intervals: int, *, latency_s: float | Sequence[float] = 1.0) -> list[Decision]:
    """The guard's decisions, each carried out at once."""
    latencies = [latency_s] * intervals if isinstance(latency_s, float) else list(latency_s)
    requested, memory, decisions = start, guard.start(), []
    for index in range(intervals):
        decision, memory = guard.decide(view(requested, index=index, latency_s=latencies[index]), memory)
        requested = decision.planned
        decisions.append(decision)
    return decisions


def replicas(decisions: Sequence[Decision], name: str) -> list[int]:
    return [d.planned.operators[name].replicas for d in decisions]


def why_nots(decision: Decision) -> list[str]:
    return [str(veto) for veto in decision.why_not]


@st.composite
def allocations(draw: st.DrawFn) -> Allocation:
    """Any valid allocation of the application, however lopsided."""
    hosts = draw(st.lists(st.sampled_from([f"host-{i}" for i in range(7)]), min_size=1, max_size=6, unique=True))
    operators = {}
    for each in APPLICATION.operators:
        on_hosts = draw(st.lists(st.sampled_from(hosts), min_size=1, max_size=each.replica_limit))
        routes = st.lists(st.integers(0, len(on_hosts) - 1), min_size=each.shards, max_size=each.shards)
        operators[each.name] = OperatorAllocation(tuple(on_hosts), tuple(draw(routes)) if each.keyed else ())
    return Allocation(tuple(hosts), operators)
