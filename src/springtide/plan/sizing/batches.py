"""How long rows take through an application that processes them in batches, and how much work it can do within an objective.

The model of a batch is `model.batch`. Batches of an operator follow one another at once, each with the rows that came during
the one before; so with h slots, r tasks and S shards they last

    T = (A + k (E + B r + C S) / h) / (1 - k D L / h)

and a row takes a part of T, evenly distributed, until its batch begins, and T until it is over. Operators in a row add up:

    q-quantile of latency = sum of T + q-quantile of the sum of their waits

Operators share slots: one has what the others leave, and its even part at least. The shorter their batches are, the more slots
their fixed time takes; so batches of all operators are worked out together, in a few rounds.

Where a trigger interval P keeps batches apart, a batch goes through the application alone, level by level: a level is the
operators that are equally far from the sources, and run at the same time. With X the time of a batch without rows through all
levels, and R the share of P that the rows of a batch take of it,

    shortest P = X / (1 - R)            the next batch begins when the last level is through
    q-quantile of latency = q P + X + R P

The skew k of a keyed operator is that of its shards dealt out as evenly as they can be on its tasks, the longest first, times
what the measured skew is of that of its shards where they are now: tasks that are alike do not take the same time. Of another
operator it is as measured. An operator has as many tasks as `placement.sharing` gives it, and runs on no more slots than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np

from springtide.model.allocation import OperatorAllocation
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
_MOST_DOUBT = 2.0  # what is hardly known is no reason for many hosts
_ROUNDS = 5  # in which queries that share slots are matched with one another
_LEAST_ROWS_PER_S = 1e-3  # from each source
_MOST_TASK_SKEW = 1.5  # that is not the shards'


@dataclass(frozen=True, slots=True, kw_only=True)
class _Query:
    """One operator's batches: what they cost, its shards, the longest batch allowed, and its part of the slots."""

    operator: Operator
    costs: BatchCosts
    shards: int
    longest_s: float
    parts: BatchParts
    task_skew: float  # the busiest task's time over the mean, beside what follows from shards
    weights: FloatArray
    level: int

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
        dealt = np.array([self._skew(round(count)) for count in tasks.ravel().tolist()]).reshape(tasks.shape)
        return np.where(tasks > 1, dealt * self.task_skew, dealt)

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


