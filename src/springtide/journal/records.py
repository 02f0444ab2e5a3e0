"""What a journal holds: the records, one JSON object per line, that Spark reads without help (`spark.read.json`).

Rules of the format:

* The first record is the `run`; an `observation`, `outcome` and `decision` follow for every interval, and before the decision
  a `control` for everything that was asked for by hand; a run that was not killed closes with an `end`. Every record has
  `kind` and `time_s`.
* Things with names are arrays of structs, never objects keyed by name: Spark would make each name a column.
* A top-level field means the same, and has the same type, in every kind of record that has it.
* JSON knows neither NaN nor infinity: a `Measure` is null where nothing finite was measured.
* `observed` and `requested` are null while they are as last written; the reader fills them in.

A change that an older reader would misunderstand raises `FORMAT`. New fields need a default and do not.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import msgspec

from springtide import __version__
from springtide.errors import require

FORMAT = 1

Measure = float | None


class SourceRecord(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    share: float


class OperatorRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An operator as the user described it; `queue_rows` is null when any number of rows may wait."""

    name: str
    service_time_s: float
    grouping: str
    shards: int
    max_replicas: int
    state_bytes_per_shard: int
    row_bytes: int
    memory_bytes: int
    queue_rows: Measure


class EdgeRecord(msgspec.Struct, frozen=True, kw_only=True):
    upstream: str
    downstream: str
    selectivity: float


class SloRecord(msgspec.Struct, frozen=True, kw_only=True):
    latency_s: float
    percentile: float


class ApplicationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The application that ran; `timeout_s` is null when rows never grow too old."""

    name: str
    sources: tuple[SourceRecord, ...]
    operators: tuple[OperatorRecord, ...]
    edges: tuple[EdgeRecord, ...]
    slo: SloRecord
    timeout_s: Measure


class ParameterRecord(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    value: Any


class PolicyRecord(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    parameters: tuple[ParameterRecord, ...] = ()


class PoolRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts that could be rented: how many, how large, and how long each takes to come and to go."""

    min_hosts: int
    max_hosts: int
    cores: int
    start_s: float
    release_s: float


class ForecastRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What was foreseen of one source, in rows per second: element k is of the interval k + 1 intervals after the decision's.

    About one interval in ten is below `low`, and one in twenty above `high`.
    """

    source: str
    model: str
    interval_s: float
    mean: tuple[Measure, ...]
    low: tuple[Measure, ...]
    high: tuple[Measure, ...]


class ShardsRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Element i is shard i (replica i, for an operator without shards)."""

    rows: tuple[Measure, ...]
    busy_s: tuple[Measure, ...]
    backlog_rows: tuple[Measure, ...]
    state_bytes: tuple[Measure, ...]


class EstimateRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is estimated, and its standard error."""

    value: Measure
    error: Measure


class BatchCostsRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the batches of an operator cost, as `model.batch` defines it."""

    driver_s: EstimateRecord
    batch_s: EstimateRecord
    task_s: EstimateRecord
    shard_s: EstimateRecord
    row_s: EstimateRecord
    skew: EstimateRecord
    batches: Measure


class OperatorLoadRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One operator over one interval; `shards` is null unless the journal was asked for that detail, `costs` and `trigger_s`
    where rows are processed one by one. `trigger_s` is the least time from the start of a batch to the start of the next."""

    name: str
    replicas: int
    offered_rows: Measure
    processed_rows: Measure
    emitted_rows: Measure
    dropped_rows: Measure
    backlog_rows: Measure
    backlog_s: Measure
    service_time_s: Measure
    utilisation: Measure
    latency_s: Measure
    busy_share: Measure = None
    trigger_s: Measure = None
    costs: BatchCostsRecord | None = None
    shards: ShardsRecord | None = None


class HostLoadRecord(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    state: str
    cores: int
    replicas: int
    utilisation: Measure
    memory_bytes: Measure
    network_bytes_per_s: Measure
    busy_share: Measure = None


class SourceRowsRecord(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    rows: Measure


class LatencyRecord(msgspec.Struct, frozen=True, kw_only=True):
    rows: Measure
    mean_s: Measure
    p10_s: Measure
    p50_s: Measure
    p90_s: Measure
    p99_s: Measure
    max_s: Measure
    violation_share: Measure
    slo_s: Measure


class ReconfigurationRecord(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    count: int


class PlacementRecord(msgspec.Struct, frozen=True, kw_only=True):
    operator: str
    replica_hosts: tuple[str, ...]
    shard_replicas: tuple[int, ...]


class AllocationRecord(msgspec.Struct, frozen=True, kw_only=True):
    hosts: tuple[str, ...]
    operators: tuple[PlacementRecord, ...]


class ExpectationRecord(msgspec.Struct, frozen=True, kw_only=True):
    utilisation: Measure = None
    processed_rows_per_s: Measure = None
    latency_s: Measure = None


class WhyNotRecord(msgspec.Struct, frozen=True, kw_only=True):
    who: str
    what: str
    why: str


class _Timed(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    time_s: float

    def __post_init__(self) -> None:
        require(math.isfinite(self.time_s), f"a journal record needs a time, not {self.time_s}")


class RunRecord(_Timed, frozen=True, kw_only=True, tag="run"):
    """What ran: application, policy with its parameters and guards, trace and seed. `time_s` is where the run's clock started.

    `step_s` belongs to the simulator, `trace` and `seed` to runs that have them. A run that is `live` can be steered while it
    goes on. `pool` is null in older journals.
    """

    time_s: float = 0.0
    format: int = FORMAT
    springtide_version: str = __version__
    created_at: datetime
    application: ApplicationRecord
    policy: PolicyRecord
    interval_s: float
    step_s: float | None = None
    trace: str | None = None
    seed: int | None = None
    pool: PoolRecord | None = None
    live: bool = False

    def __post_init__(self) -> None:
        _Timed.__post_init__(self)
        require(self.created_at.tzinfo is not None, f"created_at needs a time zone: {self.created_at.isoformat()} has none")
        require(self.interval_s > 0, f"interval_s must be above 0, not {self.interval_s}")


class ObservationRecord(_Timed, frozen=True, kw_only=True, tag="observation"):
    """Everything measured over one interval; `time_s` is its end."""

    interval: int
    start_s: float
    end_s: float
    sources: tuple[SourceRowsRecord, ...]
    operators: tuple[OperatorLoadRecord, ...]
    hosts: tuple[HostLoadRecord, ...]
    latency: LatencyRecord
    core_s: Measure
    downtime_s: Measure
    reconfigurations: tuple[ReconfigurationRecord, ...]
    events: tuple[str, ...]
    observed: AllocationRecord | None
    requested: AllocationRecord | None


class DecisionRecord(_Timed, frozen=True, kw_only=True, tag="decision"):
    """What was decided on the observation of the same `interval`; `change` is null when nothing was to change."""

    interval: int
    reason: str
    change: str | None
    changed_operators: tuple[str, ...]
    expected: ExpectationRecord
    why_not: tuple[WhyNotRecord, ...]
    actions: tuple[str, ...]
    forecast: tuple[ForecastRecord, ...] = ()


class ControlRecord(_Timed, frozen=True, kw_only=True, tag="control"):
    """What was asked for by hand and took effect at the end of `interval`, or a `reload` of the configuration.

    `do` is `refused` for what could not be done; `note` says why then, and what changed for a `reload`. `said_at` is real time.
    """

    interval: int
    do: str
    operator: str | None = None
    host: str | None = None
    replicas: int | None = None
    who: str
    said_at: str
    note: str = ""


class OutcomeRecord(_Timed, frozen=True, kw_only=True, tag="outcome"):
    """What came of the decision written before it, as measured in `interval`, the one that the decision was for."""

    interval: int
    expected: ExpectationRecord
    measured: ExpectationRecord
    verdict: str


class EndRecord(_Timed, frozen=True, kw_only=True, tag="end"):
    """The run came to its end, and this is what it came to."""

    summary: dict[str, Any]


Record = RunRecord | ObservationRecord | DecisionRecord | ControlRecord | OutcomeRecord | EndRecord
