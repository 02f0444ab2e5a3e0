"""DS2 as in the Flink autoscaler: as many replicas as the true processing rates call for, operator by operator.

V. Kalavri, J. Liagouris, M. Hoffmann, D. Dimitrova, M. Forshaw, T. Roscoe, "Three steps is all you need: fast, accurate,
automatic scaling decisions for distributed streaming dataflows", OSDI 2018: an operator that does r rows/s when busy all the
time, with p replicas, needs p * (rate it is offered) / r of them, and all operators are sized at once from the sources' rates.
What is built here is what users run: apache/flink-kubernetes-operator, module flink-autoscaler, classes `JobVertexScaler`,
`ScalingExecutor`, `ScalingMetricEvaluator`, `ScalingMetricCollector`, `AutoScalerOptions` (see `true_rates` too).

| Flink, job.autoscaler.* | here | default | unit |
|---|---|---|---|
| utilization.target | `utilisation_target` | 0.7 | share |
| utilization.max, utilization.min | `utilisation_target` +/- `utilisation_boundary` | 0.3 | share |
| metrics.window | `metrics_window_s` | 900 | s |
| metrics.busy-time.aggregator | `busy_time_aggregator` | max | |
| stabilization.interval | `stabilisation_interval_s` | 300 | s |
| scale-down.interval | `scale_down_interval_s` | 3600 | s |
| scale-down.max-factor, scale-up.max-factor | `scale_down_max_factor`, `scale_up_max_factor` | 0.6, 100000 | share |
| catch-up.duration | `catch_up_duration_s` | 1800 | s |
| restart.time | `restart_time_s` | 300 | s |
| backlog-processing.lag-threshold | `backlog_lag_threshold_s` | 300 | s |
| scaling.effectiveness.detection.enabled | `effectiveness_detection` | false | |
| scaling.effectiveness.threshold | `effectiveness_threshold` | 0.1 | share |
| vertex.min-parallelism, vertex.max-parallelism | 1 and the operator's `replica_limit` | | replicas |
| scaling.parallelism-alignment.mode | BALANCED (see `true_rates.capacity.aligned`) | | |

All defaults are Flink's; none depends on the control interval. The job "runs" from the time at which everything that was asked
for is in place, and anew whenever that changes; then it is stable after `stabilisation_interval_s`, and decided about when a
whole `metrics_window_s` has passed since.

Departures from Flink:

* Every edge is durable here, so every operator has a lag of its own, not only a source; what comes from upstream is added.
* A slot is a core and holds one replica. With Flink's slot sharing one replica of every operator would share it.
* Hosts follow the replicas; when the pool has too few, replicas share cores. A lost host is replaced at once.
* Target rates are not rounded to whole rows. The observed true processing rate (a cross-check of busy times while a source
  catches up), tracked restart times, observed scalability, memory tuning and excluded periods are left out.
* Only the last scale-up of an operator is remembered, without an age limit (Flink: three, for a day).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from springtide.errors import require
from springtide.model.allocation import Allocation
from springtide.model.application import Operator
from springtide.model.decision import Decision, Expectation, WhyNot
from springtide.model.observation import HostState
from springtide.model.protocols import View
from springtide.plan.placement.counts import allocate, hosts_for
from springtide.plan.placement.filling import busiest_utilisation
from springtide.plan.thresholds.wording import plural
from springtide.plan.true_rates.capacity import Capacity, aligned, catch_up_rates
from springtide.plan.true_rates.delay import DelayedScaleDown, Recommended
from springtide.plan.true_rates.window import BusyTime, Rates, Sample, averages, sample

_ROUNDING = 1e-9  # of seconds, or of replicas
_NAMED_OPERATORS = 3  # a reason that lists more than these is not read


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledUp:
    """The last scale-up of an operator: to how many replicas, from which true rate, and to which it should have come."""

    replicas: int
    rate_per_s: float
    expected_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ds2Memory:
    """What the autoscaler remembers.

    `observed`, `requested` and `hosts` are the allocations of the last interval and the hosts that were to stay; `asked` is
    what was planned then, and becomes `scaled_up` once it is seen to have been requested.
    """

    observed: Allocation | None = None
    requested: Allocation | None = None
    hosts: frozenset[str] = frozenset()
    running_since_s: float | None = None
    samples: tuple[Sample, ...] = ()
    delayed: Mapping[str, DelayedScaleDown] = field(default_factory=dict)
    asked: Mapping[str, ScaledUp] = field(default_factory=dict)
    scaled_up: Mapping[str, ScaledUp] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """One operator: the replicas it has and should have, the true rate it has, and the rates it is offered and must have."""

    operator: str
    current: int
    wanted: int
    rate_per_s: float
    demand_per_s: float
    needed_per_s: float
    outside: bool

    def __str__(self) -> str:
        return f"{self.operator} {self.current} -> {self.wanted} replicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """All operators, those that may change now, the scale-downs that still wait, and what is wanted and not done."""

    sizings: tuple[Sizing, ...]
    changes: tuple[Sizing, ...]
    delayed: Mapping[str, DelayedScaleDown]
    why_not: tuple[WhyNot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ds2:
    """Replicas times `needed rate / true rate`, where the needed rate has the operator busy for `utilisation_target` of the
    time and works off what waits within `catch_up_duration_s`.

    All operators change together, once one of them is beyond its target by more than `utilisation_boundary`.
    """

    name: ClassVar[str] = "ds2"
    summary: ClassVar[str] = "as many replicas as the true processing rates call for, as the Flink autoscaler does"
    reference: ClassVar[str] = (
        "V. Kalavri, J. Liagouris, M. Hoffmann, D. Dimitrova, M. Forshaw, T. Roscoe. Three steps is all you need: fast, "
        "accurate, automatic scaling decisions for distributed streaming dataflows. 13th USENIX Symposium on Operating Systems "
        "Design and Implementation (OSDI), 2018, pp. 783-798."
    )

    utilisation_target: float = 0.7
    utilisation_boundary: float = 0.3
    metrics_window_s: float = 900.0
    busy_time_aggregator: BusyTime = BusyTime.MAX
    stabilisation_interval_s: float = 300.0
    scale_down_interval_s: float = 3600.0
    scale_down_max_factor: float = 0.6
    scale_up_max_factor: float = 100_000.0
    catch_up_duration_s: float = 1800.0
    restart_time_s: float = 300.0
    backlog_lag_threshold_s: float = 300.0
    effectiveness_detection: bool = False
    effectiveness_threshold: float = 0.1

    def __post_init__(self) -> None:
        require(
            0 < self.utilisation_target <= 1,
            f"{self.name}: utilisation_target must be above 0 and at most 1, not {self.utilisation_target}",
        )
        for what in ("utilisation_boundary", "scale_down_max_factor", "effectiveness_threshold"):
            value = getattr(self, what)
            require(0 <= value <= 1, f"{self.name}: {what} must lie between 0 and 1, not {value}")
        for what in (
            *("metrics_window_s", "stabilisation_interval_s", "scale_down_interval_s", "scale_up_max_factor"),
            *("catch_up_duration_s", "restart_time_s", "backlog_lag_threshold_s"),
        ):
            value = getattr(self, what)
            require(math.isfinite(value) and value >= 0, f"{self.name}: {what} must be 0 or more, not {value}")

    def start(self) -> Ds2Memory:
        return Ds2Memory()

    def decide(self, view: View, memory: Ds2Memory) -> tuple[Decision, Ds2Memory]:
        lost = len(memory.hosts.difference(view.requested.hosts))
        memory = self._observing(view, memory)
        waiting = self._waiting(view, memory)
        if lost:
            planned = allocate(view, {}, len(view.requested.hosts) + lost)
            decision = self._decision(view, planned, f"{plural(lost, 'host')} lost: replace what is missing", ())
        elif waiting:
            decision = self._decision(view, view.requested, waiting, ())
        else:
            evaluation = self.evaluate(view, memory)
            decision = self._executed(view, evaluation)
            memory = replace(memory, delayed=evaluation.delayed, asked=_scale_ups(evaluation.changes))
        return decision, replace(memory, hosts=frozenset(view.requested.hosts).intersection(decision.planned.hosts))

    def _observing(self, view: View, memory: Ds2Memory) -> Ds2Memory:
        """With this interval's sample, or with none if something has changed: the job then runs anew."""
        rescaled = memory.requested is not None and _replicas(memory.requested) != _replicas(view.requested)
        since_s = view.observation.start_s if memory.running_since_s is None else memory.running_since_s
        samples = memory.samples
        if rescaled or not _in_place(view, memory.observed):
            since_s, samples = view.now_s, ()
        elif view.observation.start_s >= since_s + self.stabilisation_interval_s - _ROUNDING:
            samples = self._recent((*samples, sample(view, self.busy_time_aggregator)))
        return replace(
            memory,
            observed=view.observation.observed,
            requested=view.requested,
            running_since_s=since_s,
            samples=samples,
            delayed={} if rescaled else memory.delayed,
            asked={},
            scaled_up={**memory.scaled_up, **memory.asked} if rescaled else memory.scaled_up,
        )

    def _recent(self, samples: Sequence[Sample]) -> tuple[Sample, ...]:
        """Those of which something lies within the window, and the last one in any case."""
        begin_s = samples[-1].end_s - self.metrics_window_s
        return (*(s for s in samples[:-1] if s.end_s > begin_s + _ROUNDING), samples[-1])

    def _waiting(self, view: View, memory: Ds2Memory) -> str:
        """What it still has to wait for before it may decide, if anything."""
        assert memory.running_since_s is not None
        if not memory.samples:
            left_s = max(0.0, memory.running_since_s + self.stabilisation_interval_s - view.now_s)
            return f"hold: stable in {left_s:.0f} s, then {self.metrics_window_s:.0f} s of metrics"
        left_s = memory.samples[0].start_s + self.metrics_window_s - view.now_s
        return f"hold: the metrics window is full in {left_s:.0f} s" if left_s > _ROUNDING else ""

    def evaluate(self, view: View, memory: Ds2Memory) -> Evaluation:
        """What every operator should have from the averages over the window, and what of it may be done now."""
        sizings = self._sizings(view, averages(memory.samples))
        changes: list[Sizing] = []
        why_not: list[WhyNot] = []
        delayed: dict[str, DelayedScaleDown] = {}
        for sizing in sizings:
            if sizing.wanted == sizing.current:
                continue
            if sizing.wanted < sizing.current:
                down = delayed[sizing.operator] = self._delayed(view, memory, sizing)
                allowed = replace(sizing, wanted=down.highest.replicas, outside=down.highest.outside)
                veto = self._too_soon(view, down)
            else:
                allowed = sizing
                veto = self._ineffective(sizing, memory.scaled_up.get(sizing.operator))
            if veto:
                why_not.append(WhyNot(self.name, str(sizing), veto))
            else:
                changes.append(allowed)
        if not any(sizing.outside for sizing in changes):
            changes = []
        return Evaluation(sizings=sizings, changes=tuple(changes), delayed=delayed, why_not=tuple(why_not))

    def _sizings(self, view: View, rates: Rates) -> tuple[Sizing, ...]:
        backlogged = self._works_off_backlog(view, rates)
        extra_per_s = catch_up_rates(view, rates, self.catch_up_duration_s).tolist()
        columns = zip(rates.demand.tolist(), extra_per_s, rates.true_processing.tolist(), strict=True)
        return tuple(
            self._sizing(
                operator,
                view.requested.operators[operator.name].replicas,
                Capacity(
                    rate_per_s=demand,
                    catch_up_per_s=extra,
                    restart_s=self.restart_time_s,
                    catch_up_s=self.catch_up_duration_s,
                ),
                rate,
                backlogged,
            )
            for operator, (demand, extra, rate) in zip(view.application.operators, columns, strict=True)
        )

    def _sizing(self, operator: Operator, current: int, capacity: Capacity, rate_per_s: float, backlogged: bool) -> Sizing:
        # While a backlog is worked off, all replicas may be busy, and none is taken away.
        upper = 1.0 if backlogged else self.utilisation_target + self.utilisation_boundary
        lower = 0.0 if backlogged else self.utilisation_target - self.utilisation_boundary
        needed_per_s = capacity.at(self.utilisation_target)
        return Sizing(
            operator=operator.name,
            current=current,
            wanted=self.replicas(operator, current, needed_per_s / rate_per_s),
            rate_per_s=rate_per_s,
            demand_per_s=capacity.rate_per_s,
            needed_per_s=needed_per_s,
            outside=not capacity.at(upper, with_restart=False) <= rate_per_s <= capacity.at(lower),
        )

    def replicas(self, operator: Operator, current: int, factor: float) -> int:
        """`current` times the factor, rounded up, as far as one step may go, and such that shards are shared well."""
        factor = min(max(factor, 1 - self.scale_down_max_factor), 1 + self.scale_up_max_factor)
        wanted = min(max(math.ceil(factor * current - _ROUNDING), 1), operator.replica_limit)
        return wanted if wanted == current else aligned(operator, current, wanted)

    def _works_off_backlog(self, view: View, rates: Rates) -> bool:
        seen = view.observation.operators
        processed = zip(view.application.operators, rates.processed.tolist(), strict=True)
        return any(o.name in seen and seen[o.name].backlog_rows > self.backlog_lag_threshold_s * p for o, p in processed)

    def _delayed(self, view: View, memory: Ds2Memory, sizing: Sizing) -> DelayedScaleDown:
        latest = Recommended(time_s=view.now_s, replicas=sizing.wanted, outside=sizing.outside)
        before = memory.delayed.get(sizing.operator, DelayedScaleDown(first_s=view.now_s))
        return before.then(latest, self.scale_down_interval_s)

    def _too_soon(self, view: View, down: DelayedScaleDown) -> str:
        left_s = down.first_s + self.scale_down_interval_s - view.now_s
        return f"a scale-down has to wait for another {left_s:.0f} s" if left_s > _ROUNDING else ""

    def _ineffective(self, sizing: Sizing, last: ScaledUp | None) -> str:
        if not self.effectiveness_detection or last is None or last.replicas != sizing.current:
            return ""
        hoped_per_s, came_per_s = last.expected_per_s - last.rate_per_s, sizing.rate_per_s - last.rate_per_s
        if came_per_s >= self.effectiveness_threshold * hoped_per_s:
            return ""
        return f"the last scale-up brought {came_per_s:.0f} of {hoped_per_s:.0f} rows/s"

    def _executed(self, view: View, evaluation: Evaluation) -> Decision:
        if not evaluation.changes:
            return self._decision(view, view.requested, self._calm(evaluation.sizings), evaluation.why_not)
        replicas = {**_replicas(view.requested), **{s.operator: s.wanted for s in evaluation.changes}}
        hosts = hosts_for(view.pool, sum(replicas.values()))
        why_not = evaluation.why_not
        if sum(replicas.values()) > hosts * view.pool.host.cores:
            slots = f"the pool has no more than {view.pool.max_hosts * view.pool.host.cores}"
            why_not = (*why_not, WhyNot(self.name, f"a core for each of {sum(replicas.values())} replicas", slots))
        return self._decision(view, allocate(view, replicas, hosts), _described(evaluation.changes), why_not)

    def _calm(self, sizings: Sequence[Sizing]) -> str:
        busiest = max(sizings, key=lambda s: s.demand_per_s / s.rate_per_s)
        load = busiest.demand_per_s / busiest.rate_per_s
        target = f"target {self.utilisation_target:.2f} +/- {self.utilisation_boundary:.2f}"
        return f"hold: busiest {busiest.operator} is offered {load:.2f} of its true rate, {target}"

    def _decision(self, view: View, planned: Allocation, reason: str, why_not: tuple[WhyNot, ...]) -> Decision:
        expected = Expectation(utilisation=busiest_utilisation(view, planned))
        return Decision(planned=planned, reason=reason, expected=expected, why_not=why_not)


