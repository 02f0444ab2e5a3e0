"""One run of the taxi application under one policy, and the figures that the paper tells of it.

A reconfiguration is one operator's change, as each takes a token in the paper: a scale-out, a scale-in, or a migration of
replicas. Several that are granted at once stop the application once: that is a stop. Availability is the share of time in which
the application was not stopped. The response time of an interval is the 99th percentile of the rows that left in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from springtide.experiments.edf import paper, policies, world
from springtide.experiments.study import Values
from springtide.model.action import Action, MoveShards, SetReplicas
from springtide.model.decision import Decision, Outcome
from springtide.model.observation import Observation
from springtide.report.summary import Point, RunSummary
from springtide.simulation import Simulation

SCALE_OUT, SCALE_IN, MIGRATION = "scale-outs", "scale-ins", "migrations"


@dataclass(slots=True)
class Reconfigurations:
    """A `Recorder` that counts what operators were asked to become, by kind, and when the number of replicas changed."""

    duration_s: float
    kinds: Counter[str] = field(default_factory=Counter)
    stops_s: list[float] = field(default_factory=list)

    def observation(self, observation: Observation) -> None:
        """What was measured is in the summary."""

    def decision(self, observation: Observation, decision: Decision, actions: Sequence[Action]) -> None:  # noqa: ARG002
        if observation.end_s >= self.duration_s:  # nothing of it is seen any more
            return
        changed = {a.operator: len(a.replica_hosts) - a.before for a in actions if isinstance(a, SetReplicas)}
        moved = {a.operator for a in actions if isinstance(a, MoveShards)} - set(changed)
        more = [name for name, by in changed.items() if by > 0]
        fewer = [name for name, by in changed.items() if by < 0]
        self.kinds[SCALE_OUT] += len(more)
        self.kinds[SCALE_IN] += len(fewer)
        self.kinds[MIGRATION] += len(changed) + len(moved) - len(more) - len(fewer)
        if more or fewer:
            self.stops_s.append(observation.end_s)

    def outcome(self, outcome: Outcome, time_s: float) -> None:
        """What became of expectations is not the paper's question."""


def run(parameters: Values, seed: int) -> Values:
    """The run that the parameters name: `policy`, and whatever of `world.Setting` differs. Only the first seed has a series."""
    name = str(parameters["policy"])
    setting = world.Setting(**{key: value for key, value in parameters.items() if key != "policy"})
    application = world.application(setting.bottleneck_s)
    trace = world.trace(setting.replay_s, setting.first_day)
    counted = Reconfigurations(duration_s=trace.duration_s)
    summary, points = Simulation(
        trace=trace,
        application=application,
        pool=world.pool(),
        settings=setting.settings(),
        policy=policies.policy_of(name, seed=seed, stop_s=setting.stop_s),
        policy_name=name,
        seed=seed,
        start=world.start(application, world.PEAK_REPLICAS if name == policies.STATIC_MANY else {}),
    ).run([counted])
    found = {"trace": trace.name, **_figures(summary, points, counted)}
    return found if seed else {**found, "series": _series(points)}


def _figures(summary: RunSummary, points: Sequence[Point], counted: Reconfigurations) -> Values:
    return {
        "duration_s": summary.duration_s,
        "availability": 1 - summary.downtime_s / summary.duration_s,
        "downtime_s": summary.downtime_s,
        "reconfigurations": counted.kinds.total(),
        "kinds": dict(counted.kinds),
        "stops_s": counted.stops_s,
        "mean_replicas": summary.mean_replicas,
        "most_replicas": max(point.replicas for point in points),
        "fewest_after_most": fewest_after_most([point.replicas for point in points]),
        "mean_hosts": summary.mean_hosts,
        "core_hours": summary.core_hours,
        "response_mean_s": summary.latency.mean_s,
        "response_p50_s": summary.latency.p50_s,
        "response_p90_s": summary.latency.p90_s,
        "response_p99_s": summary.latency.p99_s,
        "late_share": summary.slo_violation_share,
        "late_intervals": sum(point.latency_p99_s > paper.R_MAX_S for point in points),
    }


def fewest_after_most(replicas: Sequence[int]) -> int:
    """To how few replicas it comes down once it has had its most.

    >>> fewest_after_most([8, 9, 10, 9, 10])
    9
    """
    return min(replicas[replicas.index(max(replicas)) :])


def _series(points: Sequence[Point]) -> Values:
    return {
        "time_s": [point.time_s for point in points],
        "offered_per_s": [round(point.offered_per_s, 1) for point in points],
        "response_p50_s": [round(point.latency_p50_s, 4) for point in points],
        "response_p99_s": [round(point.latency_p99_s, 4) for point in points],
        "replicas": [point.replicas for point in points],
        "hosts": [point.hosts for point in points],
    }
