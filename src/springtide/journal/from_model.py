"""The model's values as journal records. Pure: a value in, a record out that reads back from disk as it was."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from springtide.errors import SpringtideError
from springtide.journal.records import (
    AllocationRecord,
    ApplicationRecord,
    BatchCostsRecord,
    DecisionRecord,
    EdgeRecord,
    EndRecord,
    EstimateRecord,
    ExpectationRecord,
    ForecastRecord,
    HostLoadRecord,
    LatencyRecord,
    Measure,
    ObservationRecord,
    OperatorLoadRecord,
    OperatorRecord,
    OutcomeRecord,
    ParameterRecord,
    PlacementRecord,
    PolicyRecord,
    PoolRecord,
    ReconfigurationRecord,
    ShardsRecord,
    SloRecord,
    SourceRecord,
    SourceRowsRecord,
    WhyNotRecord,
)
from springtide.model.action import Action, SetTriggerInterval
from springtide.model.allocation import Allocation, Pool
from springtide.model.application import Application, Edge, Operator
from springtide.model.batch import BatchCosts, Estimate
from springtide.model.change import change, describe_change
from springtide.model.decision import Decision, Expectation, Outcome
from springtide.model.observation import FloatArray, HostObservation, Latency, Observation, OperatorObservation, ShardLoads
from springtide.model.protocols import Forecast

_FORESEEN_INTERVALS = 12
_LOW, _HIGH = 0.10, 0.95  # the quantiles between which most intervals lie


def application_record(application: Application) -> ApplicationRecord:
    return ApplicationRecord(
        name=application.name,
        sources=tuple(SourceRecord(name=s.name, share=float(s.share)) for s in application.sources),
        operators=tuple(_operator_record(o) for o in application.operators),
        edges=tuple(
            EdgeRecord(upstream=e.upstream, downstream=e.downstream, selectivity=float(e.selectivity))
            for e in application.edges
        ),
        slo=SloRecord(latency_s=float(application.slo.latency_s), percentile=float(application.slo.percentile)),
        timeout_s=_measure(application.timeout_s),
    )


def policy_record(name: str, parameters: Mapping[str, Any]) -> PolicyRecord:
    """A policy and its parameters, whose values may be anything JSON can hold, dataclasses, enums and numpy numbers."""
    values = _plain_json(parameters, f"the parameters of policy {name!r}")
    return PolicyRecord(name=name, parameters=tuple(ParameterRecord(name=n, value=v) for n, v in values.items()))


def pool_record(pool: Pool) -> PoolRecord:
    return PoolRecord(
        min_hosts=pool.min_hosts,
        max_hosts=pool.max_hosts,
        cores=pool.host.cores,
        start_s=float(pool.host.start_s),
        release_s=float(pool.host.release_s),
    )


def observation_record(
    observation: Observation, *, before: Observation | None = None, with_shards: bool = False
) -> ObservationRecord:
    """The observation; an allocation that is as it was in `before`, the observation last written, is left out."""
    replicas_on = Counter(host for placed in observation.observed.operators.values() for host in placed.replica_hosts)
    return ObservationRecord(
        time_s=float(observation.end_s),
        interval=int(observation.index),
        start_s=float(observation.start_s),
        end_s=float(observation.end_s),
        sources=tuple(SourceRowsRecord(name=name, rows=_measure(rows)) for name, rows in observation.source_rows.items()),
        operators=tuple(
            _operator_load(o, observation.observed.operators[o.name].replicas, with_shards)
            for o in observation.operators.values()
        ),
        hosts=tuple(_host_load(h, replicas_on[h.name]) for h in observation.hosts.values()),
        latency=_latency_record(observation.latency),
        core_s=_measure(observation.core_s),
        downtime_s=_measure(observation.downtime_s),
        reconfigurations=tuple(ReconfigurationRecord(kind=k, count=int(n)) for k, n in observation.reconfigurations.items()),
        events=tuple(observation.events),
        observed=_unless_same(observation.observed, before.observed if before else None),
        requested=_unless_same(observation.requested, before.requested if before else None),
    )


def allocation_record(allocation: Allocation) -> AllocationRecord:
    return AllocationRecord(
        hosts=allocation.hosts,
        operators=tuple(
            PlacementRecord(
                operator=name,
                replica_hosts=placed.replica_hosts,
                shard_replicas=tuple(int(replica) for replica in placed.shard_replicas),
            )
            for name, placed in allocation.operators.items()
        ),
    )


def decision_record(observation: Observation, decision: Decision, actions: Sequence[Action]) -> DecisionRecord:
    """What the decision changes is what it plans beside what had been requested already."""
    changed = change(observation.requested, decision.planned)
    triggered = [action.operator for action in actions if isinstance(action, SetTriggerInterval)]
    return DecisionRecord(
        time_s=float(observation.end_s),
        interval=int(observation.index),
        reason=decision.reason,
        change=describe_change(changed, actions),
        changed_operators=tuple(dict.fromkeys([*changed.operators, *triggered])),
        expected=_expectation_record(decision.expected),
        why_not=tuple(WhyNotRecord(who=w.who, what=w.what, why=w.why) for w in decision.why_not),
        actions=tuple(str(action) for action in actions),
        forecast=() if decision.foreseen is None else forecast_records(decision.foreseen),
    )


def forecast_records(forecast: Forecast) -> tuple[ForecastRecord, ...]:
    """The next intervals of every source; more digits than are shown would make a third of the journal."""
    return tuple(
        ForecastRecord(
            source=source,
            model=forecast.model,
            interval_s=float(forecast.interval_s),
            mean=_shortened(mean),
            low=_shortened(_quantile(forecast, source, _LOW, mean)),
            high=_shortened(_quantile(forecast, source, _HIGH, forecast.upper[source])),
        )
        for source, mean in forecast.mean.items()
    )


def _quantile(forecast: Forecast, source: str, level: float, otherwise: FloatArray) -> FloatArray:
    """The quantile nearest to the level, if the model gives any."""
    quantiles = forecast.quantiles.get(source)
    if quantiles is None or not forecast.levels:
        return otherwise
    nearest: FloatArray = quantiles[min(range(len(forecast.levels)), key=lambda i: abs(forecast.levels[i] - level))]
    return nearest


def _shortened(values: FloatArray) -> tuple[Measure, ...]:
    return tuple(map(_digits, values[:_FORESEEN_INTERVALS].tolist()))


def outcome_record(outcome: Outcome, time_s: float) -> OutcomeRecord:
    return OutcomeRecord(
        time_s=float(time_s),
        interval=int(outcome.interval),
        expected=_expectation_record(outcome.expected),
        measured=_expectation_record(outcome.measured),
        verdict=outcome.verdict,
    )


def end_record(time_s: float, summary: Mapping[str, Any]) -> EndRecord:
    return EndRecord(time_s=float(time_s), summary=_plain_json(summary, "the summary of the run"))


def _unless_same(allocation: Allocation, before: Allocation | None) -> AllocationRecord | None:
    return None if allocation == before else allocation_record(allocation)


def _operator_record(operator: Operator) -> OperatorRecord:
    return OperatorRecord(
        name=operator.name,
        service_time_s=float(operator.service_time_s),
        grouping=operator.grouping.value,
        shards=operator.shards if operator.keyed else 0,
        max_replicas=operator.max_replicas,
        state_bytes_per_shard=operator.state_bytes_per_shard,
        row_bytes=operator.row_bytes,
        memory_bytes=operator.memory_bytes,
        queue_rows=_measure(operator.queue_rows),
    )


def _edge_record(edge: Edge) -> EdgeRecord:
    return EdgeRecord(upstream=edge.upstream, downstream=edge.downstream, selectivity=float(edge.selectivity))


def _operator_load(operator: OperatorObservation, replicas: int, with_shards: bool) -> OperatorLoadRecord:
    return OperatorLoadRecord(
        name=operator.name,
        replicas=replicas,
        offered_rows=_measure(operator.offered_rows),
        processed_rows=_measure(operator.processed_rows),
        emitted_rows=_measure(operator.emitted_rows),
        dropped_rows=_measure(operator.dropped_rows),
        backlog_rows=_measure(operator.backlog_rows),
        backlog_s=_measure(operator.backlog_s),
        service_time_s=_measure(operator.service_time_s),
        utilisation=_measure(operator.utilisation),
        latency_s=_measure(operator.latency_s),
        busy_share=_measure(operator.busy_share),
        trigger_s=None if operator.costs is None else _measure(operator.trigger_s),
        costs=None if operator.costs is None else _costs_record(operator.costs),
        shards=_shards_record(operator.shards) if with_shards else None,
    )


def _costs_record(costs: BatchCosts) -> BatchCostsRecord:
    def estimate(of: Estimate) -> EstimateRecord:
        return EstimateRecord(value=_digits(of.value), error=_digits(of.error))

    return BatchCostsRecord(
        driver_s=estimate(costs.driver_s),
        batch_s=estimate(costs.batch_s),
        task_s=estimate(costs.task_s),
        shard_s=estimate(costs.shard_s),
        row_s=estimate(costs.row_s),
        skew=estimate(costs.skew),
        batches=_digits(costs.batches),
    )


def _shards_record(shards: ShardLoads) -> ShardsRecord:
    return ShardsRecord(
        rows=_measures(shards.rows),
        busy_s=_measures(shards.busy_s),
        backlog_rows=_measures(shards.backlog_rows),
        state_bytes=_measures(shards.state_bytes),
    )


def _host_load(host: HostObservation, replicas: int) -> HostLoadRecord:
    return HostLoadRecord(
        name=host.name,
        state=host.state.value,
        cores=int(host.cores),
        replicas=replicas,
        utilisation=_measure(host.utilisation),
        memory_bytes=_measure(host.memory_bytes),
        network_bytes_per_s=_measure(host.network_bytes_per_s),
        busy_share=_measure(host.busy_share),
    )


def _latency_record(latency: Latency) -> LatencyRecord:
    return LatencyRecord(
        rows=_measure(latency.rows),
        mean_s=_measure(latency.mean_s),
        p10_s=_measure(latency.p10_s),
        p50_s=_measure(latency.p50_s),
        p90_s=_measure(latency.p90_s),
        p99_s=_measure(latency.p99_s),
        max_s=_measure(latency.max_s),
        violation_share=_measure(latency.violation_share),
        slo_s=_measure(latency.slo_s),
    )


def _expectation_record(expectation: Expectation) -> ExpectationRecord:
    return ExpectationRecord(
        utilisation=_measure(expectation.utilisation),
        processed_rows_per_s=_measure(expectation.processed_rows_per_s),
        latency_s=_measure(expectation.latency_s),
    )


def _digits(value: float) -> Measure:
    """As many digits as mean something, of a value that is foreseen or estimated."""
    return float(f"{value:.4g}") if math.isfinite(value) else None


def _measure(value: float | None) -> Measure:
    # numpy's numbers reach here too, which msgspec would not encode: float() makes them Python's own.
    return float(value) if value is not None and math.isfinite(value) else None


def _measures(values: FloatArray) -> tuple[Measure, ...]:
    if np.isfinite(values).all():
        return tuple(values.tolist())
    return tuple(_measure(value) for value in values.tolist())


def _plain_json(values: Mapping[str, Any], what: str) -> dict[str, Any]:
    """The values as they will be read back: through JSON and out of it, which also turns NaN and infinity into None."""
    try:
        plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(dict(values), enc_hook=_number_or_mapping))
    except TypeError as error:
        raise SpringtideError(f"{what} cannot be kept in a journal: {error}") from error
    return plain


def _number_or_mapping(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} is not JSON")