def _described(changes: Sequence[Sizing]) -> str:
    named = [f"{s} ({_rate(s.needed_per_s)} rows/s needed, {_rate(s.rate_per_s)} possible)" for s in changes[:_NAMED_OPERATORS]]
    more = [f"and {len(changes) - _NAMED_OPERATORS} operators more"] if len(changes) > _NAMED_OPERATORS else []
    return ", ".join(named + more)


def _rate(per_s: float) -> str:
    return f"{per_s:.0f}" if math.isfinite(per_s) else "any"


def _scale_ups(changes: Sequence[Sizing]) -> dict[str, ScaledUp]:
    return {
        s.operator: ScaledUp(replicas=s.wanted, rate_per_s=s.rate_per_s, expected_per_s=s.rate_per_s / s.current * s.wanted)
        for s in changes
        if s.wanted > s.current
    }


def _replicas(allocation: Allocation) -> dict[str, int]:
    return {name: placed.replicas for name, placed in allocation.operators.items()}


def _in_place(view: View, observed_before: Allocation | None) -> bool:
    """Everything that was asked for is there, and was there when the interval began."""
    observed, hosts = view.observation.observed, view.observation.hosts
    if observed_before is not None and observed is not observed_before and observed != observed_before:
        return False
    running = all(h in hosts and hosts[h].state is HostState.RUNNING for h in view.requested.hosts)
    return running and (observed is view.requested or observed.operators == view.requested.operators)
