"""A simulated cluster that holds its source back, as Storm does: nothing is let in that a replica's queue has no room for.

The simulator lets every row of a trace in and lets queues grow. The paper's system has back-pressure (section 5.2), and a
generator that makes as many rows as it can, so that throughput is what the slowest replica lets through. Rules:

* Rows that the generator makes wait in one buffer, first in, first out. When the buffer is full the generator stops.
* In each step as many rows are let in as leave no replica with more than `queue_s` seconds of work.
* An elastic executor has one entrance, on the host with most of its replicas. What comes in there, and what goes from there
  to its replicas on other hosts, has to pass that host's link, in and out.
* Where operators' keys are repartitioned (the resource-centric approach), upstream stops for as long as that takes.
* Policies are told what the generator makes, not what is let in: demand does not fall because a queue is full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from springtide.analyze.demand import gains
from springtide.backends.simulator.backend import SimulatorBackend, VirtualClock
from springtide.backends.simulator.intake import Queues, Routing
from springtide.backends.simulator.settings import SimulatorSettings
from springtide.errors import require
from springtide.model.action import Action, MoveShards, SetReplicas
from springtide.model.allocation import Allocation, Pool
from springtide.model.application import Application
from springtide.model.observation import FloatArray, Observation

_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """A source that makes `rows_per_s` for `duration_s`, unless its buffer of `buffer_rows` is full."""

    rows_per_s: float
    duration_s: float
    buffer_rows: float

    def __post_init__(self) -> None:
        require(self.rows_per_s > 0, f"a generator must make rows, not {self.rows_per_s} per second")
        require(self.duration_s > 0, f"a generator must run for some time, not for {self.duration_s} s")
        require(self.buffer_rows > 0, f"a generator's buffer must hold rows, not {self.buffer_rows}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What holds rows back: `queue_s` of work in front of a replica, `executors` with an entrance each (0: rows go straight to
    their replica), and `repartition_s` of standstill whenever shards are dealt anew."""

    queue_s: float = 0.1
    executors: int = 0
    repartition_s: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class _Routes:
    """What one row let in means: rows for each replica, bytes for each host's link, and bytes to replicas far from home."""

    rows: FloatArray
    link_bytes: FloatArray
    remote_bytes: float


