"""What stands between the sources and the application, if anything does: it decides, step by step, how much comes in.

The simulator lets every row in and lets queues grow. An `Intake` can hold rows back: it is asked in each step, sees the queues
as they are by then, and keeps for itself what it does not let in. Observations tell what sources made, not what was let in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from springtide.backends.simulator.arrays import Floats, Ints
from springtide.backends.simulator.engine import Engine


@dataclass(frozen=True, slots=True, eq=False)
class Routing:
    """Where an operator's next rows go: the share of each of its queues, and the replica that serves the queue."""

    shares: Floats
    replicas: Ints


class Queues:
    """The application's queues. Operators are numbered in their order, replicas over all operators, hosts by their slots."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def host_slots(self) -> int:
        return len(self._engine.state.hosts)

    @property
    def replica_slots(self) -> int:
        """As many as all operators may have together."""
        return len(self._engine.state.replicas)

    def replicas(self, operator: int) -> slice:
        """The operator's replicas: those it has, and behind them those it may have."""
        of = self._engine.state.operators[operator]
        return slice(int(of["replica_first"]), int(of["replica_after"]))

    def replica_hosts(self) -> Ints:
        """The host of each replica, -1 of one that is not there."""
        return np.asarray(self._engine.state.replicas["host"])

    def waiting_rows(self) -> Floats:
        """How many rows wait for each replica."""
        lanes = self._engine.state.lanes
        return np.bincount(lanes["replica"], weights=lanes["rows"], minlength=self.replica_slots).astype(np.float64)

    def routing(self, operator: int) -> Routing:
        """Where the operator's rows go from now on. A load-balanced operator's shares are found as its rows come: even here."""
        return Routing(self._engine.lane_shares(operator), self._engine.state.lanes["replica"][self._engine.lanes(operator)])


class Intake(Protocol):
    """Holds rows back."""

    def rearranged(self, queues: Queues) -> None:
        """Told before the first step, and whenever something has another place, or another share of the rows, than before."""
        ...

    def let_in(self, step: int, made: Floats, queues: Queues) -> Floats:
        """The rows of each source that come in in this step, in which the sources made so many."""
        ...
