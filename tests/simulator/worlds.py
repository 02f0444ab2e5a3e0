"""Small simulated worlds for tests: an application, rows that come to it, and what was seen of it.

    app = one_operator(service_time_s=0.01)                     # 100 rows/s on each replica
    run = simulate(app, steady(150, seconds=60), replicas=2)    # one host with cores enough, no surprises
    run.processed("work"), run.latency.p90_s

Nothing here is random and nothing costs time unless the test says so: hosts start at once, the network has no delay,
moving a shard needs no agreement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from springtide.backends.simulator.backend import SimulatorBackend
from springtide.backends.simulator.settings import Moves, SimulatorSettings
from springtide.execute.diff import actions as actions_between
from springtide.model.action import Action
from springtide.model.allocation import Allocation, HostType, Pool, spread
from springtide.model.application import Application, Edge, Grouping, Operator
from springtide.model.observation import Latency, Observation, OperatorObservation

FREE: dict[str, Any] = {"network_delay_s": 0.0, "moves": Moves(synchronisation_s=0.0)}


def operator(name: str = "work", **fields: Any) -> Operator:
    """One queue for all replicas, 10 ms a row, unless told otherwise."""
    return Operator(**{"name": name, "service_time_s": 0.01, "grouping": Grouping.SHARED, **fields})


def one_operator(**fields: Any) -> Application:
    timeout = {"timeout_s": fields.pop("timeout_s")} if "timeout_s" in fields else {}
    return Application(name="one", operators=(operator(**fields),), **timeout)


def chain(*operators: Operator, **fields: Any) -> Application:
    edges = tuple(Edge(upstream=a.name, downstream=b.name) for a, b in pairwise(operators))
    return Application(**{"name": "chain", "operators": operators, "edges": edges, **fields})


def steady(rate_per_s: float, *, seconds: float, step_s: float = 1.0) -> NDArray[np.float64]:
    """The rows of one source that never changes its rate."""
    return np.full((1, round(seconds / step_s)), rate_per_s * step_s)


def phases(*rates_and_seconds: tuple[float, float], step_s: float = 1.0) -> NDArray[np.float64]:
    """The rows of one source: a rate for some seconds, then another."""
    return np.concatenate([steady(rate, seconds=seconds, step_s=step_s) for rate, seconds in rates_and_seconds], axis=1)


def backend(
    application: Application,
    rows: NDArray[np.float64],
    *,
    hosts: int = 1,
    cores: int = 64,
    replicas: int | Mapping[str, int] = 1,
    host: Mapping[str, Any] | None = None,
    max_hosts: int = 10,
    start: Allocation | None = None,
    seed: int = 0,
    **settings: Any,
) -> SimulatorBackend:
    """The application on `hosts` hosts; `settings` are the simulator's own."""
    wanted = replicas if isinstance(replicas, Mapping) else {o.name: replicas for o in application.operators}
    names = tuple(f"host-{i}" for i in range(hosts))
    return SimulatorBackend(
        application,
        Pool(host=HostType(**{"cores": cores, "start_s": 0.0, "release_s": 0.0, **(host or {})}), max_hosts=max_hosts),
        SimulatorSettings(**{**FREE, **settings}),
        rows,
        seed=seed,
        start=start or spread(application, names, wanted),
    )


@dataclass(frozen=True)
class Run:
    """What was observed of a backend, interval by interval and in all."""

    backend: SimulatorBackend
    observations: tuple[Observation, ...]

    @property
    def latency(self) -> Latency:
        return self.backend.latency_of_run()

    @property
    def last(self) -> Observation:
        return self.observations[-1]

    def of(self, operator: str) -> list[OperatorObservation]:
        return [o.operators[operator] for o in self.observations]

    def offered(self, operator: str = "work") -> float:
        return sum(o.offered_rows for o in self.of(operator))

    def processed(self, operator: str = "work") -> float:
        return sum(o.processed_rows for o in self.of(operator))

    def dropped(self, operator: str = "work") -> float:
        return sum(o.dropped_rows for o in self.of(operator))

    def backlog(self, operator: str = "work") -> float:
        return self.of(operator)[-1].backlog_rows

    def at(self, time_s: float) -> Observation:
        """The observation of the interval that ends at `time_s`."""
        return next(o for o in self.observations if abs(o.end_s - time_s) < 1e-9)


def observe(
    world: SimulatorBackend,
    *,
    every_s: float | None = None,
    until_s: float | None = None,
    script: Mapping[float, Sequence[Action] | Allocation] | None = None,
) -> Run:
    """Let time pass, observing every so often; at the times in `script`, ask for actions or for a whole allocation."""
    until_s = world.duration_s if until_s is None else until_s
    every_s = until_s if every_s is None else every_s
    wanted = dict(script or {})
    ends = {round(n * every_s, 9) for n in range(1, int(until_s / every_s + 1e-9) + 1)} | {until_s} | set(wanted)
    seen = []
    for end_s in sorted(ends):
        if end_s > world.clock.now_s():
            world.clock.advance_to(end_s)
            seen.append(world.observe())
        if end_s in wanted:
            asked = wanted.pop(end_s)
            if isinstance(asked, Allocation):
                asked = actions_between(seen[-1].requested, asked)
            world.apply(asked)
    return Run(world, tuple(seen))


def simulate(
    application: Application,
    rows: NDArray[np.float64],
    *,
    every_s: float | None = None,
    script: Mapping[float, Sequence[Action] | Allocation] | None = None,
    **world: Any,
) -> Run:
    """The whole trace through a world of its own."""
    return observe(backend(application, rows, **world), every_s=every_s, script=script)
