"""Known costs are found again in batches made by them; what they do not tell apart has a large error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.model.batch import BatchCosts
from springtide.monitor.batch_costs import BatchMoments, BatchSample, LearnedCosts


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What batches really cost; seconds. `noise` is the standard deviation of a task's time, as a share of it."""

    driver_s: float = 0.35
    batch_s: float = 0.05
    task_s: float = 0.03
    shard_s: float = 0.02
    row_s: float = 0.010
    feeding_row_s: float = 0.0
    noise: float = 0.05
    weights: Sequence[float] = field(default=(1 / 8,) * 8)  # of the shards

    def batch(self, chance: np.random.Generator, rows: float, tasks: int, slots: int) -> BatchSample:
        """Shards are dealt to tasks in turn, tasks to slots in turn."""
        shards = np.arange(len(self.weights))
        task_shards = np.bincount(shards % tasks, minlength=tasks).astype(float)
        task_rows = rows * np.bincount(shards % tasks, weights=self.weights, minlength=tasks)
        feeding_s = (self.batch_s + self.feeding_row_s * rows) * chance.normal(1.0, self.noise)
        task_s = (self.task_s + self.shard_s * task_shards + self.row_s * task_rows) * chance.normal(1.0, self.noise, tasks)
        slot_s = np.bincount(np.arange(tasks) % slots, weights=task_s, minlength=slots) + feeding_s / slots
        return BatchSample(
            rows=rows,
            duration_s=self.driver_s * chance.normal(1.0, self.noise) + float(slot_s.max()),
            task_shards=task_shards,
            task_rows=task_rows,
            task_s=task_s,
            feeding_s=feeding_s,
            busiest_s=float(slot_s.max()),
            mean_s=float(slot_s.mean()),
        )


Pace = Callable[[int], tuple[float, int]]  # rows and tasks of the i-th batch


def learn(learned: LearnedCosts, samples: Iterable[BatchSample], together: int = 3) -> LearnedCosts:
    """With a few batches in each interval."""
    found = list(samples)
    for begin in range(0, len(found), together):
        learned = learned.then(BatchMoments.of(found[begin : begin + together]))
    return learned


def batches(truth: Truth, pace: Pace, count: int, seed: int = 1, slots: int = 2) -> list[BatchSample]:
    chance = np.random.default_rng(seed)
    return [truth.batch(chance, *pace(i), slots) for i in range(count)]


def assert_found(costs: BatchCosts, truth: Truth, *names: str, within: float = 0.1) -> None:
    for name in names:
        expected = getattr(truth, name) + (truth.feeding_row_s if name == "row_s" else 0.0)
        assert getattr(costs, name).value == pytest.approx(expected, rel=within), name


def varied(i: int) -> tuple[float, int]:
    """Rows swing between 20 and 180, tasks change every now and then."""
    return 100 + 80 * np.sin(i / 9), 1 + i // 15 % 4


SKEWED = tuple(np.array([8.0, 4.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0]) / 19)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("truth", [Truth(), Truth(weights=SKEWED), Truth(row_s=0.002, feeding_row_s=0.001)], ids=repr)
def test_all_costs_are_found_where_batches_vary(truth: Truth, seed: int) -> None:
    costs = learn(LearnedCosts.begin(), batches(truth, varied, 120, seed)).costs
    assert_found(costs, truth, "driver_s", "row_s")
    assert_found(costs, truth, "batch_s", "task_s", "shard_s", within=0.35)
    for tasks in (1, 4, 8):
        fixed_s = truth.batch_s + truth.task_s * tasks + truth.shard_s * 8
        assert costs.fixed_s(tasks=tasks, shards=8) == pytest.approx(fixed_s, rel=0.1)
    assert costs.row_s.error < 0.1 * costs.row_s.value


def test_every_cost_is_within_a_tenth_without_noise() -> None:
    truth = Truth(noise=0.0)
    costs = learn(LearnedCosts.begin(), batches(truth, varied, 200)).costs
    assert_found(costs, truth, "driver_s", "batch_s", "task_s", "shard_s", "row_s")


