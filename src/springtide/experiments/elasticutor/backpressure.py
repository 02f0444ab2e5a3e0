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
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from springtide.analyze.demand import gains
from springtide.backends.simulator.backend import SimulatorBackend
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


class BackpressureBackend(SimulatorBackend):
    """The simulator with a generator that is held back: the one source's rows are written step by step, as time passes."""

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
        super().__init__(application, pool, settings, np.zeros((1, steps)), seed=seed, start=start)
        self._generator, self._limits = generator, limits
        self._gain = gains(application)[application.sources[0].name]
        self._buffer = 0.0
        self._made = 0.0
        self._closed_until_s = 0.0
        self._routes = _Routes(np.zeros(0), np.zeros(0), 0.0)
        self._most_rows = self._rows_with_full_queue()
        self.waited_row_s = 0.0  # rows times the seconds they waited in the buffer, since the start
        self.remote_bytes = 0.0  # sent to replicas far from their executor's entrance, and back

    def observe(self) -> Observation:
        seen = replace(super().observe(), source_rows={self._application.sources[0].name: self._made})
        self._made = 0.0
        return seen

    def apply(self, actions: Sequence[Action]) -> None:
        super().apply(actions)
        if any(isinstance(action, SetReplicas | MoveShards) for action in actions):
            self._closed_until_s = max(self._closed_until_s, self.clock.now_s() + self._limits.repartition_s)

    def _simulate_to(self, step: int) -> None:
        while self._engine.step < step:
            if self._moved:
                self._routes = self._routed()
            self._let_in(self._engine.step)
            super()._simulate_to(self._engine.step + 1)

    def _let_in(self, step: int) -> None:
        step_s = self._settings.step_s
        made = self._generator.rows_per_s * step_s
        closed = (step + 0.5) * step_s < self._closed_until_s
        rows = 0.0 if closed else min(self._buffer + made, self._room_rows())
        self._made += made
        self._buffer = min(self._buffer + made - rows, self._generator.buffer_rows)
        self.waited_row_s += self._buffer * step_s
        self.remote_bytes += rows * self._routes.remote_bytes
        self._rows[0, step] = rows

    def _room_rows(self) -> float:
        """How many rows can come in this step before a replica's queue, or a link, is full."""
        state = self._engine.state
        waiting = np.bincount(state.lanes["replica"], weights=state.lanes["rows"], minlength=len(state.replicas))
        used = self._routes.rows > 0
        room = (self._most_rows - waiting)[used] / self._routes.rows[used]
        link = self._pool.host.bandwidth_bytes_per_s * self._settings.step_s
        busiest = float(self._routes.link_bytes.max(initial=0.0))
        return max(0.0, min(float(room.min(initial=np.inf)), link / busiest if busiest > 0 else np.inf))

    def _rows_with_full_queue(self) -> FloatArray:
        """The rows that each replica may have at the start of a step: those it can do in it, and a full queue behind them."""
        operators = self._engine.state.operators
        found = np.zeros(len(self._engine.state.replicas))
        for of in operators:
            rows = (self._limits.queue_s + self._settings.step_s) / float(of["service_s"])
            found[int(of["replica_first"]) : int(of["replica_after"])] = rows
        return found

    def _routed(self) -> _Routes:
        state = self._engine.state
        rows, links, remote = np.zeros(len(state.replicas)), np.zeros((2, len(state.hosts))), 0.0
        for index, operator in enumerate(self._application.operators):
            lanes = self._engine.lanes(index)
            epoch = int(state.operators["epoch"][index]) % state.share.shape[1]
            shares = state.share[lanes, epoch] * self._gain[operator.name]
            replicas = state.lanes["replica"][lanes]
            rows += np.bincount(replicas, weights=shares, minlength=len(rows))
            if self._limits.executors and operator.keyed:
                entering, leaving = self._entrances(shares, replicas)
                sent_bytes = self._sent_bytes(operator.name)
                links[0] += entering * operator.row_bytes + leaving * sent_bytes
                links[1] += leaving * operator.row_bytes + entering * sent_bytes
                remote += float(leaving.sum()) * (operator.row_bytes + sent_bytes)
        return _Routes(rows, links.max(axis=0), remote)

    def _entrances(self, shares: FloatArray, replicas: _Ints) -> tuple[FloatArray, FloatArray]:
        """For each host: the rows that enter executors there, and those of them that go on to replicas on other hosts."""
        hosts = len(self._engine.state.hosts)
        owners = np.arange(len(shares)) * self._limits.executors // len(shares)
        homes = self._homes(owners, replicas)[owners]
        far = self._engine.state.replicas["host"][replicas] != homes
        entering = np.bincount(homes, weights=shares, minlength=hosts).astype(np.float64)
        leaving = np.bincount(homes[far], weights=shares[far], minlength=hosts).astype(np.float64)
        return entering, leaving

    def _sent_bytes(self, operator: str) -> float:
        """What an operator sends on for each row, in bytes."""
        edges = self._application.outputs(operator)
        return sum(edge.selectivity * self._application.operator(edge.downstream).row_bytes for edge in edges)

    def _homes(self, owners: _Ints, replicas: _Ints) -> _Ints:
        """The host of each executor's entrance: the one with most of its replicas."""
        state = self._engine.state
        hosts = len(state.hosts)
        pairs = np.unique(owners * len(state.replicas) + replicas)
        owner, replica = pairs // len(state.replicas), pairs % len(state.replicas)
        cells = owner * hosts + state.replicas["host"][replica]
        counts = np.bincount(cells, minlength=self._limits.executors * hosts)
        found: _Ints = counts.reshape(self._limits.executors, hosts).argmax(axis=1)
        return found
