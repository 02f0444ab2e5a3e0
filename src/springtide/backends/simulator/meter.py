"""The kernel's counters, read for all operators at once: one pass over the arrays instead of many small ones."""

from __future__ import annotations

import numpy as np

from springtide.backends.simulator.arrays import Floats, Records, Simulation
from springtide.model.application import Application, Grouping, Operator
from springtide.model.observation import ShardLoads
from springtide.monitor.interval import IntervalCounts


class Meter:
    """Reads what was counted since the last observation; knows once and for all what does not change."""

    def __init__(self, application: Application) -> None:
        self._operators = application.operators
        self._names = [o.name for o in application.operators]
        self._service_time_s = np.array([o.service_time_s for o in application.operators])
        # How many rows an operator sends on, in all, for each that it processes.
        self._fan_out = np.array([sum(e.selectivity for e in application.outputs(name)) for name in self._names])
        self._state_bytes = [np.full(o.shards, float(o.state_bytes_per_shard)) for o in application.operators]

    def read(self, state: Simulation) -> IntervalCounts:
        operators = state.operators
        lane_rows, lane_busy_s, lane_backlog = (_frozen(state.lanes, f) for f in ("arrived", "busy_s", "rows"))
        replica_first = operators["replica_first"].copy()
        replica_after = operators["replica_first"] + operators["replica_count"]
        lanes = zip(operators["lane_first"].tolist(), operators["lane_after"].tolist(), strict=True)
        replicas = zip(replica_first.tolist(), replica_after.tolist(), strict=True)
        replica_busy_s = _frozen(state.replicas, "busy_s")
        shards = []
        for operator, (first, after), (r_first, r_after), state_bytes in zip(
            self._operators, lanes, replicas, self._state_bytes, strict=True
        ):
            if operator.keyed:
                shards.append(
                    ShardLoads(
                        rows=lane_rows[first:after],
                        busy_s=lane_busy_s[first:after],
                        backlog_rows=lane_backlog[first:after],
                        state_bytes=state_bytes,
                    )
                )
                continue
            served_by = state.lanes["replica"][first:after] - r_first
            shards.append(
                ShardLoads(
                    rows=_by_replica(operator, lane_rows[first:after], served_by, r_after - r_first),
                    busy_s=replica_busy_s[r_first:r_after],
                    backlog_rows=_by_replica(operator, lane_backlog[first:after], served_by, r_after - r_first),
                    state_bytes=np.zeros(r_after - r_first),
                )
            )
        return IntervalCounts(
            names=self._names,
            offered_rows=operators["offered"],
            processed_rows=operators["processed"],
            emitted_rows=operators["processed"] * self._fan_out,
            dropped_rows=operators["dropped_full"] + operators["dropped_late"],
            backlog_rows=np.add.reduceat(lane_backlog, operators["lane_first"]),
            age_s=operators["age_s"],
            busy_s=np.add.reduceat(lane_busy_s, operators["lane_first"]),
            nominal_service_time_s=self._service_time_s,
            replica_busy_s=replica_busy_s,
            replica_first=replica_first,
            replica_after=replica_after,
            shards=shards,
        )


def _by_replica(operator: Operator, of_lanes: Floats, served_by: Records, replicas: int) -> Floats:
    """Lanes' figures summed up for the replica that serves them; those of a shared queue, in equal parts."""
    if operator.grouping is Grouping.SHARED:
        return np.full(replicas, of_lanes.sum() / replicas)
    return np.bincount(served_by, weights=of_lanes, minlength=replicas).astype(np.float64)


def _frozen(records: Records, field: str) -> Floats:
    copy = records[field].copy()
    copy.setflags(write=False)
    return np.asarray(copy)
