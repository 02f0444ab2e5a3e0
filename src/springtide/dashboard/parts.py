"""The parts of journal records that columns are made of.

A journal of a week has 100 MB, of which a dashboard shows a few columns: these structs name what those need, and the decoder
passes over everything else. Fields that older journals do not have come with defaults.
"""

from __future__ import annotations

from typing import Any

import msgspec

Number = float | None


class Present(msgspec.Struct, gc=False):
    """Something that is there, whatever it is."""


class SourcePart(msgspec.Struct, gc=False):
    name: str


class OperatorPart(msgspec.Struct, gc=False):
    name: str
    service_time_s: float
    shards: int
    max_replicas: int


class EdgePart(msgspec.Struct, gc=False):
    upstream: str
    downstream: str
    selectivity: float = 1.0


class SloPart(msgspec.Struct, gc=False):
    latency_s: float
    percentile: float


class ApplicationPart(msgspec.Struct):
    name: str
    sources: list[SourcePart]
    operators: list[OperatorPart]  # in topological order
    edges: list[EdgePart]
    slo: SloPart


class ParameterPart(msgspec.Struct):
    name: str
    value: Any


class PolicyPart(msgspec.Struct):
    name: str
    parameters: list[ParameterPart] = []


class PoolPart(msgspec.Struct):
    min_hosts: int
    max_hosts: int
    cores: int
    start_s: float = 30.0
    release_s: float = 5.0


class RunPart(msgspec.Struct, tag_field="kind", tag="run"):
    application: ApplicationPart
    policy: PolicyPart
    interval_s: float
    created_at: str
    pool: PoolPart | None = None
    live: bool = False


class SourceLoad(msgspec.Struct, gc=False):
    name: str
    rows: Number


class OperatorLoad(msgspec.Struct, gc=False):
    name: str
    replicas: int
    processed_rows: Number
    emitted_rows: Number
    backlog_rows: Number
    service_time_s: Number


class HostLoad(msgspec.Struct, gc=False):
    state: str
    cores: int
    utilisation: Number


class LatencyPart(msgspec.Struct, gc=False):
    rows: Number
    p50_s: Number
    p99_s: Number
    violation_share: Number
    slo_s: Number


class ReconfigurationPart(msgspec.Struct, gc=False):
    kind: str
    count: int


class ObservationPart(msgspec.Struct, tag_field="kind", tag="observation", gc=False):
    interval: int
    start_s: float
    end_s: float
    sources: list[SourceLoad]
    operators: list[OperatorLoad]
    hosts: list[HostLoad]
    latency: LatencyPart
    core_s: Number
    downtime_s: Number
    reconfigurations: list[ReconfigurationPart]
    observed: Present | None
    requested: Present | None


class ForecastPart(msgspec.Struct, gc=False):
    """Rows per second of one source in the intervals to come."""

    interval_s: float
    mean: list[Number]
    low: list[Number]
    high: list[Number]


class DecisionPart(msgspec.Struct, tag_field="kind", tag="decision", gc=False):
    interval: int
    change: str | None
    why_not: list[Present] = []
    forecast: list[ForecastPart] = []


class OutcomePart(msgspec.Struct, tag_field="kind", tag="outcome", gc=False):
    interval: int


class ControlPart(msgspec.Struct, tag_field="kind", tag="control"):
    """Something that was asked for by hand; `note` says why, if it was refused."""

    time_s: float
    interval: int
    do: str
    operator: str | None = None
    host: str | None = None
    replicas: int | None = None
    who: str = ""
    said_at: str = ""
    note: str = ""


class EndPart(msgspec.Struct, tag_field="kind", tag="end"):
    time_s: float
    summary: dict[str, Any]


Part = RunPart | ObservationPart | DecisionPart | OutcomePart | ControlPart | EndPart


class Kind(msgspec.Struct):
    """What every record says of itself."""

    kind: str
    format: int = 1
