"""An application whose load drifts and whose popular keys change, as a policy sees it: interval by interval, without a backend.

Nothing is simulated: what was planned is there in the next interval, every replica is as busy as its shards make it, and
never busier than a core. So the figures fit together, and making a view takes no longer than deciding on it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from springtide.model.allocation import Allocation, HostType, OperatorAllocation, Pool, spread
from springtide.model.application import Application, Edge, Operator
from springtide.model.observation import (
    FloatArray,
    HostObservation,
    HostState,
    Latency,
    Observation,
    OperatorObservation,
    ShardLoads,
)
from springtide.model.protocols import Forecast, View

INTERVAL_S = 30.0
SERVICE_S = 0.001  # as in Elasticutor, section 5.1, like the keys, their skew, and the state
KEYS = 10_000
ZIPF = 0.5
STATE_BYTES = 32 * 1024
FORECAST_STEPS = 30
_KEPT = 0.95  # of what the load is away from its mean, with each interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large an application and its cluster are; replicas and shards are each operator's.

    There may be twice as many hosts: a policy that wants them half idle shall have something to decide, too.
    """

    hosts: int
    operators: int = 12
    replicas: int = 32
    shards: int = 256
    cores: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How the load changes from interval to interval; `busy` is the share of the first hosts' cores that it takes."""

    busy: float = 0.8
    step: float = 0.02  # the standard deviation of a step of the whole load, and of each operator's, relative
    jump_chance: float = 0.1  # of one operator's load by up to a third
    shuffle_chance: float = 0.25  # of one operator's keys trading places


