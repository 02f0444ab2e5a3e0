"""What a run came to: the figures that every table, plot and JSON output is made from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from springtide.model.action import Action, SetTriggerInterval
from springtide.model.decision import Decision, Outcome
from springtide.model.observation import Latency, Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows over the whole run. What an operator is offered is processed, dropped, or left in its backlog.

    `arrived` adds up what all operators were offered, so that arrived = processed + dropped + backlog; `source` is
    what the sources offered, `delivered` what left the application at its end.
    """

    source: float
    arrived: float
    processed: float
    dropped: float
    backlog: float
    delivered: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRows:
    name: str
    arrived: float
    processed: float
    dropped: float
    backlog: float
    mean_replicas: float
    utilisation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilisation:
    """Of hosts: the least, mean and most loaded one at each measurement, averaged over all measurements."""

    min: float
    mean: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """One run. Times in seconds, unless the name says otherwise."""

    trace: str
    application: str
    policy: str
    parameters: dict[str, object]
    seed: int
    duration_s: float
    intervals: int
    rows: Rows
    operators: tuple[OperatorRows, ...]
    core_hours: float
    peak_core_hours: float  # what it would have been with the most hosts of the run all the time
    mean_replicas: float
    mean_hosts: float
    max_hosts: int
    host_utilisation: Utilisation
    latency: Latency
    slo_latency_s: float
    slo_percentile: float
    slo_violation_share: float  # rows that were late, were dropped, or still wait, among all of them
    slo_kept: bool
    downtime_s: float
    reconfigurations: dict[str, int]
    decisions_with_change: int
    vetoes: int
    wall_s: float
    gaps_filled: int = 0
    live: bool = False  # on Spark, not simulated


