"""Figures 10 to 12: how far one elastic executor scales with the cores it is given, on its own node and on others.

Rules. The executor has the cores of a run from its start to its end; what the policy decides is which of them serves which
shard. Rows enter at the executor's node and go on from there to its cores on other nodes. The source makes more rows than all
cores could do, and is held back by full queues and links (`backpressure`); for the latency it makes 60 % of what they could do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from springtide.backends.simulator.settings import SimulatorSettings
from springtide.experiments.elasticutor import paper, world
from springtide.experiments.elasticutor import paper_single as single
from springtide.experiments.elasticutor.backpressure import BackpressureBackend, Generator, Limits
from springtide.experiments.elasticutor.world import ELASTIC, TIDE
from springtide.experiments.study import Values
from springtide.forecast.running.choosing import forecast_for
from springtide.loop import ControlLoop
from springtide.model.action import Action
from springtide.model.allocation import Allocation, HostType, OperatorAllocation, Pool, new_host_names
from springtide.model.application import Application, KeyDistribution, Operator
from springtide.model.decision import Decision, Outcome
from springtide.model.observation import Observation
from springtide.model.protocols import AnyPolicy
from springtide.plan.registry import make_policy

APPROACHES = (ELASTIC, TIDE)
SHARDS = paper.EXECUTORS * paper.SHARDS_PER_EXECUTOR  # of an operator
CORES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
QUICK_CORES = (1, 8, 16, 64, 256)
TUPLE_COSTS_MS = (0.01, 0.1, 1.0, 10.0)
TUPLE_SIZES = (128, 512, 2048, 8192)
DATA_SETTINGS = (
    *((cost_ms, paper.ROW_BYTES) for cost_ms in TUPLE_COSTS_MS),
    *((paper.SERVICE_TIME_S * 1e3, size) for size in TUPLE_SIZES if size != paper.ROW_BYTES),
)
STATE_SIZES = (paper.STATE_BYTES_PER_SHARD, single.MB, single.LARGE_STATE_BYTES)
SHUFFLES_PER_MINUTE = (2, 16)


_CALCULATOR = "calculator"
_BALANCED_S = 6.0  # by then the first shards are balanced
_BETWEEN_SHUFFLES_S = 15.0  # half of 30 s: a minute from then on begins and ends between two shuffles


# --- one run --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One executor in one workload."""

    approach: str
    cores: int
    service_time_s: float = paper.SERVICE_TIME_S
    row_bytes: int = paper.ROW_BYTES
    state_bytes: int = paper.STATE_BYTES_PER_SHARD
    shuffles_per_minute: float = 0.0
    shards: int = SHARDS

    @property
    def cores_could_do_per_s(self) -> float:
        return self.cores / self.service_time_s

    @property
    def replicas(self) -> int:
        """An executor has one for each core; tide wants two, and is not made to move half of all state to get them."""
        return self.cores if self.approach == ELASTIC else min(2 * self.cores, self.shards)

    def application(self) -> Application:
        calculator = Operator(
            name=_CALCULATOR,
            service_time_s=self.service_time_s,
            shards=self.shards,
            max_replicas=self.replicas,
            state_bytes_per_shard=self.state_bytes,
            row_bytes=self.row_bytes,
            keys=KeyDistribution(keys=paper.KEYS, zipf=paper.ZIPF, shuffles_per_minute=self.shuffles_per_minute),
        )
        return Application(name="one executor", operators=(calculator,))

    def pool(self) -> Pool:
        """Whole nodes; with fewer cores than a node has, one smaller node."""
        cores = min(self.cores, paper.CORES_PER_NODE)
        nodes = math.ceil(self.cores / cores)
        host = HostType(cores=cores, bandwidth_bytes_per_s=paper.BANDWIDTH_BYTES_PER_S)
        return Pool(host=host, min_hosts=nodes, max_hosts=nodes)

    def start(self) -> Allocation:
        """The replicas side by side, those of the executor's own node first."""
        hosts = new_host_names(frozenset(), self.pool().max_hosts)
        replica_hosts = tuple(hosts[replica * len(hosts) // self.replicas] for replica in range(self.replicas))
        routes = tuple(shard % self.replicas for shard in range(self.shards))
        return Allocation(hosts, {_CALCULATOR: OperatorAllocation(replica_hosts, routes)})

    def limits(self) -> Limits:
        """An executor has an entrance; with tide, whose replicas are not an executor's, rows go to them directly."""
        return Limits(queue_s=world.QUEUE_S, executors=1 if self.approach == ELASTIC else 0)

    def policy(self) -> AnyPolicy:
        if self.approach == ELASTIC:
            return make_policy(ELASTIC, {"executors": 1, "theta": single.THETA})
        return make_policy(TIDE, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """How long is simulated before anything counts and after that, and how finely."""

    warm_up_s: float
    window_s: float
    step_s: float = world.STEP_S


@dataclass(slots=True)
class _Window:
    """A recorder of what left the application after the warm-up."""

    backend: BackpressureBackend
    from_s: float
    rows: float = 0.0
    p99_s: list[float] = field(default_factory=list)
    moved: int = 0
    waited_before_row_s: float = 0.0

    def observation(self, observation: Observation) -> None:
        if observation.start_s < self.from_s:
            self.waited_before_row_s = self.backend.waited_row_s
            return
        self.rows += observation.latency.rows
        self.p99_s.append(observation.latency.p99_s)
        self.moved += observation.reconfigurations.get("shards_moved", 0)

    @property
    def waited_s(self) -> float:
        """The mean time that a row waited at the source."""
        return (self.backend.waited_row_s - self.waited_before_row_s) / max(self.rows, 1.0)

    def decision(self, observation: Observation, decision: Decision, actions: Sequence[Action]) -> None:
        """Only what came of decisions counts here."""

    def outcome(self, outcome: Outcome, time_s: float) -> None:
        """What became of a promise is not asked here."""


def measure(setting: Setting, load: float, span: Span, seed: int) -> dict[str, float]:
    """Rows per second, and the p99 latency with the time a row waits at the source."""
    rows_per_s = load * setting.cores_could_do_per_s
    application, pool, policy = setting.application(), setting.pool(), setting.policy()
    settings = SimulatorSettings(step_s=span.step_s, interval_s=world.INTERVAL_S, moves=single.MOVES[ELASTIC])
    generator = Generator(
        rows_per_s=rows_per_s, duration_s=span.warm_up_s + span.window_s, buffer_rows=max(1.0, world.BUFFER_S * rows_per_s)
    )
    backend = BackpressureBackend(application, pool, settings, generator, setting.limits(), seed=seed, start=setting.start())
    window = _Window(backend, span.warm_up_s)
    with forecast_for(policy, world.INTERVAL_S) as forecast:
        loop = ControlLoop(application=application, pool=pool, policy=policy, interval_s=world.INTERVAL_S, forecast=forecast)
        loop.run(backend, window, backend.duration_s)
    return {
        "rows_per_s": round(window.rows / span.window_s, 3),
        "p99_s": round(float(np.mean(window.p99_s)) + window.waited_s, 6),
        "shards_moved": window.moved,
    }


# --- the runs -------------------------------------------------------------------------------------------------------


def runs(quick: bool) -> list[tuple[Values, int]]:
    """The quick variant has fewer numbers of cores, and tide with two of them only."""
    cores = QUICK_CORES if quick else CORES
    window_s = 3.0 if quick else 12.0
    found: list[tuple[Values, int]] = [
        (_data_parameters(approach, count, cost_ms, size, SHARDS, window_s), 0)
        for cost_ms, size in DATA_SETTINGS
        for approach in APPROACHES
        for count in (cores if approach == ELASTIC or not quick else (8, 256))
    ]
    found.append(
        (
            _data_parameters(
                ELASTIC, CORES[-1], paper.SERVICE_TIME_S * 1e3, paper.ROW_BYTES, paper.SHARDS_PER_EXECUTOR, window_s
            ),
            0,
        )
    )
    found += [
        (
            {
                "figure": "12",
                "approach": approach,
                "cores": count,
                "state_bytes": size,
                "shuffles_per_minute": shuffles,
                "window_s": 60.0,
            },
            0,
        )
        for shuffles in SHUFFLES_PER_MINUTE
        for size in STATE_SIZES
        for approach in APPROACHES
        for count in ((64, 256) if quick else cores[3:])
    ]
    return found


def _data_parameters(approach: str, cores: int, cost_ms: float, size: int, shards: int, window_s: float) -> Values:
    return {
        "figure": "10",
        "approach": approach,
        "cores": cores,
        "tuple_ms": cost_ms,
        "row_bytes": size,
        "shards": shards,
        "window_s": window_s,
    }


def run(parameters: Values, seed: int) -> Values:
    approach, cores = parameters["approach"], parameters["cores"]
    if parameters["figure"] == "12":
        changing = Setting(
            approach=approach,
            cores=cores,
            state_bytes=parameters["state_bytes"],
            shuffles_per_minute=parameters["shuffles_per_minute"],
        )
        return measure(changing, world.ALL_CORES, Span(warm_up_s=_BETWEEN_SHUFFLES_S, window_s=parameters["window_s"]), seed)
    steady = Setting(
        approach=approach,
        cores=cores,
        service_time_s=parameters["tuple_ms"] / 1e3,
        row_bytes=parameters["row_bytes"],
        shards=parameters["shards"],
    )
    span = Span(warm_up_s=_BALANCED_S, window_s=parameters["window_s"])
    full, part = measure(steady, world.ALL_CORES, span, seed), measure(steady, world.MOST_CORES, span, seed)
    return {"rows_per_s": full["rows_per_s"], "p99_s": part["p99_s"], "p99_load": world.MOST_CORES}