class _Gate:
    """The generator's buffer, and what is let out of it: the simulator's `Intake`."""

    def __init__(self, application: Application, pool: Pool, step_s: float, buffer_rows: float, limits: Limits) -> None:
        self._application, self._limits = application, limits
        self._step_s, self._buffer_rows = step_s, buffer_rows
        self._link_bytes = pool.host.bandwidth_bytes_per_s * step_s
        self._gain = gains(application)[application.sources[0].name]
        self._waiting_rows = 0.0
        self._closed_until_s = 0.0
        self._routes = _Routes(np.zeros(0), np.zeros(0), 0.0)
        self._most_rows = np.zeros(0)
        self.waited_row_s = 0.0
        self.remote_bytes = 0.0

    def close_until(self, time_s: float) -> None:
        self._closed_until_s = max(self._closed_until_s, time_s)

    def rearranged(self, queues: Queues) -> None:
        self._routes = self._routed(queues)
        self._most_rows = self._rows_with_full_queue(queues)

    def let_in(self, step: int, made: FloatArray, queues: Queues) -> FloatArray:
        waiting_rows = self._waiting_rows + float(made.sum())
        closed = (step + 0.5) * self._step_s < self._closed_until_s
        rows = 0.0 if closed else min(waiting_rows, self._room_rows(queues))
        self._waiting_rows = min(waiting_rows - rows, self._buffer_rows)
        self.waited_row_s += self._waiting_rows * self._step_s
        self.remote_bytes += rows * self._routes.remote_bytes
        return np.array([rows])

    def _room_rows(self, queues: Queues) -> float:
        """How many rows can come in this step before a replica's queue, or a link, is full."""
        used = self._routes.rows > 0
        room = (self._most_rows - queues.waiting_rows())[used] / self._routes.rows[used]
        busiest = float(self._routes.link_bytes.max(initial=0.0))
        return max(0.0, min(float(room.min(initial=np.inf)), self._link_bytes / busiest if busiest > 0 else np.inf))

    def _rows_with_full_queue(self, queues: Queues) -> FloatArray:
        """The rows that each replica may have at the start of a step: those it can do in it, and a full queue behind them."""
        found = np.zeros(queues.replica_slots)
        for index, operator in enumerate(self._application.operators):
            found[queues.replicas(index)] = (self._limits.queue_s + self._step_s) / operator.service_time_s
        return found

    def _routed(self, queues: Queues) -> _Routes:
        rows, links, remote = np.zeros(queues.replica_slots), np.zeros((2, queues.host_slots)), 0.0
        for index, operator in enumerate(self._application.operators):
            routing = queues.routing(index)
            shares = routing.shares * self._gain[operator.name]
            rows += np.bincount(routing.replicas, weights=shares, minlength=len(rows))
            if self._limits.executors and operator.keyed:
                entering, leaving = self._entrances(Routing(shares, routing.replicas), queues)
                sent_bytes = self._sent_bytes(operator.name)
                links[0] += entering * operator.row_bytes + leaving * sent_bytes
                links[1] += leaving * operator.row_bytes + entering * sent_bytes
                remote += float(leaving.sum()) * (operator.row_bytes + sent_bytes)
        return _Routes(rows, links.max(axis=0), remote)

    def _entrances(self, routing: Routing, queues: Queues) -> tuple[FloatArray, FloatArray]:
        """For each host: the rows that enter executors there, and those of them that go on to replicas on other hosts."""
        shares, hosts = routing.shares, queues.host_slots
        owners = np.arange(len(shares)) * self._limits.executors // len(shares)
        homes = self._homes(owners, routing.replicas, queues)[owners]
        far = queues.replica_hosts()[routing.replicas] != homes
        entering = np.bincount(homes, weights=shares, minlength=hosts).astype(np.float64)
        leaving = np.bincount(homes[far], weights=shares[far], minlength=hosts).astype(np.float64)
        return entering, leaving

    def _sent_bytes(self, operator: str) -> float:
        """What an operator sends on for each row, in bytes."""
        edges = self._application.outputs(operator)
        return sum(edge.selectivity * self._application.operator(edge.downstream).row_bytes for edge in edges)

    def _homes(self, owners: _Ints, replicas: _Ints, queues: Queues) -> _Ints:
        """The host of each executor's entrance: the one with most of its replicas."""
        pairs = np.unique(owners * queues.replica_slots + replicas)
        owner, replica = pairs // queues.replica_slots, pairs % queues.replica_slots
        cells = owner * queues.host_slots + queues.replica_hosts()[replica]
        counts = np.bincount(cells, minlength=self._limits.executors * queues.host_slots)
        found: _Ints = counts.reshape(self._limits.executors, queues.host_slots).argmax(axis=1)
        return found


class BackpressureBackend:
    """The simulator behind a gate that holds the generator's rows back: a `Backend`."""

    def __init__(  # noqa: PLR0913 - what the simulator is given, and what holds it back
        self,
        application: Application,
        pool: Pool,
        settings: SimulatorSettings,
        generator: Generator,
        limits: Limits,
        *,
        seed: int = 0,
        start: Allocation | None = None,
    ) -> None:
        require(len(application.sources) == 1, "back-pressure is for applications with one source")
        steps = round(generator.duration_s / settings.step_s)
        made = np.full((1, steps), generator.rows_per_s * settings.step_s)
        self._limits = limits
        self._gate = _Gate(application, pool, settings.step_s, generator.buffer_rows, limits)
        self._simulator = SimulatorBackend(application, pool, settings, made, seed=seed, start=start, intake=self._gate)

    @property
    def clock(self) -> VirtualClock:
        return self._simulator.clock

    @property
    def duration_s(self) -> float:
        return self._simulator.duration_s

    @property
    def waited_row_s(self) -> float:
        """Rows times the seconds they waited in the buffer, since the start."""
        return self._gate.waited_row_s

    @property
    def remote_bytes(self) -> float:
        """What was sent to replicas far from their executor's entrance, and back, since the start."""
        return self._gate.remote_bytes

    def observe(self) -> Observation:
        return self._simulator.observe()

    def apply(self, actions: Sequence[Action]) -> None:
        self._simulator.apply(actions)
        if any(isinstance(action, SetReplicas | MoveShards) for action in actions):
            self._gate.close_until(self.clock.now_s() + self._limits.repartition_s)
