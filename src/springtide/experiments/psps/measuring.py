"""The four metrics of section V-A 3, from what every time interval showed.

| metric | in the paper | here |
|---|---|---|
| saved resources | 1 - r / r_over, r the active replicas | the mean; r: the cores that active replicas may use at once |
| throughput degradation | abs(input rate - output rate) / input rate | the mean over the time intervals |
| processed share ("Diff. Proc. Events") | processed against received events | rows delivered over rows offered, at the end |
| latency | mean end-to-end time of an event | the mean over the rows delivered |

A replica uses one core at most, and the replicas of a host no more cores than it has. On the paper's hosts each active
replica has a core, so r is their number. tide has two replicas share a core: counted are the cores. The output rate is that
of delivered rows, in rows of the source: where an application sends on more or fewer rows than it gets, it is divided by that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from springtide.analyze.demand import gains
from springtide.model.action import Action
from springtide.model.allocation import Allocation
from springtide.model.application import Application
from springtide.model.decision import Decision, Outcome
from springtide.model.observation import Latency, Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """What one time interval showed; rows are rows of the source."""

    start_s: float
    seconds: float
    offered_rows: float
    delivered_rows: float
    replicas: int
    cores: int
    changed: bool
    downtime_s: float


@dataclass(slots=True)
class Intervals:
    """A `Recorder` that keeps what the metrics are made of."""

    rows_per_source_row: float
    kept: list[Interval] = field(default_factory=list)

    def observation(self, observation: Observation) -> None:
        cores = {name: host.cores for name, host in observation.hosts.items()}
        self.kept.append(
            Interval(
                start_s=observation.start_s,
                seconds=observation.interval_s,
                offered_rows=observation.offered_rows,
                delivered_rows=observation.latency.rows / self.rows_per_source_row,
                replicas=observation.observed.replicas,
                cores=usable_cores(observation.observed, cores),
                changed=any(observation.reconfigurations.values()),
                downtime_s=observation.downtime_s,
            )
        )

    def decision(self, observation: Observation, decision: Decision, actions: Sequence[Action]) -> None:
        """What was decided shows in the next interval."""

    def outcome(self, outcome: Outcome, time_s: float) -> None:
        """The metrics do not look at what was promised."""


def usable_cores(allocation: Allocation, cores: Mapping[str, int]) -> int:
    """The cores that the active replicas may use at once."""
    return sum(min(cores.get(host, 0), allocation.replicas_on(host)) for host in allocation.hosts)


def rows_delivered_per_source_row(application: Application) -> float:
    """How many rows leave the application for each that comes to it."""
    rows = gains(application)
    ends = [o.name for o in application.operators if not application.outputs(o.name)]
    return sum(source.share * rows[source.name][name] for source in application.sources for name in ends)


def metrics(intervals: Sequence[Interval], latency: Latency, over_provisioned: int) -> dict[str, float]:
    """The four metrics, and what stands behind them."""
    duration_s = sum(one.seconds for one in intervals)
    busy = [one for one in intervals if one.offered_rows > 0]
    mean_cores = sum(one.cores * one.seconds for one in intervals) / duration_s
    return {
        "saved_resources": 1 - mean_cores / over_provisioned,
        "throughput_degradation": sum(abs(o.offered_rows - o.delivered_rows) / o.offered_rows for o in busy) / len(busy),
        "processed_share": sum(o.delivered_rows for o in intervals) / sum(o.offered_rows for o in intervals),
        "latency_ms": latency.mean_s * 1000,
        "latency_p90_ms": latency.p90_s * 1000,
        "mean_cores": mean_cores,
        "mean_replicas": sum(one.replicas * one.seconds for one in intervals) / duration_s,
        "most_cores": float(max(one.cores for one in intervals)),
        "intervals_with_change": float(sum(one.changed for one in intervals)),
        "downtime_s": sum(one.downtime_s for one in intervals),
    }


def curves(intervals: Sequence[Interval]) -> dict[str, list[float]]:
    """What the paper's figures show over time; `start_s` is when each interval began."""
    return {
        "start_s": [one.start_s for one in intervals],
        "offered_rows_per_s": [round(one.offered_rows / one.seconds, 1) for one in intervals],
        "delivered_rows_per_s": [round(one.delivered_rows / one.seconds, 1) for one in intervals],
        "cores": [float(one.cores) for one in intervals],
    }
