"""The micro-batch model, beside formulas and beside a small event-driven model of the same thing.

A batch takes the rows that have arrived by its start, needs a fixed time plus the work of its slowest replica, and
lets all its rows go at its end. The next one begins then, or when the trigger says, or when there is a row to work on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray
from worlds import Run, chain, observe, one_operator, operator, phases, simulate, steady
from worlds import backend as world

from springtide.backends.simulator.settings import Activation, Failure, MicroBatch, Moves, ServiceModel
from springtide.model.action import MoveShards, SetReplicas
from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.model.application import Application, Edge, Grouping, KeyDistribution, Source

BATCHES = {"service": ServiceModel.MICRO_BATCH}
PLAIN = MicroBatch(overhead_s=0.2, stage_overhead_s=0.0, task_overhead_s=0.0, shard_overhead_s=0.0)


# --- the model in the test: events instead of steps ---------------------------------------------------------------------


@dataclass(frozen=True)
class Batch:
    start_s: float
    end_s: float
    first_row: float
    after_row: float


@dataclass(frozen=True)
class Trace:
    """Rows that come evenly through each step."""

    rows_per_step: NDArray[np.float64]
    step_s: float

    @property
    def _ends_s(self) -> NDArray[np.float64]:
        return np.arange(len(self.rows_per_step) + 1) * self.step_s

    @property
    def _counts(self) -> NDArray[np.float64]:
        return np.concatenate([[0.0], np.cumsum(self.rows_per_step)])

    @property
    def total(self) -> float:
        return float(self._counts[-1])

    def arrived_by(self, time_s: float) -> float:
        return float(np.interp(time_s, self._ends_s, self._counts))

    def arrival_s(self, row: float | NDArray[np.float64]) -> NDArray[np.float64]:
        """When a row, given by its number, comes; after a silence, at the end of it."""
        last = np.searchsorted(self._counts, row, side="right") - 1
        last = np.minimum(last, len(self.rows_per_step) - 1)
        return self._ends_s[last] + self.step_s * (row - self._counts[last]) / np.maximum(self.rows_per_step[last], 1e-300)


def batches_of(
    arrived_by: Callable[[float], float],
    arrival_s: Callable[[float], float],
    total: float,
    duration_s: Callable[[float], float],
    costs: MicroBatch,
) -> list[Batch]:
    found: list[Batch] = []
    now_s, taken = 0.0, 0.0
    while taken < total - 1e-6:
        waiting = arrived_by(now_s) - taken
        if waiting <= 1e-9:
            now_s = max(now_s, arrival_s(min(taken + 1.0, total)))
            waiting = arrived_by(now_s) - taken
        rows = min(waiting, costs.max_rows)
        end_s = now_s + duration_s(rows)
        found.append(Batch(now_s, end_s, taken, taken + rows))
        now_s, taken = max(end_s, now_s + costs.trigger_s), taken + rows
    return found


def latencies_s(trace: Trace, batches: list[Batch], samples: int = 200_000) -> NDArray[np.float64]:
    rows = (np.arange(samples) + 0.5) * trace.total / samples
    ends = np.array([b.end_s for b in batches])
    left_with = np.searchsorted(np.array([b.after_row for b in batches]), rows)
    return ends[np.minimum(left_with, len(ends) - 1)] - trace.arrival_s(rows)


def random_trace(rng: np.random.Generator, step_s: float) -> Trace:
    rates = rng.choice([0.0, 20.0, 60.0, 140.0, 260.0], size=12)
    return Trace(np.concatenate([np.repeat(rates * step_s, round(15 / step_s)), np.zeros(round(600 / step_s))]), step_s)


@pytest.mark.parametrize("seed", range(12))
def test_one_operator_does_what_the_event_driven_model_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    costs = MicroBatch(
        overhead_s=float(rng.choice([0.05, 0.4, 2.0])),
        task_overhead_s=float(rng.choice([0.0, 0.1])),
        shard_overhead_s=float(rng.choice([0.0, 0.05])),
        trigger_s=float(rng.choice([0.0, 0.0, 5.0])),
        max_rows=float(rng.choice([math.inf, 150.0])),
    )
    replicas = int(rng.integers(1, 5))
    grouping = [Grouping.KEY, Grouping.SHUFFLE, Grouping.SHARED][seed % 3]
    application = one_operator(grouping=grouping, shards=7, service_time_s=0.004, keys=KeyDistribution(keys=40, zipf=0.8))
    trace = random_trace(rng, step_s=float(rng.choice([0.25, 1.0])))
    run = simulate(
        application, trace.rows_per_step[None, :], step_s=trace.step_s, replicas=replicas, micro_batch=costs, **BATCHES
    )

    seen = run.last.operators["work"]
    parts = np.full(replicas, 1.0 / replicas)
    shards = np.zeros(replicas)
    if grouping is Grouping.KEY:
        on = np.arange(7) % replicas
        parts = np.bincount(on, weights=seen.shards.rows / seen.shards.rows.sum(), minlength=replicas)
        shards = np.bincount(on, minlength=replicas)
    overheads = costs.task_overhead_s + shards * costs.shard_overhead_s

    def duration_s(rows: float) -> float:
        return costs.fixed_s + float((overheads + parts * rows * 0.004).max())

    batches = batches_of(trace.arrived_by, lambda row: float(trace.arrival_s(row)), trace.total, duration_s, costs)
    expected = latencies_s(trace, batches)
    assert run.processed() == pytest.approx(trace.total)
    assert run.latency.mean_s == pytest.approx(expected.mean(), rel=1e-3)
    assert run.latency.max_s == pytest.approx(expected.max(), abs=trace.step_s / 2)
    for what, share in {"p10_s": 0.1, "p50_s": 0.5, "p90_s": 0.9, "p99_s": 0.99}.items():
        assert getattr(run.latency, what) == pytest.approx(np.quantile(expected, share), abs=trace.step_s / 2, rel=0.002), what


@pytest.mark.parametrize("seed", range(6))
def test_two_operators_in_a_row_do_what_the_event_driven_model_does(seed: int) -> None:
    """The second takes what the first has committed, and not a row before: steps are short beside batches here."""
    rng = np.random.default_rng(100 + seed)
    costs = MicroBatch(overhead_s=float(rng.choice([0.4, 1.1])), max_rows=float(rng.choice([math.inf, 170.0])))
    services = rng.choice([0.001, 0.004], size=2)
    application = chain(
        operator("parse", service_time_s=float(services[0])), operator("count", service_time_s=float(services[1]))
    )
    trace = random_trace(rng, step_s=0.05)
    run = simulate(application, trace.rows_per_step[None, :], step_s=0.05, micro_batch=costs, **BATCHES)

    def duration_s(rows: float, service_s: float) -> float:
        return costs.fixed_s + costs.task_overhead_s + rows * service_s

    first = batches_of(
        trace.arrived_by,
        lambda row: float(trace.arrival_s(row)),
        trace.total,
        lambda rows: duration_s(rows, services[0]),
        costs,
    )
    second = batches_of(
        lambda now_s: max([0.0, *(b.after_row for b in first if b.end_s <= now_s + 1e-9)]),
        lambda row: next(b.end_s for b in first if b.after_row >= row - 1e-6),
        trace.total,
        lambda rows: duration_s(rows, services[1]),
        costs,
    )
    expected = latencies_s(trace, second)
    assert run.processed("count") == pytest.approx(trace.total)
    assert run.latency.mean_s == pytest.approx(expected.mean(), rel=2e-3)
    assert run.latency.p90_s == pytest.approx(np.quantile(expected, 0.9), abs=0.025, rel=0.004)


# --- formulas -----------------------------------------------------------------------------------------------------------


def batch_length_s(run: Run) -> float:
    """Under a steady load every batch takes the rows that came during the one before: they wait half a batch on
    average and are worked on for a whole one."""
    return run.last.latency.mean_s / 1.5


@pytest.mark.parametrize("rate", [5.0, 60.0, 90.0])
def test_under_a_steady_load_a_batch_works_on_what_came_during_the_last_one(rate: float) -> None:
    """d = fixed + rate d service, so d = fixed / (1 - rate service)."""
    run = simulate(one_operator(), steady(rate, seconds=900, step_s=0.1), step_s=0.1, every_s=450, micro_batch=PLAIN, **BATCHES)

    length_s = 0.2 / (1 - rate * 0.01)
    assert batch_length_s(run) == pytest.approx(length_s, rel=0.01)
    assert run.last.latency.max_s == pytest.approx(2 * length_s, abs=0.1)
    assert run.last.operators["work"].busy_share == pytest.approx(rate * 0.01, rel=0.01)


@pytest.mark.parametrize("replicas", [1, 2, 4, 8])
def test_replicas_share_rows_and_shards_but_each_pays_for_its_task(replicas: int) -> None:
    costs = MicroBatch(overhead_s=0.3, stage_overhead_s=0.05, stages=3, task_overhead_s=0.04, shard_overhead_s=0.02)
    application = one_operator(grouping=Grouping.KEY, shards=8, service_time_s=0.02, keys=KeyDistribution(keys=1))
    run = simulate(
        application, steady(10, seconds=600, step_s=0.1), replicas=replicas, micro_batch=costs, step_s=0.1, **BATCHES
    )

    # One key: all rows on one replica, but shards are opened and committed everywhere.
    fixed_s = 0.3 + 3 * 0.05 + 0.04 + 8 / replicas * 0.02
    assert batch_length_s(run) == pytest.approx(fixed_s / (1 - 10 * 0.02), rel=0.01)


@pytest.mark.parametrize("shards", [4, 16, 64])
def test_every_shard_is_opened_and_committed_rows_or_none(shards: int) -> None:
    costs = replace(PLAIN, shard_overhead_s=0.01)
    application = one_operator(grouping=Grouping.KEY, shards=shards)
    run = simulate(application, steady(20, seconds=600, step_s=0.1), micro_batch=costs, step_s=0.1, **BATCHES)

    assert batch_length_s(run) == pytest.approx((0.2 + 0.01 * shards) / (1 - 0.2), rel=0.01)


def test_an_operator_without_state_opens_no_shards() -> None:
    costs = replace(PLAIN, shard_overhead_s=5.0)
    run = simulate(one_operator(), steady(20, seconds=600, step_s=0.1), micro_batch=costs, step_s=0.1, **BATCHES)

    assert batch_length_s(run) == pytest.approx(0.2 / 0.8, rel=0.01)


@pytest.mark.parametrize("cores", [1, 2, 3, 4, 8])
def test_replicas_beyond_the_cores_take_turns(cores: int) -> None:
    application = one_operator(grouping=Grouping.SHUFFLE)
    run = simulate(
        application,
        steady(40, seconds=600, step_s=0.1),
        replicas=4,
        cores=cores,
        every_s=300,
        micro_batch=PLAIN,
        step_s=0.1,
        **BATCHES,
    )

    crowd = max(1.0, 4 / cores)
    assert batch_length_s(run) == pytest.approx(0.2 / (1 - 40 * 0.01 / 4 * crowd), rel=0.01)
    assert run.last.hosts["host-0"].busy_share == pytest.approx(40 * 0.01 / cores, rel=0.01)


def test_a_trigger_sets_the_rhythm() -> None:
    run = simulate(
        one_operator(),
        steady(10, seconds=400, step_s=0.1),
        every_s=200,
        micro_batch=replace(PLAIN, trigger_s=8.0),
        step_s=0.1,
        **BATCHES,
    )

    # 80 rows per batch: a row waits 4 s on average, and 0.2 + 0.8 s are spent on the batch.
    assert run.last.latency.mean_s == pytest.approx(4.0 + 1.0, rel=0.01)
    assert run.last.latency.max_s == pytest.approx(8.0 + 1.0, abs=0.1)


def test_a_batch_longer_than_its_trigger_is_followed_at_once() -> None:
    trigger = replace(PLAIN, trigger_s=0.1)
    runs = [
        simulate(one_operator(), steady(50, seconds=60, step_s=0.1), step_s=0.1, micro_batch=m, **BATCHES)
        for m in (PLAIN, trigger)
    ]
    assert runs[0].latency == runs[1].latency


def test_a_batch_takes_no_more_rows_than_it_may() -> None:
    costs = replace(PLAIN, trigger_s=10.0, max_rows=40.0)
    run = simulate(one_operator(), phases((10, 60), (0, 200)), every_s=10, micro_batch=costs, **BATCHES)

    processed = [o.processed_rows for o in run.of("work")]
    assert max(processed) == pytest.approx(40)
    assert run.processed() == pytest.approx(600)
    assert processed.count(pytest.approx(40)) >= 14  # 600 rows, 40 at a time


def test_an_idle_operator_begins_when_a_row_comes() -> None:
    run = simulate(one_operator(), phases((0, 10.0), (100, 1.0), (0, 30.0)), micro_batch=PLAIN, **BATCHES)

    # At 10.01 s with one row, at 10.22 s with 21 more, at 10.63 s with 41, at 11.24 s with the last 37.
    assert run.latency.max_s == pytest.approx(11.81 - 10.63, abs=0.5)
    assert run.latency.mean_s < 0.9


# --- what happens to batches ----------------------------------------------------------------------------------------------


def test_moving_a_shard_lengthens_just_one_batch() -> None:
    application = one_operator(grouping=Grouping.KEY, shards=4, state_bytes_per_shard=3 * 10**8)
    move = {50.0: [MoveShards("work", {0: 1})]}
    settings = {
        "hosts": 2,
        "replicas": 2,
        "every_s": 10.0,
        "moves": Moves(synchronisation_s=0.25),
        "micro_batch": replace(PLAIN, trigger_s=10.0),
        "host": {"bandwidth_bytes_per_s": 1e8},
        **BATCHES,
    }
    still = simulate(application, steady(10, seconds=100), **settings)
    moved = simulate(application, steady(10, seconds=100), script=move, **settings)

    longer = [m.latency.mean_s - s.latency.mean_s for m, s in zip(moved.observations, still.observations, strict=True)]
    assert longer[:5] == [0.0] * 5
    # 3 s for the state and 0.25 s for the agreement; one more shard on the replica changes the rows it works on, too.
    assert longer[5] - longer[6] == pytest.approx(3.25, abs=1e-6)
    assert longer[6:] == pytest.approx([longer[6]] * 4)


def test_regrouping_on_one_host_costs_nothing_between_batches() -> None:
    application = one_operator(grouping=Grouping.KEY, shards=4, state_bytes_per_shard=10**9, keys=KeyDistribution(keys=1))
    swap = {50.0: [MoveShards("work", {0: 1, 1: 0, 2: 1, 3: 0})]}
    settings = {"replicas": 2, "moves": Moves(synchronisation_s=5.0), "micro_batch": PLAIN, **BATCHES}
    still = simulate(application, steady(10, seconds=100), **settings)
    swapped = simulate(application, steady(10, seconds=100), script=swap, **settings)

    assert swapped.latency.mean_s == pytest.approx(still.latency.mean_s, rel=1e-9)
    assert swapped.latency.max_s == pytest.approx(still.latency.max_s, rel=1e-9)


def test_a_batch_under_way_is_not_changed_by_a_new_plan() -> None:
    """It goes on with the replicas it has; the next one has the new ones."""
    application = one_operator(grouping=Grouping.SHUFFLE, service_time_s=0.1)
    costs = replace(PLAIN, trigger_s=20.0)
    out = {45.0: [SetReplicas("work", ("host-0",) * 5, before=1)]}  # within the batch from 40.0 s to 60.2 s
    run = simulate(
        application, steady(10, seconds=100, step_s=0.5), step_s=0.5, every_s=5.0, script=out, micro_batch=costs, **BATCHES
    )
    busy = [o.busy_share * len(o.replica_utilisation) * 5.0 for o in run.of("work")]

    assert busy[9:12] == pytest.approx([5.0, 5.0, 5.0], abs=0.3)  # one replica to the end
    assert run.at(65.0).operators["work"].busy_share == pytest.approx(0.8, abs=0.2)


def test_rows_that_waited_are_dealt_to_the_replicas_there_are() -> None:
    """Not to those there were when the rows came: a batch of Spark splits what it reads anew."""
    application = one_operator(grouping=Grouping.SHUFFLE, service_time_s=0.1)
    out = {100.0: [SetReplicas("work", ("host-0",) * 4, before=1)]}
    costs = replace(PLAIN, max_rows=100.0)
    run = simulate(application, steady(20, seconds=200), every_s=10.0, script=out, micro_batch=costs, **BATCHES)

    after = list(run.of("work"))[12:18]
    assert all(o.replica_utilisation.min() == pytest.approx(o.replica_utilisation.max(), abs=0.01) for o in after)
    assert sum(o.processed_rows for o in after) == pytest.approx(6 * 10 * 100 / 2.7, rel=0.1)  # 100 rows in 0.2 s + 10 s / 4


def test_a_restart_keeps_the_batch_under_way_and_drops_the_rest() -> None:
    costs = replace(PLAIN, trigger_s=20.0)
    out = {41.0: [SetReplicas("work", ("host-0",) * 2, before=1)]}
    run = simulate(
        one_operator(),
        phases((10, 60), (0, 60)),
        script=out,
        micro_batch=costs,
        activation=Activation.RESTART,
        restart_s=3.0,
        restart_drops_queue=True,
        **BATCHES,
    )
    assert run.dropped() == pytest.approx(10, abs=1)  # what came between 40 s and 41 s
    assert run.processed() + run.dropped() == pytest.approx(600)


def test_when_a_host_is_lost_the_batch_is_run_again_after_recovery() -> None:
    application = one_operator(grouping=Grouping.SHUFFLE, service_time_s=0.1)
    costs = replace(PLAIN, trigger_s=30.0)
    settings = {"hosts": 2, "replicas": 2, "micro_batch": costs, "recovery_s": 7.0, "every_s": 30.0, **BATCHES}
    unharmed = simulate(application, steady(10, seconds=150), **settings)
    harmed = simulate(application, steady(10, seconds=150), failures=(Failure(at_s=65.0, host="host-1"),), **settings)

    # The batch of 60.1 s (when the first row came, the clock read 0.1 s) starts again at 72 s.
    later = [h.latency.mean_s - u.latency.mean_s for h, u in zip(harmed.observations, unharmed.observations, strict=True)]
    assert later == pytest.approx([0.0, 0.0, 11.9, 0.0, 0.0], abs=1e-6)
    assert harmed.processed() == pytest.approx(unharmed.processed())


def test_a_host_lost_between_two_batches_holds_up_the_next_one() -> None:
    application = one_operator(grouping=Grouping.SHUFFLE)
    costs = replace(PLAIN, trigger_s=30.0)
    settings = {"hosts": 2, "replicas": 2, "micro_batch": costs, "recovery_s": 12.0, "every_s": 30.0, **BATCHES}
    unharmed = simulate(application, steady(10, seconds=150), **settings)
    harmed = simulate(application, steady(10, seconds=150), failures=(Failure(at_s=55.0, host="host-1"),), **settings)

    # The batch of 60 s starts at 67 s with the rows of 7 s more.
    assert harmed.at(90).latency.max_s - unharmed.at(90).latency.max_s == pytest.approx(7.0, abs=1.0)
    assert harmed.at(90).operators["work"].processed_rows == pytest.approx(370, abs=11)


def test_rows_too_old_are_dropped_instead_of_processed() -> None:
    """Also in an overload, when one batch follows the other without a pause."""
    costs = replace(PLAIN, max_rows=100.0)  # 100 rows in 1.2 s
    run = simulate(one_operator(timeout_s=10.0), phases((150, 120), (0, 60)), every_s=60.0, micro_batch=costs, **BATCHES)

    assert run.latency.max_s <= 10.0 + 1.2 + 1.0
    assert run.dropped() > 0
    assert run.processed() + run.dropped() == pytest.approx(150 * 120)
    assert run.at(120).operators["work"].processed_rows == pytest.approx(60 / 1.2 * 100, rel=0.02)


# --- order of events --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step_s", [0.05, 0.5, 1.0, 4.0])
def test_no_row_leaves_the_second_operator_before_the_first_has_committed_it(step_s: float) -> None:
    """Eight rows in one burst; each operator needs at least its fixed time for them, whatever the step."""
    application = chain(operator("parse", service_time_s=0.1), operator("count", service_time_s=0.05))
    burst = np.zeros((1, round(80 / step_s)))
    burst[0, round(8 / step_s)] = 8.0
    costs = MicroBatch(overhead_s=0.7, stage_overhead_s=0.0, task_overhead_s=0.0)
    run = simulate(application, burst, step_s=step_s, interval_s=8.0, micro_batch=costs, **BATCHES)

    assert run.latency.rows == pytest.approx(8)
    assert run.latency.p10_s >= 2 * 0.7 + 0.1 + 0.05 - 0.002


@pytest.mark.parametrize("step_s", [0.1, 1.0, 3.0])
def test_rows_of_a_source_that_meet_committed_ones_leave_after_they_came(step_s: float) -> None:
    """Single rows and whole batches arrive at the same operator: neither may be worked on before it is there."""
    application = Application(
        name="meeting",
        sources=(Source(name="slow"), Source(name="fast")),
        operators=(operator("parse", service_time_s=0.001), operator("join", service_time_s=0.0001)),
        edges=(
            Edge(upstream="slow", downstream="parse"),
            Edge(upstream="parse", downstream="join"),
            Edge(upstream="fast", downstream="join"),
        ),
    )
    rows = np.concatenate([phases((10, 6), (0, 54), step_s=step_s), phases((0, 3), (10, 57), step_s=step_s)])
    costs = MicroBatch(overhead_s=0.01, stage_overhead_s=0.0, task_overhead_s=0.0)
    run = simulate(application, rows, step_s=step_s, interval_s=3.0, every_s=3.0, micro_batch=costs, **BATCHES)

    for seen in run.observations:
        if seen.latency.rows > 0:
            assert seen.latency.p10_s >= 0.01 * 0.998
            assert seen.latency.mean_s <= 0.05 + 1.5 * step_s


def test_a_host_is_kept_until_the_batch_that_runs_on_it_has_ended() -> None:
    application = one_operator(grouping=Grouping.SHUFFLE, service_time_s=0.1)
    costs = replace(PLAIN, trigger_s=30.0)
    backend = world(application, steady(10, seconds=90), hosts=2, replicas=2, micro_batch=costs, **BATCHES)
    leave = Allocation(("host-0",), {"work": OperatorAllocation(("host-0",))})
    run = observe(backend, every_s=5.0, script={35.0: leave})  # within the batch from 30.0 s to 45.2 s

    assert "host-1" not in run.at(40).observed.hosts
    assert "host-1" in run.at(40).hosts
    assert run.at(40).hosts["host-1"].busy_share > 0
    assert "host-1" not in run.at(50).hosts


def test_bytes_on_the_network_are_counted() -> None:
    run = simulate(one_operator(row_bytes=1000), steady(20, seconds=300), every_s=100, micro_batch=PLAIN, **BATCHES)

    assert run.last.hosts["host-0"].network_bytes_per_s == pytest.approx(20_000, rel=0.02)
