"""How the simulated world behaves: service model, what actions cost, failures. Defaults live here and nowhere else."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from springtide.errors import require
from springtide.model.allocation import Pool


class ServiceModel(StrEnum):
    TUPLE = "tuple"  # each replica serves its own queue row by row, as Storm does in the papers
    MICRO_BATCH = "micro_batch"  # an operator's replicas process a batch together, as Spark does


class Arrivals(StrEnum):
    EVEN = "even"  # rows come exactly as the trace counts them, spread over the step
    POISSON = "poisson"  # the trace gives the rate of a Poisson process


class ServiceTimes(StrEnum):
    CONSTANT = "constant"
    EXPONENTIAL = "exponential"


class Activation(StrEnum):
    POOL = "pool"  # a replica is switched on or off at once (PSPS's pool of inactive replicas)
    RESTART = "restart"  # a change of replicas stops what it touches for `restart_s` (Storm, DABS, Flink)


class BalancedBy(StrEnum):
    """What the levels of a `load_balanced` operator are when an interval begins (U of PSPS's Algorithm 1)."""

    PROCESSED = "processed"  # the share of the last interval in which a replica was busy: the paper's equation 5
    PENDING = "pending"  # the share of an interval that the rows take which wait for a replica: the load in the paper's prose


class RestartScope(StrEnum):
    OPERATOR = "operator"
    APPLICATION = "application"


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """What a micro-batch costs beside its rows. Defaults are of the size measured on a small Spark 4.3 cluster."""

    overhead_s: float = 0.10  # planning and committing one batch
    stage_overhead_s: float = 0.02
    stages: int = 2
    task_overhead_s: float = 0.01
    shard_overhead_s: float = 0.02  # opening and committing one shard's state store
    trigger_s: float = 0.0  # 0: the next batch begins when the last has ended
    max_rows: float = math.inf  # rows one batch may take

    def __post_init__(self) -> None:
        for what in ("overhead_s", "stage_overhead_s", "task_overhead_s", "shard_overhead_s", "trigger_s"):
            _require_duration(f"micro_batch.{what}", getattr(self, what))
        require(self.stages >= 1, f"simulator: micro_batch.stages must be at least 1, not {self.stages}")
        require(self.max_rows > 0, f"simulator: micro_batch.max_rows must be above 0, not {self.max_rows}")
        require(self.fixed_s > 0, "simulator: a micro-batch must take some time: overhead_s and stage_overhead_s are both 0")

    @property
    def fixed_s(self) -> float:
        return self.overhead_s + self.stages * self.stage_overhead_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """What it costs to move a shard: its rows wait while the move is agreed upon and its state is on the wire."""

    synchronisation_s: float = 0.002
    synchronisation_per_upstream_replica_s: float = 0.0  # above 0 in the resource-centric approach

    def __post_init__(self) -> None:
        for what in ("synchronisation_s", "synchronisation_per_upstream_replica_s"):
            _require_duration(f"moves.{what}", getattr(self, what))


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A host that is lost at a given time: a named one, or (without a name) the one with most replicas."""

    at_s: float
    host: str = ""

    def __post_init__(self) -> None:
        _require_duration("failures.at_s", self.at_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """The network delay between two named hosts, in both directions."""

    between: tuple[str, ...]
    delay_s: float

    def __post_init__(self) -> None:
        require(len(set(self.between)) == 2, f"simulator: delays.between must name two hosts, not {list(self.between)}")
        _require_duration("delays.delay_s", self.delay_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorSettings:
    """`step_s` is the resolution of time: a queue's latencies are exact to within half a step, a pipeline's to within one.

    A pause shorter than half a step has no effect in the tuple model.
    """

    service: ServiceModel = ServiceModel.TUPLE
    step_s: float = 1.0
    interval_s: float = 30.0
    initial_hosts: int = 0  # 0: the smallest the pool allows
    initial_replicas: int = 1
    arrivals: Arrivals = Arrivals.EVEN
    service_times: ServiceTimes = ServiceTimes.CONSTANT
    balanced_by: BalancedBy = BalancedBy.PROCESSED
    activation: Activation = Activation.POOL
    restart_s: float = 30.0
    restart_scope: RestartScope = RestartScope.APPLICATION
    restart_drops_queue: bool = False
    recovery_s: float = 10.0  # from the loss of a host until its shards are served elsewhere
    network_delay_s: float = 0.0005  # between two hosts
    network_delay_spread: float = 0.0  # a pair's delay is up to this share longer or shorter, from the seed
    moves: Moves = field(default_factory=Moves)
    micro_batch: MicroBatch = field(default_factory=MicroBatch)
    failures: tuple[Failure, ...] = ()
    delays: tuple[Delay, ...] = ()

    def __post_init__(self) -> None:
        for what in ("step_s", "interval_s"):
            value = getattr(self, what)
            require(math.isfinite(value) and value > 0, f"simulator: {what} must be above 0, not {value}")
        require(
            self.interval_s >= self.step_s,
            f"simulator: interval_s ({self.interval_s}) must not be shorter than step_s ({self.step_s})",
        )
        steps = self.interval_s / self.step_s
        require(
            abs(steps - round(steps)) < 1e-6,
            f"simulator: interval_s ({self.interval_s}) must be a whole number of steps of {self.step_s} s",
        )
        for what in ("restart_s", "recovery_s", "network_delay_s"):
            _require_duration(what, getattr(self, what))
        require(self.initial_hosts >= 0, f"simulator: initial_hosts must be 0 or more, not {self.initial_hosts}")
        require(self.initial_replicas >= 1, f"simulator: initial_replicas must be at least 1, not {self.initial_replicas}")
        require(
            0 <= self.network_delay_spread <= 1,
            f"simulator: network_delay_spread must lie between 0 and 1, not {self.network_delay_spread}",
        )

    def check(self, pool: Pool) -> None:
        """Refuse settings that the pool does not allow."""
        require(
            self.initial_hosts <= pool.max_hosts,
            f"simulator: initial_hosts ({self.initial_hosts}) must not be above max_hosts ({pool.max_hosts})",
        )


def _require_duration(what: str, value: float) -> None:
    require(math.isfinite(value) and value >= 0, f"simulator: {what} must be 0 or more, not {value}")
