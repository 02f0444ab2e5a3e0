"""The kernel's counters, read for all operators at once: one pass over the arrays instead of many small ones."""

from __future__ import annotations

import numpy as np

from springtide.backends.simulator.arrays import Floats, Records, Simulation
from springtide.model.application import Operator
from springtide.model.observation import ShardLoads
from springtide.monitor.interval import OperatorCounts


class Measured:
    """A snapshot of the counters since the last observation."""

    def __init__(self, state: Simulation) -> None:
        operators = state.operators
        self._offered = operators["offered"].tolist()
        self._processed = operators["processed"].tolist()
        self._dropped = (operators["dropped_full"] + operators["dropped_late"]).tolist()
        self._age_s = operators["age_s"].tolist()
        self._lanes = list(zip(operators["lane_first"].tolist(), operators["lane_after"].tolist(), strict=True))
        replica_after = operators["replica_first"] + operators["replica_count"]
        self._replicas = list(zip(operators["replica_first"].tolist(), replica_after.tolist(), strict=True))
        self._lane_rows = _frozen(state.lanes, "arrived")
        self._lane_busy_s = _frozen(state.lanes, "busy_s")
        self._lane_backlog = _frozen(state.lanes, "rows")
        self._replica_busy_s = _frozen(state.replicas, "busy_s")
        self._backlog = np.add.reduceat(self._lane_backlog, operators["lane_first"]).tolist()
        self._busy_s = np.add.reduceat(self._lane_busy_s, operators["lane_first"]).tolist()

    def operator(self, operator: Operator, index: int, state_bytes: Floats, fan_out: float) -> OperatorCounts:
        """One operator's counters; `fan_out` is how many rows it sends on, in all, for each that it processes."""
        first, after = self._replicas[index]
        return OperatorCounts(
            name=operator.name,
            offered_rows=self._offered[index],
            processed_rows=self._processed[index],
            emitted_rows=self._processed[index] * fan_out,
            dropped_rows=self._dropped[index],
            backlog_rows=self._backlog[index],
            age_s=self._age_s[index],
            busy_s=self._busy_s[index],
            nominal_service_time_s=operator.service_time_s,
            replica_busy_s=self._replica_busy_s[first:after],
            shards=self._shard_loads(operator, index, state_bytes),
        )

    def _shard_loads(self, operator: Operator, index: int, state_bytes: Floats) -> ShardLoads:
        if operator.keyed:
            lanes = slice(*self._lanes[index])
            return ShardLoads(
                rows=self._lane_rows[lanes],
                busy_s=self._lane_busy_s[lanes],
                backlog_rows=self._lane_backlog[lanes],
                state_bytes=state_bytes,
            )
        first, after = self._replicas[index]
        busy_s = self._replica_busy_s[first:after]
        return ShardLoads(
            rows=busy_s / operator.service_time_s,
            busy_s=busy_s,
            backlog_rows=np.full(after - first, self._backlog[index] / (after - first)),
            state_bytes=np.zeros(after - first),
        )


def _frozen(records: Records, field: str) -> Floats:
    copy = records[field].copy()
    copy.setflags(write=False)
    return np.asarray(copy)
