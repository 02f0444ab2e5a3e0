"""What the placement means for the network and for memory: delays on edges, bytes per row, bytes held by each host."""

from __future__ import annotations

import numpy as np

from springtide.analyze.demand import propagate
from springtide.backends.simulator.arrays import Floats
from springtide.backends.simulator.engine import Engine
from springtide.backends.simulator.hosts import Network, SimulatedHost


class Traffic:
    """Recomputed whenever something has moved, so that the kernel only multiplies."""

    def __init__(self, engine: Engine, network: Network) -> None:
        self._engine, self._network = engine, network
        application = engine.application
        self._operators = application.operators
        rates = propagate(application, {s.name: s.share for s in application.sources})
        rates |= {s.name: s.share for s in application.sources}
        self._edges = [e for o in application.operators for e in application.inputs(o.name)]
        self._index = {o.name: i for i, o in enumerate(application.operators)}
        offered = {o.name: max(rates[o.name], 1e-300) for o in application.operators}
        # Of the rows an operator receives, the part that comes over each edge.
        self._weight = [rates[e.upstream] * e.selectivity / offered[e.downstream] for e in self._edges]
        lanes = engine.state.operators["lane_after"] - engine.state.operators["lane_first"]
        self._state_bytes = np.repeat([float(o.state_bytes_per_shard * o.keyed) for o in self._operators], lanes)
        self._row_bytes = np.repeat([float(o.row_bytes) for o in self._operators], lanes)

    def refresh(self, hosts: list[SimulatedHost]) -> None:
        slots = len(self._engine.state.hosts)
        delays = self._network.matrix(hosts, slots)
        shares = np.array([self._engine.host_shares(i) for i in range(len(self._operators))])
        elsewhere = np.maximum(0.0, 1.0 - shares)  # shares sum up to 1 only but for rounding
        edge_delay_s = np.zeros(len(self._edges))
        bytes_per_row = np.zeros((len(self._operators), slots))
        for number, edge in enumerate(self._edges):
            down = self._index[edge.downstream]
            row_bytes = float(self._operators[down].row_bytes)
            up = self._index.get(edge.upstream)
            if up is None:
                bytes_per_row[down] += self._weight[number] * row_bytes
                continue
            edge_delay_s[number] = shares[up] @ delays @ shares[down]
            bytes_per_row[down] += self._weight[number] * row_bytes * elsewhere[up]
            bytes_per_row[up] += edge.selectivity * row_bytes * elsewhere[down]
        self._engine.set_traffic(edge_delay_s, bytes_per_row)

    def memory_bytes(self) -> Floats:
        """What each host holds: operators' own memory, shards' state, and rows that wait."""
        engine = self._engine
        held = self._state_bytes + engine.state.lanes["rows"] * self._row_bytes
        at = engine.lane_hosts()
        memory = np.bincount(at[at >= 0], weights=held[at >= 0], minlength=len(engine.state.hosts)).astype(np.float64)
        for i, operator in enumerate(self._operators):
            if operator.memory_bytes:
                memory += operator.memory_bytes * (engine.host_shares(i) > 0)
        return memory
