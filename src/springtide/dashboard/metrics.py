"""The newest interval of every run, as Prometheus reads it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from springtide.dashboard.frames import by_operator
from springtide.dashboard.index import Index, foreseen
from springtide.dashboard.metric_names import COMMON_LABELS, METRICS, Kind
from springtide.dashboard.series import oracle_core_h, static_core_h
from springtide.dashboard.status import State
from springtide.dashboard.watching import Watched
from springtide.journal.records import HostLoadRecord, ObservationRecord, OperatorLoadRecord

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
_HOST_STATES = ("starting", "running", "releasing")


class Sample(NamedTuple):
    """One number; what is not known has none. `labels` are the metric's own."""

    name: str
    value: float | None
    labels: tuple[str, ...] = ()


def metrics_text(runs: Sequence[Watched]) -> bytes:
    """What `/metrics` answers. A registry of its own: nothing of this process is told."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Runs(runs))
    return generate_latest(registry)


class _Runs(Collector):
    def __init__(self, runs: Sequence[Watched]) -> None:
        self._runs = runs

    def collect(self) -> Iterable[Metric]:
        families = {metric.name: _family(metric.name) for metric in METRICS}
        for run in self._runs:
            described = run.journal.index.run
            common = (str(run.number), "" if described is None else described.application.name)
            for sample in samples(run):
                if sample.value is not None and math.isfinite(sample.value):
                    families[sample.name].add_metric((*common, *sample.labels), sample.value)
        return [family for family in families.values() if family.samples]


def _family(name: str) -> CounterMetricFamily | GaugeMetricFamily:
    metric = next(m for m in METRICS if m.name == name)
    labels = (*COMMON_LABELS, *metric.labels)
    if metric.kind is Kind.COUNTER:
        return CounterMetricFamily(name.removesuffix("_total"), metric.meaning, labels=labels)
    return GaugeMetricFamily(name, metric.meaning, labels=labels)


def samples(run: Watched) -> Iterator[Sample]:
    """All that is known of a run."""
    index, state = run.journal.index, run.status().state
    policy = "" if index.run is None else index.run.policy.name
    yield Sample("springtide_run_info", 1.0, (run.journal.path.name, policy))
    for other in State:
        yield Sample("springtide_run_state", float(other is state), (other.value,))
    if index.run is None:
        return
    yield Sample("springtide_slo_latency_seconds", index.run.application.slo.latency_s)
    yield Sample("springtide_paused", float(index.steering.paused))
    yield from _totals(index)
    if len(index):
        newest = run.journal.observation(len(index) - 1)
        yield from _newest(run, newest)
        for operator in newest.operators:
            yield from _operator(index, newest, operator)
        for host in newest.hosts:
            yield from _sample_host(host)


def _totals(index: Index) -> Iterator[Sample]:
    totals = index.totals
    yield Sample("springtide_intervals_total", len(index))
    yield Sample("springtide_slo_violations_total", totals.late_intervals)
    yield Sample("springtide_core_seconds_total", totals.core_s)
    yield Sample("springtide_downtime_seconds_total", totals.downtime_s)
    yield Sample("springtide_decisions_total", totals.decisions)
    yield Sample("springtide_changes_total", totals.changes)
    yield Sample("springtide_vetoes_total", totals.vetoes)
    yield Sample("springtide_shards_moved_total", totals.reconfigurations["shards_moved"])
    for kind, count in sorted(totals.reconfigurations.items()):
        yield Sample("springtide_reconfigurations_total", count, (kind,))


def _newest(run: Watched, newest: ObservationRecord) -> Iterator[Sample]:
    """What holds for the whole run, in its newest interval."""
    index, seconds = run.journal.index, newest.end_s - newest.start_s
    yield Sample("springtide_run_time_seconds", newest.time_s)
    for source in newest.sources:
        yield Sample(
            "springtide_offered_rows_per_second", None if source.rows is None else source.rows / seconds, (source.name,)
        )
    for name, column in (
        ("springtide_capacity_rows_per_second", "capacity_per_s"),
        ("springtide_backlog_rows", "backlog_rows"),
    ):
        yield Sample(name, float(index.rows[column][-1]))
    for bound, rate in zip(("mean", "low", "high"), foreseen(index.ahead, 0), strict=True):
        yield Sample("springtide_forecast_rows_per_second", rate, (bound,))
    yield from _latency(run)
    for state in _HOST_STATES:
        yield Sample("springtide_hosts", sum(host.state == state for host in index.hosts), (state,))
    yield Sample("springtide_static_core_seconds", 3600 * float(static_core_h(index)[-1]))
    yield Sample("springtide_oracle_core_seconds", 3600 * float(oracle_core_h(index, run.best)[-1]))


def _latency(run: Watched) -> Iterator[Sample]:
    """Of the rows that left last: an alert must not go out because no batch has ended for a moment."""
    index = run.journal.index
    if index.left_at is None:
        return
    yield Sample("springtide_latency_slo_seconds", float(index.rows["latency_slo_s"][index.left_at]))
    yield Sample("springtide_late_rows_ratio", float(index.rows["late_share"][index.left_at]))
    latency = run.journal.observation(index.left_at).latency
    quantiles = {"0.1": latency.p10_s, "0.5": latency.p50_s, "0.9": latency.p90_s, "0.99": latency.p99_s}
    for quantile, value in quantiles.items():
        yield Sample("springtide_latency_seconds", value, (quantile,))


def _operator(index: Index, newest: ObservationRecord, load: OperatorLoadRecord) -> Iterator[Sample]:
    """The twelve figures of an operator that Flink's autoscaler has of a vertex, and Springtide's own."""
    assert index.run is not None
    assert index.work is not None
    assert newest.requested is not None
    described = next((o for o in index.run.application.operators if o.name == load.name), None)
    placed = by_operator(newest.requested).get(load.name)
    if described is None:
        return
    seconds, service_s = newest.end_s - newest.start_s, index.work.service_time_s(load.name)
    demand = index.work.demand({source.name: source.rows or 0.0 for source in newest.sources})
    target, catch_up = demand[load.name] / seconds, (load.backlog_rows or 0.0) / seconds
    requested = load.replicas if placed is None else len(placed.replica_hosts)
    wanted, label = target + catch_up, (load.name,)
    figures = {
        "utilisation_ratio": load.utilisation,
        "capacity_rows_per_second": load.replicas / service_s if service_s > 0 else None,
        "target_rows_per_second": target,
        "catch_up_rows_per_second": catch_up,
        "backlog_rows": load.backlog_rows,
        "replicas": load.replicas,
        "requested_replicas": requested,
        "max_replicas": described.max_replicas,
        "shards": described.shards,
        "scale_up_rows_per_second": wanted,
        "scale_down_rows_per_second": wanted * load.replicas / (load.replicas - 1) if load.replicas > 1 else None,
        "expected_capacity_rows_per_second": requested / service_s if service_s > 0 else None,
    }
    for name, value in figures.items():
        yield Sample(f"springtide_operator_{name}", value, label)
    yield Sample("springtide_operator_busy_ratio", load.busy_share, label)
    yield from _sample_costs(load, keyed=described.shards > 0)


def _sample_costs(load: OperatorLoadRecord, *, keyed: bool) -> Iterator[Sample]:
    """What a batch of an operator costs; nothing where rows are processed one by one."""
    costs, label = load.costs, (load.name,)
    if costs is None:
        return
    parts = {"driver": costs.driver_s, "batch": costs.batch_s, "task": costs.task_s, "row": costs.row_s}
    if keyed:
        parts["shard"] = costs.shard_s
    for part, estimate in parts.items():
        yield Sample("springtide_operator_batch_cost_seconds", estimate.value, (*label, part))
        yield Sample("springtide_operator_batch_cost_error_seconds", estimate.error, (*label, part))
    yield Sample("springtide_operator_batch_skew_ratio", costs.skew.value, label)
    yield Sample("springtide_operator_batch_skew_error_ratio", costs.skew.error, label)
    yield Sample("springtide_operator_learned_batches", costs.batches, label)
    yield Sample("springtide_operator_trigger_seconds", load.trigger_s, label)


def _sample_host(host: HostLoadRecord) -> Iterator[Sample]:
    """How much a host does; one that starts or is released says nothing of that."""
    if host.state == "running":
        yield Sample("springtide_host_utilisation_ratio", host.utilisation, (host.name,))
        yield Sample("springtide_host_busy_ratio", host.busy_share, (host.name,))
