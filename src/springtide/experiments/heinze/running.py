"""One run of an auto-scaling technique over a day, and the paper's own figures of it.

A measurement point is the end of an interval: the load of the least, the mean and the most loaded running host, and the
mean over all queries of the latency that each had in the interval. Loads are averaged over all points; of latencies there
are the 10th, 50th and 90th percentile over all points (section V). A query from which nothing came in an interval has no
latency in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from springtide.backends.simulator.backend import SimulatorBackend
from springtide.experiments.heinze.world import World, day, world
from springtide.experiments.study import Values
from springtide.forecast.running.choosing import forecast_for
from springtide.loop import ControlLoop
from springtide.model.action import Action
from springtide.model.decision import Decision, Outcome
from springtide.model.observation import HostState, Observation
from springtide.model.protocols import AnyPolicy, Recorder
from springtide.plan.registry import make_policy


@dataclass(slots=True)
class Points:
    """A `Recorder` of the paper's measurement points."""

    loads: list[tuple[float, float, float]] = field(default_factory=list)
    latencies_s: list[float] = field(default_factory=list)
    hosts: list[int] = field(default_factory=list)
    changes: dict[str, int] = field(default_factory=dict)

    def observation(self, observation: Observation) -> None:
        loads = [host.utilisation for host in observation.hosts.values() if host.state is HostState.RUNNING]
        self.loads.append((min(loads), sum(loads) / len(loads), max(loads)))
        latencies_s = [query.latency_s for query in observation.operators.values() if query.processed_rows > 0]
        if latencies_s:
            self.latencies_s.append(sum(latencies_s) / len(latencies_s))
        self.hosts.append(len(observation.hosts))
        for kind, count in observation.reconfigurations.items():
            self.changes[kind] = self.changes.get(kind, 0) + count

    def decision(self, observation: Observation, decision: Decision, actions: Sequence[Action]) -> None:
        """The paper has no figure for decisions."""

    def outcome(self, outcome: Outcome, time_s: float) -> None:
        """Nor for outcomes."""

    def figures(self) -> dict[str, float]:
        """All figures of a run, in units of hosts' capacity, milliseconds, and numbers of hosts and changes."""
        least, mean, most = np.array(self.loads).mean(axis=0).tolist()
        p10, p50, p90 = (1000 * np.percentile(self.latencies_s, (10, 50, 90))).tolist()
        return {
            "load_min": least,
            "load_mean": mean,
            "load_max": most,
            "latency_p10_ms": p10,
            "latency_p50_ms": p50,
            "latency_p90_ms": p90,
            "latency_mean_ms": 1000 * float(np.mean(self.latencies_s)),
            "hosts": float(np.mean(self.hosts)),
            "moves": self.changes.get("shards_moved", 0),
            "hosts_added": self.changes.get("hosts_added", 0),
            "points": len(self.loads),
        }


def run(parameters: Values, seed: int) -> Values:
    """A technique with its parameters, for a day. The seed draws the queries and the arrivals."""
    points = Points()
    policy = make_policy(parameters["technique"], parameters["with"])
    simulate(world(parameters["day"], seed), policy, points, seed)
    return {**points.figures(), "ticks": day(parameters["day"]).origin}


def simulate(place: World, policy: AnyPolicy, recorder: Recorder, seed: int) -> None:
    """As `springtide.simulation.Simulation` does, but every source has rows of its own, not a share of one trace."""
    backend = SimulatorBackend(place.application, place.pool, place.settings, place.rows, seed=seed, start=place.start)
    interval_s = place.settings.interval_s
    with forecast_for(policy, interval_s) as forecast:
        loop = ControlLoop(
            application=place.application, pool=place.pool, policy=policy, interval_s=interval_s, forecast=forecast
        )
        loop.run(backend, recorder, backend.duration_s)