@dataclass(frozen=True, slots=True, eq=False)
class _Passage:
    """A batch that goes through all levels alone, with each number of slots: X, and R at the present demand."""

    empty_s: FloatArray
    rows: FloatArray

    def shortest_s(self, factor: FloatArray | float) -> FloatArray:
        idle = 1.0 - self.rows * np.asarray(factor)
        return np.where(idle > _LEAST_IDLE, self.empty_s / np.maximum(idle, _LEAST_IDLE), _ENDLESS_S)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchModel:
    """An application's batches on any number of slots; `rows_per_s` is the present demand of each operator.

    `heads` are the operators that read a source and nothing else, `trigger_s` is how often their batches start at most, and
    `bounds_s` is between what that can be set. `slots` are those that run.
    """

    application: Application
    queries: Sequence[_Query]
    rows_per_s: FloatArray
    heads: tuple[str, ...]
    slots: float
    trigger_s: float = 0.0
    bounds_s: tuple[float, float] = (0.0, np.inf)

    @classmethod
    def of(cls, view: View) -> BatchModel | None:
        """As measured; None where rows are processed one by one, or nothing has been measured yet."""
        longest_s, parts = longest_batches_s(view.application), BatchParts.of(view)
        levels = _levels(view.application)
        slots = max(1, len(view.observation.running_hosts) * view.pool.host.cores)
        queries = []
        for operator in view.application.operators:
            seen = view.observation.operators.get(operator.name)
            if seen is None or seen.costs is None:
                return None
            # It was measured over all slots, of which those without a task are idle.
            skew = max(1.0, seen.costs.skew.value * min(1.0, seen.replica_utilisation.size / slots))
            weights = _NONE
            if operator.keyed:
                weights = shard_weights(view, operator, view.requested.operators[operator.name])
                placed = view.observation.observed.operators[operator.name]
                skew = min(max(1.0, skew / _placed_skew(placed, weights, view.pool.host.cores)), _MOST_TASK_SKEW)
            queries.append(
                _Query(
                    operator=operator,
                    costs=seen.costs,
                    shards=operator.shards if operator.keyed else 0,
                    longest_s=longest_s[operator.name],
                    parts=parts,
                    task_skew=skew,
                    weights=weights,
                    level=levels[operator.name],
                )
            )
        demand = np.array([view.demand_rows_per_s.get(q.name, 0.0) for q in queries])
        if demand.sum() <= 0:  # what hosts can do does not depend on it
            demand = np.array(
                [_LEAST_ROWS_PER_S * sum(gains.get(q.name, 0.0) for gains in view.gains.values()) for q in queries]
            )
        heads = tuple(name for name, level in levels.items() if level == 0)
        seen_heads = [view.observation.operators[name] for name in heads]
        return cls(
            application=view.application,
            queries=tuple(queries),
            rows_per_s=demand,
            heads=heads,
            slots=float(slots),
            trigger_s=max(seen.trigger_s for seen in seen_heads),
            bounds_s=(max(s.trigger_bounds_s[0] for s in seen_heads), min(s.trigger_bounds_s[1] for s in seen_heads)),
        )

    @property
    def work_cores(self) -> float:
        """What the demand takes beside everything that is fixed."""
        return float(sum(q.costs.row_s.value * rate for q, rate in zip(self.queries, self.rows_per_s, strict=True)))

    @property
    def cost_doubt(self) -> float:
        """How many times as much the demand takes if each row costs one standard error more than was learned: twice at most."""
        dearer = sum(
            (q.costs.row_s.value + q.costs.row_s.error) * r for q, r in zip(self.queries, self.rows_per_s, strict=True)
        )
        return min(float(dearer) / self.work_cores, _MOST_DOUBT) if self.work_cores > 0 else 1.0

    def with_cheaper_rows(self, errors: float) -> BatchModel:
        """With rows that cost so many standard errors less, and batches that cost as much more: the same for batches like those
        that were seen. Batches that are all alike do not tell the two apart."""
        every_s = np.maximum(self.cycles_s(np.array([self.slots]))[:, 0], self.trigger_s)
        cheaper = []
        for query, rows in zip(self.queries, (self.rows_per_s * every_s).tolist(), strict=True):
            row, batch = query.costs.row_s, query.costs.batch_s
            less_s = min(row.value, errors * row.error)
            costs = replace(
                query.costs,
                row_s=replace(row, value=row.value - less_s),
                batch_s=replace(batch, value=batch.value + less_s * rows),
            )
            cheaper.append(replace(query, costs=costs))
        return replace(self, queries=tuple(cheaper))

    def shortest_s(self, slots: FloatArray, factor: FloatArray | float = 1.0) -> FloatArray:
        """The shortest trigger interval with which each batch is through all levels when the next begins."""
        return self._passage(slots).shortest_s(factor)

    def longest_s(self, percentile: float, latency_s: float, slots: FloatArray, factor: FloatArray | float = 1.0) -> FloatArray:
        """The longest trigger interval with which a percentile of latency is kept; 0 or less if none is."""
        through = self._passage(slots)
        longest: FloatArray = (latency_s - through.empty_s) / (percentile + through.rows * factor)
        return longest

    def fixed_cores(self, slots: FloatArray, every_s: FloatArray | float | None = None) -> FloatArray:
        """What batches take beside their rows, if one starts every so many seconds, or if they follow one another at once."""
        slots = np.asarray(slots, dtype=np.float64)
        fixed_s = np.array([_fixed_s(q, q.tasks(slots)) for q in self.queries])
        fixed: FloatArray = (fixed_s / (self.cycles_s(slots) if every_s is None else every_s)).sum(axis=0)
        return fixed

    def _passage(self, slots: FloatArray) -> _Passage:
        slots = np.asarray(slots, dtype=np.float64)
        empty_s, rows = np.zeros(slots.shape), np.zeros(slots.shape)
        for level in range(1 + max(q.level for q in self.queries)):
            own = [(q, rate) for q, rate in zip(self.queries, self.rows_per_s, strict=True) if q.level == level]
            tasks = [q.tasks(slots) for q, _ in own]
            used = np.minimum(slots, np.sum(tasks, axis=0))  # a task runs on one slot
            skews = [q.skew(its) for (q, _), its in zip(own, tasks, strict=True)]
            fixed_s = np.sum([k * _fixed_s(q, its) for (q, _), its, k in zip(own, tasks, skews, strict=True)], axis=0)
            work = np.sum([k * q.costs.row_s.value * rate for (q, rate), k in zip(own, skews, strict=True)], axis=0)
            empty_s += max(q.costs.driver_s.value for q, _ in own) + fixed_s / used
            rows += work / used
        return _Passage(empty_s, rows)

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
        even = on.slots / len(self.queries)
        lasts_s = np.broadcast_to(on.longest_s, np.broadcast_shapes(on.longest_s.shape, rows.shape))
        for _ in range(_ROUNDS if len(self.queries) > 1 else 1):
            busy = np.minimum(on.fixed_s / lasts_s + rows, on.tasks)
            left = np.maximum(on.slots - (busy.sum(axis=0) - busy), even)
            left = np.minimum(left, on.tasks)  # a task runs on one slot
            idle = 1.0 - on.skew * rows / left
            empty_s = on.driver_s + on.skew * on.fixed_s / left
            found_s = np.where(idle > _LEAST_IDLE, empty_s / np.maximum(idle, _LEAST_IDLE), _ENDLESS_S)
            lasts_s = np.sqrt(lasts_s * found_s)
        return found_s

    def latency_s(self, percentile: float, slots: FloatArray, factor: FloatArray | float = 1.0) -> FloatArray:
        """A percentile of latency through the whole application, with each number of slots, at a multiple of the demand and
        with the trigger interval there is."""
        slots = np.asarray(slots, dtype=np.float64)
        at_once_s = self._latency_s(percentile, self._on(slots), factor)
        if self.trigger_s <= 0:
            return at_once_s
        through = self._passage(slots)
        apart_s = percentile * self.trigger_s + through.empty_s + through.rows * factor * self.trigger_s
        return np.where(through.shortest_s(factor) <= self.trigger_s, apart_s, at_once_s)

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
        """The work, beside all that is fixed, with which a percentile of latency is just kept; 0 where it cannot be.

        Batches start as often as they can, or as the user's own trigger interval lets them.
        """
        slots = np.asarray(slots, dtype=np.float64)
        work = self.work_cores
        if work <= 0:
            return np.zeros(slots.shape)
        on, often = self._on(slots), replace(self, trigger_s=self.bounds_s[0])
        low, high = np.zeros(slots.shape), slots / work
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            at_once = often.trigger_s <= 0
            latencies_s = self._latency_s(percentile, on, middle) if at_once else often.latency_s(percentile, slots, middle)
            kept = latencies_s <= latency_s
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


