"""How long rows take through an application that processes them in batches, and how much work it can do within an objective.

The model of a batch is `model.batch`. Batches of an operator follow one another at once, each with the rows that came during
the one before; so with h slots, r tasks and S shards they last

    T = (A + k (E + B r + C S) / h) / (1 - k D L / h)

and a row takes a part of T, evenly distributed, until its batch begins, and T until it is over. Operators in a row add up:

    q-quantile of latency = sum of T + q-quantile of the sum of their waits

Operators share slots: one has what the others leave, and its even part at least. The fixed time of the others is counted at the
longest batch that the objective allows, because that is where capacity is looked for.

The skew k of a keyed operator is that of its shards dealt out as evenly as they can be on its tasks, the longest first; of
another it is as measured. An operator has as many tasks as `placement.sharing` gives it, and runs on no more slots than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

from springtide.model.application import Application, Operator
from springtide.model.batch import BatchCosts, longest_batches_s
from springtide.model.observation import FloatArray
from springtide.model.protocols import View
from springtide.plan.placement.counts import predict_skew, shard_weights
from springtide.plan.placement.sharing import BatchParts

_BISECTIONS = 16  # of the work that slots can do at most: to within a part in 65,000
_NONE: FloatArray = np.zeros(0)
_LEAST_IDLE = 1e-3  # of a slot's time: batches without any are endless
_ENDLESS_S = 1e6
_LEAST_ROWS_PER_S = 1e-3  # from each source


@dataclass(frozen=True, slots=True, kw_only=True)
class _Query:
    """One operator's batches: what they cost, its shards, the longest batch allowed, and its part of the slots."""

    operator: Operator
    costs: BatchCosts
    shards: int
    longest_s: float
    parts: BatchParts
    task_skew: float  # the busiest task's time over the mean, where it does not follow from shards
    weights: FloatArray

    skews: dict[int, float] = field(default_factory=dict)  # by number of tasks, as far as they were asked for

    @property
    def name(self) -> str:
        return self.operator.name

    def tasks(self, slots: FloatArray) -> FloatArray:
        """How many tasks its batches have, with each number of slots."""
        return self.parts.tasks(self.operator, slots)

    def skew(self, tasks: FloatArray) -> FloatArray:
        """The busiest task's time over the mean, with each number of tasks."""
        if not self.shards:
            return np.full(tasks.shape, self.task_skew)
        return np.array([self._skew(round(count)) for count in tasks.ravel().tolist()]).reshape(tasks.shape)

    def _skew(self, tasks: int) -> float:
        known = self.skews.get(tasks)
        if known is None:
            known = self.skews[tasks] = predict_skew(self.weights, tasks)
        return known


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Slots:
    """What does not depend on the demand, with each number of slots; rows are the queries. `work` is at the present demand."""

    slots: FloatArray
    tasks: FloatArray
    fixed_s: FloatArray
    skew: FloatArray
    driver_s: FloatArray
    work: FloatArray
    longest_s: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchModel:
    """An application's batches on any number of slots; `rows_per_s` is the present demand of each operator."""

    application: Application
    queries: Sequence[_Query]
    rows_per_s: FloatArray

    @classmethod
    def of(cls, view: View) -> BatchModel | None:
        """As measured; None where rows are processed one by one, or nothing has been measured yet."""
        longest_s, parts = longest_batches_s(view.application), BatchParts.of(view)
        slots = max(1, len(view.observation.running_hosts) * view.pool.host.cores)
        queries = []
        for operator in view.application.operators:
            seen = view.observation.operators.get(operator.name)
            if seen is None or seen.costs is None:
                return None
            queries.append(
                _Query(
                    operator=operator,
                    costs=seen.costs,
                    shards=operator.shards if operator.keyed else 0,
                    longest_s=longest_s[operator.name],
                    parts=parts,
                    # It was measured over all slots, of which those without a task are idle.
                    task_skew=max(1.0, seen.costs.skew.value * min(1.0, seen.replica_utilisation.size / slots)),
                    weights=shard_weights(view, operator, view.requested.operators[operator.name]) if operator.keyed else _NONE,
                )
            )
        demand = np.array([view.demand_rows_per_s.get(q.name, 0.0) for q in queries])
        if demand.sum() <= 0:  # what hosts can do does not depend on it
            demand = np.array(
                [_LEAST_ROWS_PER_S * sum(gains.get(q.name, 0.0) for gains in view.gains.values()) for q in queries]
            )
        return cls(application=view.application, queries=tuple(queries), rows_per_s=demand)

    @property
    def work_cores(self) -> float:
        """What the demand takes beside everything that is fixed."""
        return float(sum(q.costs.row_s.value * rate for q, rate in zip(self.queries, self.rows_per_s, strict=True)))

    @property
    def cost_doubt(self) -> float:
        """How many times as much the demand takes if each row costs one standard error more than was learned."""
        dearer = sum(
            (q.costs.row_s.value + q.costs.row_s.error) * r for q, r in zip(self.queries, self.rows_per_s, strict=True)
        )
        return float(dearer) / self.work_cores if self.work_cores > 0 else 1.0

    def cycles_s(self, slots: FloatArray, factor: FloatArray | float = 1.0) -> FloatArray:
        """How long batches are, with each number of slots, at a multiple of the demand: one row for each operator."""
        return self._cycles_s(self._on(np.asarray(slots, dtype=np.float64)), factor)

    def _on(self, slots: FloatArray) -> _Slots:
        tasks = np.array([q.tasks(slots) for q in self.queries])
        return _Slots(
            slots=slots,
            tasks=tasks,
            fixed_s=np.array([_fixed_s(q, each) for q, each in zip(self.queries, tasks, strict=True)]),
            skew=np.array([q.skew(each) for q, each in zip(self.queries, tasks, strict=True)]),
            driver_s=_column([q.costs.driver_s.value for q in self.queries], slots),
            work=_column([q.costs.row_s.value * rate for q, rate in zip(self.queries, self.rows_per_s, strict=True)], slots),
            longest_s=_column([q.longest_s for q in self.queries], slots),
        )

    def _cycles_s(self, on: _Slots, factor: FloatArray | float) -> FloatArray:
        rows = on.work * np.asarray(factor)
        used = on.fixed_s / on.longest_s + rows
        left = np.maximum(on.slots - (used.sum(axis=0) - used), on.slots / len(self.queries))
        left = np.minimum(left, on.tasks)  # a task runs on one slot
        idle = 1.0 - on.skew * rows / left
        empty_s = on.driver_s + on.skew * on.fixed_s / left
        return np.where(idle > _LEAST_IDLE, empty_s / np.maximum(idle, _LEAST_IDLE), _ENDLESS_S)

    def latency_s(self, percentile: float, slots: FloatArray, factor: FloatArray | float = 1.0) -> FloatArray:
        """A percentile of latency through the whole application, with each number of slots, at a multiple of the demand."""
        return self._latency_s(percentile, self._on(np.asarray(slots, dtype=np.float64)), factor)

    def _latency_s(self, percentile: float, on: _Slots, factor: FloatArray | float) -> FloatArray:
        cycles_s = self._cycles_s(on, factor)
        position = {q.name: i for i, q in enumerate(self.queries)}
        sums: dict[str, FloatArray] = {}
        squares: dict[str, FloatArray] = {}
        depth: dict[str, int] = {}
        for operator in self.application.operators:  # in topological order
            upstream = [e.upstream for e in self.application.inputs(operator.name) if e.upstream in sums]
            before, before_square, above = np.zeros(cycles_s.shape[1:]), np.zeros(cycles_s.shape[1:]), 0
            for name in upstream:
                longer = sums[name] >= before
                before_square = np.where(longer, squares[name], before_square)
                before = np.maximum(before, sums[name])
                above = max(above, depth[name])
            own = cycles_s[position[operator.name]]
            sums[operator.name], squares[operator.name], depth[operator.name] = before + own, before_square + own**2, above + 1
        ends = [o.name for o in self.application.operators if not self.application.outputs(o.name)]
        found: FloatArray = np.max([sums[n] + _wait_s(percentile, sums[n], squares[n], depth[n]) for n in ends], axis=0)
        return found

    def capacity_cores(self, percentile: float, latency_s: float, slots: FloatArray) -> FloatArray:
        """The work, beside all that is fixed, with which a percentile of latency is just kept; 0 where it cannot be."""
        slots = np.asarray(slots, dtype=np.float64)
        work = self.work_cores
        if work <= 0:
            return np.zeros(slots.shape)
        on = self._on(slots)
        low, high = np.zeros(slots.shape), slots / work
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            kept = self._latency_s(percentile, on, middle) <= latency_s
            low, high = np.where(kept, middle, low), np.where(kept, high, middle)
        return low * work

    def throughput_cores(self, slots: FloatArray) -> FloatArray:
        """The work, beside all that is fixed, that is done in batches of any length."""
        slots = np.asarray(slots, dtype=np.float64)
        if self.work_cores <= 0:
            return slots
        weights = [q.costs.row_s.value * rate for q, rate in zip(self.queries, self.rows_per_s, strict=True)]
        skew: FloatArray = np.average([q.skew(q.tasks(slots)) for q in self.queries], axis=0, weights=weights)
        return slots / skew


def _fixed_s(query: _Query, tasks: FloatArray) -> FloatArray:
    """Slot time of a batch without rows."""
    costs = query.costs
    fixed: FloatArray = costs.batch_s.value + costs.task_s.value * tasks + costs.shard_s.value * query.shards
    return fixed


def _column(values: Sequence[float], slots: FloatArray) -> FloatArray:
    """A value of each query, to be combined with every number of slots."""
    return np.array(values, dtype=np.float64).reshape(-1, *[1] * slots.ndim)


def _wait_s(percentile: float, sums: FloatArray, squares: FloatArray, depth: int) -> FloatArray:
    """A percentile of the sum of waits, each evenly distributed over a batch: exact for one, nearly normal for several."""
    if depth == 1:
        return percentile * sums
    deviation = np.sqrt(squares / 12)
    return np.clip(sums / 2 + NormalDist().inv_cdf(percentile) * deviation, 0.0, sums)
