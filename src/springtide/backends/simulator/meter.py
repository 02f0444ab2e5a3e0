"""The kernel's counters, read for all operators at once: one pass over the arrays instead of many small ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from springtide.backends.simulator.arrays import Floats, Records, Simulation
from springtide.model.application import Application, Grouping, Operator
from springtide.model.batch import longest_batches_s
from springtide.model.observation import ShardLoads
from springtide.monitor.batch_costs import BatchMoments, LearnedCosts
from springtide.monitor.capacity import OperatorBatches, count_rows_due
from springtide.monitor.interval import IntervalCounts, TriggerInterval
from springtide.monitor.moments import Moments


class Meter:
    """Reads what was counted since the last observation; knows once and for all what does not change.

    Where rows are processed in batches it learns what those cost, as the live backend does: from the batches.
    """

    def __init__(self, application: Application, *, in_batches: bool, least_trigger_s: float) -> None:
        self._operators = application.operators
        self._learned = [LearnedCosts.begin(o.service_time_s) for o in application.operators] if in_batches else []
        self._trigger_bounds_s = (least_trigger_s, math.inf)
        self._longest_s = longest_batches_s(application)
        self._latency_s = application.slo.latency_s
        self._names = [o.name for o in application.operators]
        self._service_time_s = np.array([o.service_time_s for o in application.operators])
        # How many rows an operator sends on, in all, for each that it processes.
        self._fan_out = np.array([sum(e.selectivity for e in application.outputs(name)) for name in self._names])
        self._state_bytes = [np.full(o.shards, float(o.state_bytes_per_shard)) for o in application.operators]

    def read(self, state: Simulation, interval_s: float) -> IntervalCounts:
        operators = state.operators
        lane_rows, lane_busy_s, lane_backlog = (_frozen(state.lanes, f) for f in ("arrived", "busy_s", "rows"))
        replica_first = operators["replica_first"].copy()
        replica_after = operators["replica_first"] + operators["replica_count"]
        lanes = zip(operators["lane_first"].tolist(), operators["lane_after"].tolist(), strict=True)
        replicas = zip(replica_first.tolist(), replica_after.tolist(), strict=True)
        replica_busy_s = _frozen(state.replicas, "busy_s")
        self._learned = [known.then(_moments(sums)) for known, sums in zip(self._learned, state.batches, strict=False)]
        batches = [self._batches(i, known, state, lane_rows, interval_s) for i, known in enumerate(self._learned)]
        if batches:
            service_time_s = np.array([its.costs.row_s.value for its in batches])
            lane_busy_s = self._lane_times_s(state, lane_rows, batches)
        else:
            busy_s, processed = np.add.reduceat(lane_busy_s, operators["lane_first"]), operators["processed"]
            service_time_s = np.divide(busy_s, processed, out=self._service_time_s.copy(), where=processed > 0)
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
            replica_busy_s=replica_busy_s,
            replica_first=replica_first,
            replica_after=replica_after,
            shards=shards,
            service_time_s=service_time_s,
            batches=batches,
            triggers=[TriggerInterval(s, self._trigger_bounds_s) for s in operators["batch_trigger_s"].tolist()],
        )

    def allowed_rows(self, i: int, replicas: int, slots: float) -> float:
        """The rows of a batch that is as long as the objective allows; infinite while nothing is known of batches."""
        operator = self._operators[i]
        if not self._learned or self._learned[i].batches <= 0:
            return math.inf
        shards = operator.shards if operator.keyed else 0
        return self._learned[i].costs.rows_within(self._longest_s[operator.name], tasks=replicas, shards=shards, slots=slots)

    def _batches(self, i: int, known: LearnedCosts, state: Simulation, lane_rows: Floats, interval_s: float) -> OperatorBatches:
        operator, of = self._operators[i], state.operators[i]
        replicas = int(of["replica_count"])
        lanes = slice(int(of["lane_first"]), int(of["lane_after"]))
        at = state.lanes["replica"][lanes] - of["replica_first"]
        rows = _by_replica(operator, lane_rows[lanes], at, replicas)
        came = float(rows.sum())
        shares = rows / came if came > 0 else np.full(replicas, 1 / replicas)
        load = count_rows_due(
            offered=float(of["offered"]),
            processed=float(of["processed"]),
            backlog=float(state.lanes["rows"][lanes].sum()),
            interval_s=interval_s,
            latency_s=self._latency_s,
        )
        return OperatorBatches(
            costs=known.costs,
            longest_s=self._longest_s[operator.name],
            replica_rows=shares * load,
            replica_shards=np.bincount(at, minlength=replicas).astype(np.float64) if operator.keyed else np.zeros(replicas),
        )

    def _lane_times_s(self, state: Simulation, lane_rows: Floats, batches: Sequence[OperatorBatches]) -> Floats:
        """The time that each lane took: its rows, and the batches in which it was opened and committed."""
        lanes = state.operators["lane_after"] - state.operators["lane_first"]
        opened_s = [
            float(sums["batches"]) * its.costs.shard_s.value * operator.keyed
            for operator, sums, its in zip(self._operators, state.batches, batches, strict=True)
        ]
        row_s = np.repeat([its.costs.row_s.value for its in batches], lanes)
        times_s: Floats = lane_rows * row_s + np.repeat(opened_s, lanes)
        times_s.setflags(write=False)
        return times_s


def _moments(sums: Records) -> BatchMoments:
    """What the kernel has summed up over batches and their tasks."""
    batches = float(sums["batches"])
    xx = np.array(
        [[sums["tasks"], sums["s"], sums["r"]], [sums["s"], sums["ss"], sums["sr"]], [sums["r"], sums["sr"], sums["rr"]]]
    )
    return BatchMoments(
        batches=batches,
        tasks=Moments(xx, np.array([sums["y"], sums["sy"], sums["ry"]]), float(sums["yy"])),
        # No other tasks feed them: that takes no time, however many rows there are.
        feeding=Moments(np.array([[batches, sums["r"]], [sums["r"], sums["read_square"]]]), np.zeros(2), 0.0),
        driver=Moments(np.array([[batches]]), np.array([sums["driver_s"]]), float(sums["driver_square"])),
        busiest_s=float(sums["busiest_s"]),
        mean_s=float(sums["mean_s"]),
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