def _placed_skew(placed: OperatorAllocation, weights: FloatArray, cores: int) -> float:
    """The busiest slot's weight over the mean of the slots that have a task, with shards where they are."""
    replicas = np.bincount(placed.shard_replicas, weights=weights, minlength=placed.replicas)
    on: dict[str, list[float]] = {}
    for host, weight in zip(placed.replica_hosts, replicas.tolist(), strict=True):
        on.setdefault(host, []).append(weight)
    busiest = max(max(*each, sum(each) / min(cores, len(each))) if len(each) > 1 else each[0] for each in on.values())
    slots = sum(min(cores, len(each)) for each in on.values())
    total = float(weights.sum())
    return max(1.0, busiest * slots / total) if total > 0 else 1.0


def _levels(application: Application) -> dict[str, int]:
    """How many operators rows pass at most before they reach each operator."""
    levels: dict[str, int] = {}
    for operator in application.operators:  # in topological order
        above = [levels[e.upstream] for e in application.inputs(operator.name) if e.upstream in levels]
        levels[operator.name] = 1 + max(above, default=-1)
    return levels


def _column(values: Sequence[float], slots: FloatArray) -> FloatArray:
    """A value of each query, to be combined with every number of slots."""
    return np.array(values, dtype=np.float64).reshape(-1, *[1] * slots.ndim)


def _wait_s(percentile: float, sums: FloatArray, squares: FloatArray, depth: int) -> FloatArray:
    """A percentile of the sum of waits, each evenly distributed over a batch: exact for one, nearly normal for several."""
    if depth == 1:
        return percentile * sums
    deviation = np.sqrt(squares / 12)
    return np.clip(sums / 2 + NormalDist().inv_cdf(percentile) * deviation, 0.0, sums)