@dataclass(frozen=True, slots=True, kw_only=True)
class Overcounted:
    """Rows that a live run took to have come and that had not when it ended: from all sources, and at each operator."""

    sources: float
    operators: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One interval of a run, as a plot shows it."""

    time_s: float
    offered_per_s: float
    backlog_rows: float
    replicas: int
    hosts: int
    utilisation: float
    utilisation_max: float
    latency_p50_s: float
    latency_p90_s: float
    latency_p99_s: float
    changed: bool


@dataclass(slots=True)
class _OperatorTotals:
    arrived: float = 0.0
    processed: float = 0.0
    dropped: float = 0.0
    replica_s: float = 0.0
    busy_s: float = 0.0


@dataclass(slots=True)
class RunTotals:
    """A `Recorder` that adds up a run as it goes; memory grows with the number of intervals only, for the plot."""

    points: list[Point] = field(default_factory=list)
    _totals: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    _operators: dict[str, _OperatorTotals] = field(default_factory=dict)
    _reconfigurations: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    _last: Observation | None = None

    def observation(self, observation: Observation) -> None:
        seconds = observation.interval_s
        loads = [h.utilisation for h in observation.running_hosts] or [0.0]
        mean = sum(loads) / len(loads)
        _add(
            self._totals,
            {
                "intervals": 1,
                "source": observation.offered_rows,
                "core_s": observation.core_s,
                "replica_s": observation.observed.replicas * seconds,
                "host_s": len(observation.hosts) * seconds,
                "downtime_s": observation.downtime_s,
                "delivered": observation.latency.rows,
                "load_min": min(loads),
                "load_mean": mean,
                "load_max": max(loads),
            },
        )
        _add(self._reconfigurations, observation.reconfigurations)
        for name, seen in observation.operators.items():
            total = self._operators.get(name)
            if total is None:
                total = self._operators[name] = _OperatorTotals()
            replica_s = observation.observed.operators[name].replicas * seconds
            total.arrived += seen.offered_rows
            total.processed += seen.processed_rows
            total.dropped += seen.dropped_rows
            total.replica_s += replica_s
            total.busy_s += seen.utilisation * replica_s
        self._last = observation
        self.points.append(
            Point(
                time_s=observation.end_s,
                offered_per_s=observation.offered_rows / seconds,
                backlog_rows=observation.backlog_rows,
                replicas=observation.observed.replicas,
                hosts=len(observation.hosts),
                utilisation=mean,
                utilisation_max=max(loads),
                latency_p50_s=observation.latency.p50_s,
                latency_p90_s=observation.latency.p90_s,
                latency_p99_s=observation.latency.p99_s,
                changed=any(observation.reconfigurations.values()),
            )
        )

    def decision(self, observation: Observation, decision: Decision, actions: Sequence[Action]) -> None:  # noqa: ARG002
        # How often batches start changes without moving anything: it is no reconfiguration.
        self._totals["changes"] += any(not isinstance(action, SetTriggerInterval) for action in actions)
        self._totals["vetoes"] += len(decision.why_not)

    def outcome(self, outcome: Outcome, time_s: float) -> None:
        """Outcomes are the journal's; a summary has no figure for them."""

    def summary(self, about: About, latency: Latency, wall_s: float, overcounted: Overcounted | None = None) -> RunSummary:
        """The figures of the run, without the rows that were only thought to have come."""
        over = overcounted or Overcounted(sources=0.0, operators={})
        last = self._last
        if last is None:
            raise RuntimeError("a run without an interval has no summary")
        operators = tuple(self._operator_rows(name, last, over.operators.get(name, 0.0)) for name in self._operators)
        undelivered = sum(o.dropped + o.backlog for o in operators)
        late = latency.violation_share * latency.rows + undelivered
        violation_share = late / (latency.rows + undelivered) if late > 0 else 0.0
        duration_s, intervals = last.end_s, self._totals["intervals"]
        most_hosts = max(p.hosts for p in self.points)
        cores = next(iter(last.hosts.values())).cores
        return RunSummary(
            trace=about.trace,
            application=about.application,
            policy=about.policy,
            parameters=about.parameters,
            seed=about.seed,
            duration_s=duration_s,
            intervals=int(intervals),
            rows=Rows(
                source=self._totals["source"] - over.sources,
                arrived=sum(o.arrived for o in operators),
                processed=sum(o.processed for o in operators),
                dropped=sum(o.dropped for o in operators),
                backlog=sum(o.backlog for o in operators),
                delivered=self._totals["delivered"],
            ),
            operators=operators,
            core_hours=self._totals["core_s"] / 3600,
            peak_core_hours=most_hosts * cores * duration_s / 3600,
            mean_replicas=self._totals["replica_s"] / duration_s,
            mean_hosts=self._totals["host_s"] / duration_s,
            max_hosts=most_hosts,
            host_utilisation=Utilisation(
                min=self._totals["load_min"] / intervals,
                mean=self._totals["load_mean"] / intervals,
                max=self._totals["load_max"] / intervals,
            ),
            latency=latency,
            slo_latency_s=about.slo_latency_s,
            slo_percentile=about.slo_percentile,
            slo_violation_share=violation_share,
            slo_kept=violation_share <= 1 - about.slo_percentile,
            downtime_s=self._totals["downtime_s"],
            reconfigurations={kind: int(count) for kind, count in sorted(self._reconfigurations.items())},
            decisions_with_change=int(self._totals["changes"]),
            vetoes=int(self._totals["vetoes"]),
            wall_s=wall_s,
            gaps_filled=about.gaps_filled,
            live=about.live,
        )

    def _operator_rows(self, name: str, last: Observation, overcounted: float) -> OperatorRows:
        total = self._operators[name]
        return OperatorRows(
            name=name,
            arrived=total.arrived - overcounted,
            processed=total.processed,
            dropped=total.dropped,
            backlog=last.operators[name].backlog_rows,
            mean_replicas=total.replica_s / last.end_s,
            utilisation=total.busy_s / total.replica_s,
        )


def _add(totals: defaultdict[str, float], amounts: Mapping[str, float]) -> None:
    for name, amount in amounts.items():
        totals[name] += amount


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What was run."""

    trace: str
    application: str
    policy: str
    parameters: dict[str, object]
    seed: int
    slo_latency_s: float
    slo_percentile: float
    gaps_filled: int = 0
    live: bool = False