class World:
    """What happens is a function of the size, the drift and the seed; what a policy sees, of that and its own plans."""

    def __init__(self, size: Size, drift: Drift, seed: int) -> None:
        self.size = size
        self.drift = drift
        self.chance = np.random.default_rng(seed)
        names = [f"operator-{i}" for i in range(size.operators)]
        self.application = Application(
            name="drifting",
            operators=tuple(
                Operator(
                    name=name,
                    service_time_s=SERVICE_S,
                    shards=size.shards,
                    max_replicas=size.shards,
                    state_bytes_per_shard=STATE_BYTES,
                )
                for name in names
            ),
            edges=tuple(Edge(upstream=a, downstream=b) for a, b in itertools.pairwise(names)),
        )
        self.pool = Pool(host=HostType(cores=size.cores), min_hosts=1, max_hosts=2 * size.hosts)
        self.level = drift.busy * size.hosts * size.cores / size.operators / SERVICE_S
        self.whole, self.factors = 1.0, np.ones(size.operators)
        self.shares = [self._keys() for _ in names]
        self.index = 0

    @cached_property
    def start(self) -> Allocation:
        """Every operator with its replicas, dealt over all hosts."""
        hosts = tuple(f"host-{i}" for i in range(self.size.hosts))
        return spread(self.application, hosts, {o.name: self.size.replicas for o in self.application.operators})

    def advance(self) -> None:
        """One interval later. The load keeps coming back to its mean."""
        drift, chance = self.drift, self.chance
        self.index += 1
        self.whole = (1.0 + (self.whole - 1.0) * _KEPT) * float(np.exp(chance.normal(0, drift.step)))
        self.factors = (1.0 + (self.factors - 1.0) * _KEPT) * np.exp(chance.normal(0, drift.step, len(self.factors)))
        if chance.random() < drift.jump_chance:
            self.factors[chance.integers(len(self.factors))] *= chance.uniform(0.75, 1.33)
        if chance.random() < drift.shuffle_chance:
            self.shares[chance.integers(len(self.shares))] = self._keys()

    def view(self, requested: Allocation) -> View:
        """What is seen at the end of the interval, with everything where it was asked to be."""
        rate = self.level * self.whole
        demand = {o.name: rate * float(f) for o, f in zip(self.application.operators, self.factors, strict=True)}
        operators = {
            o.name: self._operator(o, requested.operators[o.name], demand[o.name] * shares)
            for o, shares in zip(self.application.operators, self.shares, strict=True)
        }
        observation = Observation(
            index=self.index,
            start_s=self.index * INTERVAL_S,
            end_s=(self.index + 1) * INTERVAL_S,
            source_rows={"source": rate * INTERVAL_S},
            operators=operators,
            hosts=self._hosts(requested, operators),
            latency=Latency(rows=rate * INTERVAL_S, mean_s=0.1, p50_s=0.1, p90_s=0.2, p99_s=0.4, max_s=1.0, slo_s=0.2),
            observed=requested,
            requested=requested,
            core_s=len(requested.hosts) * self.size.cores * INTERVAL_S,
            downtime_s=0.0,
            reconfigurations={},
        )
        return View(
            application=self.application,
            pool=self.pool,
            observation=observation,
            demand_rows_per_s=demand,
            gains={"source": {name: offered / rate for name, offered in demand.items()}},
            forecast=self._forecast(rate),
        )

    def _keys(self) -> FloatArray:
        """Each shard's share of the rows: Zipf frequencies of keys that are hashed to shards."""
        frequencies = 1.0 / np.arange(1, KEYS + 1) ** ZIPF
        shards = self.chance.integers(self.size.shards, size=KEYS)
        return np.bincount(shards, weights=frequencies / frequencies.sum(), minlength=self.size.shards).astype(np.float64)

    def _operator(self, operator: Operator, placed: OperatorAllocation, rows_per_s: FloatArray) -> OperatorObservation:
        routes = np.array(placed.shard_replicas)
        cores = np.bincount(routes, weights=rows_per_s, minlength=placed.replicas) * SERVICE_S
        utilisation = np.minimum(1.0, cores)
        served = rows_per_s * (utilisation / np.maximum(cores, 1e-12))[routes]
        offered, processed = float(rows_per_s.sum()) * INTERVAL_S, float(served.sum()) * INTERVAL_S
        backlog = (rows_per_s - served) * INTERVAL_S
        return OperatorObservation(
            name=operator.name,
            offered_rows=offered,
            processed_rows=processed,
            emitted_rows=processed,
            dropped_rows=0.0,
            backlog_rows=max(0.0, offered - processed),
            backlog_s=max(0.0, offered - processed) * SERVICE_S / placed.replicas,
            service_time_s=SERVICE_S,
            utilisation=float(utilisation.mean()),
            busy_share=float(utilisation.mean()),
            latency_s=0.01,
            replica_utilisation=utilisation,
            shards=ShardLoads(
                rows=rows_per_s * INTERVAL_S,
                busy_s=served * INTERVAL_S * SERVICE_S,
                backlog_rows=np.maximum(0.0, backlog),
                state_bytes=np.full(self.size.shards, float(STATE_BYTES)),
            ),
        )

    def _hosts(self, placed: Allocation, operators: Mapping[str, OperatorObservation]) -> dict[str, HostObservation]:
        busy = dict.fromkeys(placed.hosts, 0.0)
        for name, seen in operators.items():
            for host, cores in zip(placed.operators[name].replica_hosts, seen.replica_utilisation.tolist(), strict=True):
                busy[host] += cores
        return {
            host: HostObservation(
                name=host,
                state=HostState.RUNNING,
                cores=self.size.cores,
                utilisation=min(1.0, cores / self.size.cores),
                busy_share=min(1.0, cores / self.size.cores),
                memory_bytes=2.0**30,
                network_bytes_per_s=1e6,
            )
            for host, cores in busy.items()
        }

    def _forecast(self, rate: float) -> Forecast:
        """The load on its way back to its mean; sure of nothing."""
        steps = np.arange(1, FORECAST_STEPS + 1)
        mean = np.asarray(self.level + (rate - self.level) * _KEPT**steps, dtype=np.float64)
        upper = np.asarray(mean * (1.0 + 1.3 * self.drift.step * np.sqrt(steps)), dtype=np.float64)
        return Forecast(interval_s=INTERVAL_S, model="drift", mean={"source": mean}, upper={"source": upper})
