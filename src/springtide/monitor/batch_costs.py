"""What batches cost an operator, learned from every batch: see `model.batch` for the terms.

A batch's time is told apart by what was measured of its tasks, not by its length alone:

* tasks of the replicas' stage took task + shard s + row n each, with s shards and n rows of their own;
* tasks of the stages before it took batch + row n together, with the n rows of the batch;
* what the busiest slot did not fill is the driver's;
* skew is the busiest slot's time over the mean slot's.

So a cost per shard and a cost per task are told apart as soon as two tasks serve different numbers of shards, and both from the
cost per row as soon as batches differ in rows. Until then the costs stay near what they are expected to be, with large errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from springtide.model.batch import BatchCosts, Estimate
from springtide.model.observation import FloatArray
from springtide.monitor.linear_cost import LinearCost
from springtide.monitor.moments import Moments

# Of a small Spark 4.3 cluster: what a task and a shard may be expected to take, and what else. With a Python function and its
# state they take 0.1 and 0.06 s, with Spark's own aggregates a tenth of that.
_TASK_S, _TASK_ERROR_S = 0.05, 0.07
_SHARD_S, _SHARD_ERROR_S = 0.03, 0.03
_BATCH_S, _BATCH_ERROR_S = 0.03, 0.1
_DRIVER_S, _DRIVER_ERROR_S = 0.3, 0.3
_ROW_ERROR_S = 0.01
_FEEDING_ROW_ERROR_S = 0.001

_REMEMBERED = 0.99  # of the batches before, with each batch
_SKEW_LEARNING = 0.1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchSample:
    """One batch. Element t of the arrays is task t of the replicas' stage, of those that can be learned from.

    `feeding_s` is what all tasks of other stages took, 0 if there were none; `busiest_s` and `mean_s` are the
    times of the busiest slot and of the mean one, of all slots that were there.
    """

    rows: float
    duration_s: float
    task_shards: FloatArray
    task_rows: FloatArray
    task_s: FloatArray
    feeding_s: float
    busiest_s: float
    mean_s: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchMoments:
    """The batches of one operator over an interval, added up."""

    batches: float
    tasks: Moments
    feeding: Moments
    driver: Moments
    busiest_s: float
    mean_s: float

    @classmethod
    def of(cls, samples: Iterable[BatchSample]) -> BatchMoments:
        batches, busiest_s, mean_s = 0, 0.0, 0.0
        tasks, feeding, driver = Moments.empty(3), Moments.empty(2), Moments.empty(1)
        for sample in samples:
            batches += 1
            tasks += Moments.of(np.column_stack([sample.task_shards, sample.task_rows]), sample.task_s)
            feeding += Moments.of(np.array([[sample.rows]]), np.array([sample.feeding_s]))
            driver += Moments.of(np.zeros((1, 0)), np.array([max(0.0, sample.duration_s - sample.busiest_s)]))
            busiest_s += sample.busiest_s
            mean_s += sample.mean_s
        return cls(batches=batches, tasks=tasks, feeding=feeding, driver=driver, busiest_s=busiest_s, mean_s=mean_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Skew:
    """A mean that older batches count less in, and the mean square of what they are off by."""

    mean: float = 1.0
    square: float = 1.0

    def then(self, ratio: float, batches: float) -> _Skew:
        learning = 1.0 - (1.0 - _SKEW_LEARNING) ** batches
        off = ratio - self.mean
        return _Skew(mean=self.mean + learning * off, square=self.square + learning * (off**2 - self.square))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LearnedCosts:
    """What is known of one operator's batches so far."""

    tasks: LinearCost
    feeding: LinearCost
    driver: LinearCost
    skew: _Skew = _Skew()
    batches: float = 0.0

    @classmethod
    def begin(cls, row_s: float = 0.0) -> LearnedCosts:
        """Before the first batch; `row_s` is what a row may be expected to take."""
        return cls(
            tasks=LinearCost.begin((_TASK_S, _SHARD_S, row_s), (_TASK_ERROR_S, _SHARD_ERROR_S, max(_ROW_ERROR_S, row_s))),
            feeding=LinearCost.begin((_BATCH_S, 0.0), (_BATCH_ERROR_S, _FEEDING_ROW_ERROR_S)),
            driver=LinearCost.begin((_DRIVER_S,), (_DRIVER_ERROR_S,)),
        )

    def then(self, moments: BatchMoments) -> LearnedCosts:
        """With the batches of one more interval."""
        if moments.batches <= 0:
            return self
        skew = self.skew
        if moments.mean_s > 0:
            skew = skew.then(max(1.0, moments.busiest_s / moments.mean_s), moments.batches)
        return replace(
            self,
            tasks=self.tasks.then(moments.tasks, moments.batches),
            feeding=self.feeding.then(moments.feeding, moments.batches),
            driver=self.driver.then(moments.driver, moments.batches),
            skew=skew,
            batches=_REMEMBERED**moments.batches * self.batches + moments.batches,
        )

    @property
    def costs(self) -> BatchCosts:
        row, feeding_row = self.tasks.estimate(2), self.feeding.estimate(1)
        return BatchCosts(
            driver_s=self.driver.estimate(0),
            batch_s=self.feeding.estimate(0),
            task_s=self.tasks.estimate(0),
            shard_s=self.tasks.estimate(1),
            row_s=Estimate(value=row.value + feeding_row.value, error=math.hypot(row.error, feeding_row.error)),
            skew=Estimate(value=self.skew.mean, error=math.sqrt(self.skew.square)),
            batches=self.batches,
        )
