"""Small valid model values for tests: say what the test is about, leave the rest to the defaults.

    app = application("parse", "count")                         # parse -> count
    placed = allocation(app, hosts=2, replicas={"count": 4})
    seen = observation(index=3, application=app, allocation=placed, utilisation=0.9, latency_s=7.0)
    made = decision(placed, reason="within bounds")

Everything is a pure function of its arguments. The figures of an observation fit together: an operator processed the
rows it was offered but for its backlog, its shards add up to it, and a host is as busy as what runs on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np

from springtide.journal.from_model import application_record, policy_record
from springtide.journal.records import RunRecord
from springtide.model.allocation import Allocation, OperatorAllocation, spread
from springtide.model.application import SLO, Application, Edge, Grouping, Operator
from springtide.model.decision import Decision, Expectation, WhyNot
from springtide.model.observation import (
    HostObservation,
    HostState,
    Latency,
    Observation,
    OperatorObservation,
    ShardLoads,
)

HOST_CORES = 4


def operator(name: str = "count", **fields: Any) -> Operator:
    """A keyed operator of 8 shards that takes 1 ms a row; `fields` are the model's own."""
    return Operator(**{"name": name, "service_time_s": 0.001, "shards": 8, **fields})


def application(*operators: str | Operator, name: str = "words", slo: SLO | None = None, **fields: Any) -> Application:
    """A chain of operators fed by one source; names stand for `operator(name)`. By default `parse` -> `count`.

    >>> [o.name for o in application().operators]
    ['parse', 'count']
    """
    chain = [operator(o) if isinstance(o, str) else o for o in operators or _default_chain()]
    fields.setdefault("edges", tuple(Edge(upstream=a.name, downstream=b.name) for a, b in pairwise(chain)))
    return Application(name=name, operators=tuple(chain), slo=slo or SLO(), **fields)


def allocation(
    application: Application | None = None, *, hosts: int | Sequence[str] = 1, replicas: Mapping[str, int] | None = None
) -> Allocation:
    """Replicas (one each, unless told) dealt over hosts: a number of them (`host-0`, ...) or their names."""
    names = tuple(f"host-{i}" for i in range(hosts)) if isinstance(hosts, int) else tuple(hosts)
    return spread(application or _default_application(), names, replicas)


def observation(
    *,
    index: int = 0,
    interval_s: float = 60.0,
    application: Application | None = None,
    allocation: Allocation | None = None,
    requested: Allocation | None = None,
    rows: float = 6000.0,
    utilisation: float | Mapping[str, float] = 0.5,
    backlog_rows: float | Mapping[str, float] = 0.0,
    latency_s: float = 0.2,
    events: Sequence[str] = (),
    **fields: Any,
) -> Observation:
    """One interval of an application to whose source `rows` were offered.

    `utilisation` and `backlog_rows` are one number for all operators, or one by name (0.5 and 0 for those not named).
    A host is as busy as the mean of the replicas on it. `fields` replace whole fields of the observation.
    """
    application = application or _default_application()
    observed = allocation or _default_allocation(application)
    operators = {
        o.name: operator_observation(
            o,
            observed.operators[o.name],
            rows=rows,
            interval_s=interval_s,
            utilisation=_of(utilisation, o.name, 0.5),
            backlog_rows=_of(backlog_rows, o.name, 0.0),
            latency_s=latency_s,
        )
        for o in application.operators
    }
    hosts = {host: _host_observation(host, observed, operators) for host in observed.hosts}
    values: dict[str, Any] = {
        "index": index,
        "start_s": index * interval_s,
        "end_s": (index + 1) * interval_s,
        "source_rows": {s.name: rows * s.share for s in application.sources},
        "operators": operators,
        "hosts": hosts,
        "latency": latency(rows, latency_s, application.slo),
        "observed": observed,
        "requested": requested or observed,
        "core_s": HOST_CORES * len(observed.hosts) * interval_s,
        "downtime_s": 0.0,
        "reconfigurations": {},
        "events": tuple(events),
    }
    return Observation(**{**values, **fields})