def test_skew_is_the_busiest_slot_over_the_mean() -> None:
    truth = Truth(weights=SKEWED, noise=0.0)
    samples = batches(truth, lambda _: (100.0, 2), 60)
    costs = learn(LearnedCosts.begin(), samples).costs
    assert costs.skew.value == pytest.approx(samples[-1].busiest_s / samples[-1].mean_s, rel=0.02)
    assert learn(LearnedCosts.begin(), batches(Truth(noise=0.0), lambda _: (100.0, 2), 60)).costs.skew.value < 1.02


@pytest.mark.parametrize("rows", [1.0, 50.0, 5000.0])
def test_at_a_constant_rate_the_error_says_that_costs_are_not_told_apart(rows: float) -> None:
    truth = Truth()
    costs = learn(LearnedCosts.begin(), batches(truth, lambda _: (rows, 2), 200)).costs
    told = [costs.task_s, costs.shard_s, costs.row_s]
    for cost, true in zip(told, (truth.task_s, truth.shard_s, truth.row_s), strict=True):
        assert abs(cost.value - true) < 3 * cost.error, "the truth is within what the errors allow"
    whole_s = truth.batch_s + 2 * truth.task_s + 8 * truth.shard_s + rows * truth.row_s
    assert costs.fixed_s(tasks=2, shards=8) + rows * costs.row_s.value == pytest.approx(whole_s, rel=0.1)
    if rows <= 50:
        assert max(cost.error / cost.value for cost in told if cost.value > 0) > 0.25


def test_what_was_found_is_kept_while_nothing_is_told_any_more() -> None:
    truth = Truth()
    learned = learn(LearnedCosts.begin(), batches(truth, varied, 120))
    later = learn(learned, batches(truth, lambda _: (50.0, 2), 600, seed=2)).costs
    assert_found(later, truth, "row_s", within=0.2)
    assert later.row_s.error > 1.5 * learned.costs.row_s.error


@pytest.mark.parametrize("slower", [5.0, 100.0])
def test_a_few_abnormal_batches_change_little(slower: float) -> None:
    """A pause of the garbage collector, a noisy neighbour: one interval of batches that take many times as long."""
    truth = Truth()
    learned = learn(LearnedCosts.begin(), batches(truth, varied, 120))
    once = learn(learned, batches(Truth(row_s=truth.row_s * slower), lambda _: (60.0, 2), 3))
    assert_found(once.costs, truth, "row_s", within=0.4)
    assert_found(learn(once, batches(truth, varied, 9, seed=3)).costs, truth, "row_s")


@pytest.mark.parametrize("factor", [100.0, 0.01])
def test_a_cost_that_has_changed_is_learned_anew_within_some_intervals(factor: float) -> None:
    learned = learn(LearnedCosts.begin(), batches(Truth(), varied, 120))
    changed = Truth(row_s=Truth().row_s * factor)
    costs = learn(learned, batches(changed, varied, 24, seed=4)).costs
    assert costs.row_s.value == pytest.approx(changed.row_s, abs=0.1 * max(changed.row_s, Truth().row_s))


def test_batches_without_rows_teach_nothing_of_rows() -> None:
    learned = learn(LearnedCosts.begin(), batches(Truth(), varied, 120))
    later = learn(learned, batches(Truth(), lambda _: (0.0, 2), 60))
    assert_found(later.costs, Truth(), "row_s", within=0.05)
    assert later.then(BatchMoments.of([])) is later


@given(
    data=st.lists(
        st.tuples(
            st.floats(0, 1e7), st.integers(1, 16), st.floats(0, 1e4), st.floats(0, 1e4), st.floats(0, 1e3), st.booleans()
        ),
        min_size=1,
        max_size=30,
    )
)
def test_whatever_is_measured_costs_are_finite_and_not_negative(
    data: list[tuple[float, int, float, float, float, bool]],
) -> None:
    learned = LearnedCosts.begin(0.001)
    for rows, tasks, task_s, duration_s, feeding_s, fed in data:
        sample = BatchSample(
            rows=rows,
            duration_s=duration_s,
            task_shards=np.ones(tasks),
            task_rows=np.full(tasks, rows / tasks),
            task_s=np.full(tasks, task_s),
            feeding_s=feeding_s if fed else 0.0,
            busiest_s=task_s,
            mean_s=task_s,
        )
        learned = learned.then(BatchMoments.of([sample]))
        costs = learned.costs  # an estimate that is negative or not finite cannot be built
        assert np.isfinite(costs.row_s.error)
