"""The metrics that are offered to Prometheus: name, kind, labels, unit, meaning, and what Flink's autoscaler calls it.

Every metric has the labels `run` and `application` before its own. docs/metrics.md has the same table, which a test compares.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    GAUGE = "gauge"
    COUNTER = "counter"


COMMON_LABELS = ("run", "application")


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    unit: str
    meaning: str
    labels: tuple[str, ...] = ()
    flink: str = ""

    @property
    def kind(self) -> Kind:
        return Kind.COUNTER if self.name.endswith("_total") else Kind.GAUGE


_OPERATOR = ("operator",)
_HOST = ("host",)
_PER_S = "rows per second"

# What flink-kubernetes-operator reports of each vertex (`ScalingMetric.REPORTED_VERTEX_METRICS`), in Springtide's words.
OPERATOR_METRICS = (
    Metric(
        "springtide_operator_utilisation_ratio",
        "0 to 1",
        "what its replicas do, as a share of what they can do within the objective",
        _OPERATOR,
        "LOAD",
    ),
    Metric(
        "springtide_operator_capacity_rows_per_second",
        _PER_S,
        "what its replicas could process if they were always busy: replicas divided by the measured service time",
        _OPERATOR,
        "TRUE_PROCESSING_RATE",
    ),
    Metric(
        "springtide_operator_target_rows_per_second",
        _PER_S,
        "what comes to it of what the sources send now, once everybody upstream keeps up",
        _OPERATOR,
        "TARGET_DATA_RATE",
    ),
    Metric(
        "springtide_operator_catch_up_rows_per_second",
        _PER_S,
        "what it would have to process beside that to be rid of its backlog within one interval",
        _OPERATOR,
        "CATCH_UP_DATA_RATE",
    ),
    Metric("springtide_operator_backlog_rows", "rows", "rows that wait for it", _OPERATOR, "LAG"),
    Metric("springtide_operator_replicas", "replicas", "its replicas, as they are", _OPERATOR, "PARALLELISM"),
    Metric(
        "springtide_operator_requested_replicas",
        "replicas",
        "its replicas, as they will be once everything asked for has happened",
        _OPERATOR,
        "RECOMMENDED_PARALLELISM",
    ),
    Metric("springtide_operator_max_replicas", "replicas", "the most it can have", _OPERATOR, "MAX_PARALLELISM"),
    Metric(
        "springtide_operator_shards",
        "shards",
        "parts of its keys, each served by one replica; 0 if it is not keyed",
        _OPERATOR,
        "NUM_SOURCE_PARTITIONS",
    ),
    Metric(
        "springtide_operator_scale_up_rows_per_second",
        _PER_S,
        "a capacity below this is too little: target and catch-up together",
        _OPERATOR,
        "SCALE_UP_RATE_THRESHOLD",
    ),
    Metric(
        "springtide_operator_scale_down_rows_per_second",
        _PER_S,
        "with a capacity above this, one replica fewer would do; absent for a single replica",
        _OPERATOR,
        "SCALE_DOWN_RATE_THRESHOLD",
    ),
    Metric(
        "springtide_operator_expected_capacity_rows_per_second",
        _PER_S,
        "its capacity once everything asked for has happened",
        _OPERATOR,
        "EXPECTED_PROCESSING_RATE",
    ),
)

# What Springtide reports of each operator beside them; costs only where rows are processed in batches.
OWN_OPERATOR_METRICS = (
    Metric("springtide_operator_busy_ratio", "0 to 1", "share of time in which its replicas are busy", _OPERATOR),
    Metric(
        "springtide_operator_batch_cost_seconds",
        "seconds",
        "what a batch costs: `part` is `driver`, `batch`, `task`, `shard` (only if it is keyed) or `row`",
        ("operator", "part"),
    ),
    Metric(
        "springtide_operator_batch_cost_error_seconds",
        "seconds",
        "standard error of that cost",
        ("operator", "part"),
    ),
    Metric(
        "springtide_operator_batch_skew_ratio",
        "1 or more",
        "time of the busiest slot over that of the mean slot: the batch waits for the busiest",
        _OPERATOR,
    ),
    Metric("springtide_operator_batch_skew_error_ratio", "0 or more", "standard error of that skew", _OPERATOR),
    Metric(
        "springtide_operator_learned_batches",
        "batches",
        "batches that costs and skew rest on, the older ones counting less; while it is 0, they are assumptions",
        _OPERATOR,
    ),
    Metric(
        "springtide_operator_trigger_seconds",
        "seconds",
        "least time from the start of a batch to the start of the next; 0 if each starts as soon as the last has ended",
        _OPERATOR,
    ),
)

HOST_METRICS = (
    Metric(
        "springtide_host_utilisation_ratio",
        "0 to 1",
        "what a running host does, as a share of what it can do within the objective",
        _HOST,
    ),
    Metric("springtide_host_busy_ratio", "0 to 1", "share of time in which the cores of a running host are busy", _HOST),
)

RUN_METRICS = (
    Metric("springtide_run_info", "1", "which journal and policy a run has", ("file", "policy")),
    Metric("springtide_run_state", "0 or 1", "1 for the state that the run is in, 0 for the others", ("state",)),
    Metric("springtide_run_time_seconds", "seconds", "end of the newest interval, on the run's clock"),
    Metric("springtide_intervals_total", "intervals", "intervals observed"),
    Metric("springtide_offered_rows_per_second", _PER_S, "what each source sends", ("source",)),
    Metric("springtide_capacity_rows_per_second", _PER_S, "source rows that the running cores could process"),
    Metric(
        "springtide_forecast_rows_per_second",
        _PER_S,
        "what is foreseen for the next interval of all sources: `bound` is `mean`, `low` (10 %) or `high` (95 %)",
        ("bound",),
    ),
    Metric("springtide_backlog_rows", "rows", "rows that wait, over all operators"),
    Metric(
        "springtide_latency_seconds",
        "seconds",
        "end-to-end latency in the newest interval in which rows left: `quantile` is 0.1, 0.5, 0.9 or 0.99",
        ("quantile",),
    ),
    Metric("springtide_latency_slo_seconds", "seconds", "the same at the percentile that the objective speaks of"),
    Metric("springtide_slo_latency_seconds", "seconds", "the latency that the objective allows"),
    Metric("springtide_late_rows_ratio", "0 to 1", "share of the rows of that interval that were later than that"),
    Metric("springtide_slo_violations_total", "intervals", "intervals in which the objective was missed"),
    Metric("springtide_hosts", "hosts", "hosts by state: starting, running, releasing", ("state",)),
    Metric("springtide_core_seconds_total", "core-seconds", "core-seconds paid for"),
    Metric("springtide_static_core_seconds", "core-seconds", "what the most hosts of the run so far would have cost all along"),
    Metric("springtide_oracle_core_seconds", "core-seconds", "what the cheapest way through what came would have cost"),
    Metric("springtide_reconfigurations_total", "changes", "changes carried out, by kind", ("kind",)),
    Metric("springtide_shards_moved_total", "shards", "shards that went to another replica"),
    Metric("springtide_downtime_seconds_total", "seconds", "time for which restarts stopped something"),
    Metric("springtide_decisions_total", "decisions", "decisions made"),
    Metric("springtide_changes_total", "decisions", "decisions that changed something"),
    Metric("springtide_vetoes_total", "vetoes", "things that were wanted and not done"),
    Metric("springtide_paused", "0 or 1", "1 while the policy is paused by hand"),
)

METRICS = OPERATOR_METRICS + OWN_OPERATOR_METRICS + HOST_METRICS + RUN_METRICS