def operator_observation(
    operator: Operator,
    placed: OperatorAllocation,
    *,
    rows: float = 6000.0,
    interval_s: float = 60.0,
    utilisation: float = 0.5,
    backlog_rows: float = 0.0,
    latency_s: float = 0.2,
    **fields: Any,
) -> OperatorObservation:
    """One operator that was offered `rows` and left `backlog_rows` of them waiting; its shards share evenly."""
    processed = max(0.0, rows - backlog_rows)
    values: dict[str, Any] = {
        "name": operator.name,
        "offered_rows": rows,
        "processed_rows": processed,
        "emitted_rows": processed,
        "dropped_rows": 0.0,
        "backlog_rows": backlog_rows,
        "backlog_s": backlog_rows * operator.service_time_s / placed.replicas,
        "service_time_s": operator.service_time_s,
        "utilisation": utilisation,
        "busy_share": utilisation,
        "latency_s": latency_s,
        "replica_utilisation": np.full(placed.replicas, utilisation),
        "shards": shard_loads(
            len(placed.shard_replicas) or placed.replicas,
            rows=rows,
            busy_s=utilisation * interval_s * placed.replicas,
            backlog_rows=backlog_rows,
            state_bytes=operator.state_bytes_per_shard,
        ),
    }
    return OperatorObservation(**{**values, **fields})


def shard_loads(
    shards: int, *, rows: float = 6000.0, busy_s: float = 30.0, backlog_rows: float = 0.0, state_bytes: float = 0.0
) -> ShardLoads:
    """The totals shared evenly by `shards`; `state_bytes` is what each of them holds."""
    return ShardLoads(
        rows=np.full(shards, rows / shards),
        busy_s=np.full(shards, busy_s / shards),
        backlog_rows=np.full(shards, backlog_rows / shards),
        state_bytes=np.full(shards, float(state_bytes)),
    )


def host_observation(name: str = "host-0", *, utilisation: float = 0.5, **fields: Any) -> HostObservation:
    """A running host of 4 cores."""
    values = {"state": HostState.RUNNING, "cores": HOST_CORES, "memory_bytes": 2.0**30, "network_bytes_per_s": 1e6}
    return HostObservation(**{"name": name, "utilisation": utilisation, "busy_share": utilisation, **values, **fields})


def latency(rows: float = 6000.0, latency_s: float = 0.2, slo: SLO | None = None) -> Latency:
    """Every row took `latency_s`."""
    return Latency(
        rows=rows,
        mean_s=latency_s,
        p10_s=latency_s,
        p50_s=latency_s,
        p90_s=latency_s,
        p99_s=latency_s,
        max_s=latency_s,
        violation_share=float(latency_s > (slo or SLO()).latency_s),
        slo_s=latency_s,
    )


def decision(
    planned: Allocation | None = None,
    *,
    reason: str = "every host is within bounds",
    expected: Expectation | None = None,
    why_not: Sequence[WhyNot] = (),
) -> Decision:
    return Decision(planned=planned or allocation(), reason=reason, expected=expected or Expectation(), why_not=tuple(why_not))


def run(application: Application | None = None, **fields: Any) -> RunRecord:
    """The first record of a journal: a policy named `static`, an interval of a minute."""
    values: dict[str, Any] = {
        "created_at": datetime(2026, 3, 1, 12, 0, tzinfo=UTC),
        "application": application_record(application or _default_application()),
        "policy": policy_record("static", {"hosts": 1}),
        "interval_s": 60.0,
    }
    return RunRecord(**{**values, **fields})


def _default_chain() -> tuple[Operator, ...]:
    return operator("parse", grouping=Grouping.SHUFFLE), operator("count")


def _default_application() -> Application:
    return application()


def _default_allocation(application: Application) -> Allocation:
    return allocation(application)


def _of(figure: float | Mapping[str, float], name: str, default: float) -> float:
    return figure.get(name, default) if isinstance(figure, Mapping) else figure


def _host_observation(host: str, placed: Allocation, operators: Mapping[str, OperatorObservation]) -> HostObservation:
    busy = [operators[name].utilisation for name in placed.operators_on(host)]
    return host_observation(host, utilisation=sum(busy) / len(busy) if busy else 0.0)
