"""The simulator beside live Spark: what is learnt from batches whose costs are known, and how errors are counted."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from factories import application, operator
from springtide.backends.simulator.settings import SimulatorSettings
from springtide.errors import InvalidValue
from springtide.experiments.fidelity.batches import MeasuredBatch, Part
from springtide.experiments.fidelity.calibration import Calibration, calibrated
from springtide.experiments.fidelity.pairs import PAIRS
from springtide.experiments.fidelity.script import Script
from springtide.experiments.fidelity.validating import HostStarts, judged, learnt_model, simulated
from springtide.model.allocation import HostType, Pool
from springtide.model.application import Edge
from springtide.plan.registry import make_policy
from springtide.simulation import Simulation
from springtide.workload.traces import Trace

FIXED_S, TASK_S, SHARD_S, SERVICE_S, MOVE_S = 0.30, 0.05, 0.02, 0.003, 0.4
SHARDS = 8


def batch(before_s: float, rows: float, replicas: int, *, moved: int = 0, name: str = "sum") -> MeasuredBatch:
    shards = SHARDS // replicas
    run_s = TASK_S + shards * SHARD_S + rows / replicas * SERVICE_S
    parts = tuple(
        Part(host=str(r), shards=shards, rows=rows / replicas, run_s=run_s + moved / replicas * MOVE_S) for r in range(replicas)
    )
    # What is moved is loaded by the tasks, each shard in turn.
    ended_s = before_s + FIXED_S + run_s + moved * MOVE_S
    return MeasuredBatch(
        operator=name, began_s=before_s + 0.1, ended_s=ended_s, rows=rows, emitted=rows / 2, moved_shards=moved, parts=parts
    )


def run(*, moves: bool = True) -> list[MeasuredBatch]:
    found: list[MeasuredBatch] = []
    rows = np.random.default_rng(1).uniform(50, 900, 60)
    for number, count in enumerate(rows):
        replicas = (1, 2, 4)[number // 20]
        moved = SHARDS // 2 if moves and number in (20, 40) else 0
        found.append(batch(found[-1].ended_s if found else 0.0, float(count), replicas, moved=moved))
    return found


def test_costs_that_are_known_are_found() -> None:
    learnt = calibrated({"sum": run()}, [3.0, 5.0])

    assert learnt.service_s["sum"] == pytest.approx(SERVICE_S)
    assert learnt.shard_s == pytest.approx(SHARD_S)
    assert learnt.task_s == pytest.approx(TASK_S)
    assert learnt.fixed_s == pytest.approx(FIXED_S)
    assert learnt.move_s == pytest.approx(MOVE_S)
    assert learnt.selectivity["sum"] == pytest.approx(0.5)
    assert learnt.host_start_s == pytest.approx(4.0)
    assert learnt.batches == 57


def test_a_few_tasks_that_were_held_up_sway_nothing() -> None:
    batches = run()
    for at in (25, 45, 50):
        late = replace(batches[at], parts=tuple(replace(part, run_s=part.run_s + 5.0) for part in batches[at].parts))
        batches[at] = late

    learnt = calibrated({"sum": batches}, [])

    assert learnt.service_s["sum"] == pytest.approx(SERVICE_S, rel=0.05)
    assert learnt.task_s + SHARDS * learnt.shard_s == pytest.approx(TASK_S + SHARDS * SHARD_S, rel=0.1)


def test_batches_of_one_size_are_refused() -> None:
    same = [batch(10.0 * number, 1200.0, (1, 2)[number // 10]) for number in range(20)]
    with pytest.raises(InvalidValue, match="'sum' are about as large: let its load vary"):
        calibrated({"sum": same}, [])


def test_cold_batches_and_pauses_tell_nothing() -> None:
    slow = [replace(one, parts=(Part(host="0", shards=8, rows=1.0, run_s=60.0),)) for one in run(moves=False)[:3]]
    rested = [replace(one, began_s=one.began_s + 100, ended_s=one.ended_s + 100) for one in run(moves=False)[30:]]

    learnt = calibrated({"sum": [*slow, *run(moves=False)[3:30], *rested]}, [])

    assert learnt.fixed_s == pytest.approx(FIXED_S)
    assert learnt.task_s == pytest.approx(TASK_S)
    assert learnt.move_s == 0.0
    assert learnt.host_start_s == 0.0


def test_too_little_to_learn_from_is_refused() -> None:
    with pytest.raises(InvalidValue, match="'sum' has run too few batches"):
        calibrated({"sum": run()[:5]}, [])


def learnt(**fields: object) -> Calibration:
    costs = {
        "fixed_s": FIXED_S, "task_s": TASK_S, "shard_s": SHARD_S, "service_s": {"sum": SERVICE_S}, "selectivity": {"sum": 0.5},
        "move_s": 0.0, "host_start_s": 4.04, "batches": 50,
    }  # fmt: skip
    return Calibration(**{**costs, **fields})  # type: ignore[arg-type]


def test_the_simulator_takes_as_long_as_was_learnt() -> None:
    """Batches one after the other, at 40 rows/s on one replica: a batch lasts as long as its rows took to come."""
    model = application(operator("sum", shards=SHARDS))
    trace = Trace(name="even", step_s=2.0, counts=np.full(60, 80.0))
    pair = replace(PAIRS[0], policy="static")

    summary, points = simulated(model, learnt(), trace, pair, make_policy("static", {}))

    busy_s = FIXED_S + TASK_S + SHARDS * SHARD_S
    period_s = busy_s / (1 - 40 * SERVICE_S)
    assert summary.latency.p50_s == pytest.approx(1.5 * period_s, rel=0.15)
    assert judged(pair, learnt(), (summary, points), (summary, points)).errors.replicas == 0.0


def test_service_times_and_selectivities_are_the_measured_ones() -> None:
    model = application(operator("sum"), operator("top"), edges=(Edge(upstream="sum", downstream="top"),))
    told = learnt(service_s={"sum": 0.1, "top": 0.2}, selectivity={"sum": 0.25, "top": 0.0})

    found = learnt_model(model, told)

    assert [o.service_time_s for o in found.operators] == [0.1, 0.2]
    assert found.inputs("top")[0].selectivity == 0.25
    assert found.inputs("sum")[0].selectivity == 1.0


def test_a_script_goes_through_its_hosts() -> None:
    model = application(operator("sum", shards=SHARDS))
    trace = Trace(name="even", step_s=2.0, counts=np.full(30, 80.0))

    _, points = simulated(model, learnt(host_start_s=0.0), trace, PAIRS[0], Script(hosts=(1, 3, 2), hold_s=20.0))

    assert [points[number].hosts for number in (5, 15, 25)] == [1, 3, 2]
    assert [points[number].replicas for number in (5, 15, 25)] == [1, 3, 2]


def test_errors_are_shares_of_the_live_figure() -> None:
    model = application(operator("sum", shards=SHARDS))
    trace = Trace(name="even", step_s=2.0, counts=np.full(30, 80.0))
    one = simulated(model, learnt(), trace, PAIRS[0], Script(hosts=(2,), hold_s=20.0))
    other = simulated(model, learnt(), trace, PAIRS[0], Script(hosts=(4,), hold_s=20.0))

    verdict = judged(PAIRS[0], learnt(), one, other)

    assert verdict.errors.replicas == pytest.approx(abs(other[0].mean_replicas - one[0].mean_replicas) / one[0].mean_replicas)
    assert not verdict.within_bars
    assert math.isfinite(verdict.errors.backlog)


def test_a_hosts_start_is_counted_from_the_wish_for_it() -> None:
    model = application(operator("sum", shards=SHARDS))
    trace = Trace(name="even", step_s=2.0, counts=np.full(30, 80.0))
    starts = HostStarts()
    Simulation(
        trace=trace,
        application=model,
        pool=Pool(host=HostType(cores=1, start_s=5.0)),
        settings=SimulatorSettings(interval_s=2.0, step_s=1.0, initial_hosts=1),
        policy=Script(hosts=(1, 3), hold_s=20.0),
        policy_name="script",
    ).run([starts])

    assert starts.taken_s == pytest.approx([5.0, 5.0], abs=1.0)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_every_pair_can_be_made(pair) -> None:  # type: ignore[no-untyped-def]
    for calibrating in (True, False):
        assert pair.shipped(calibrating=calibrating).name == pair.application
    make_policy(pair.policy, dict(pair.parameters))
