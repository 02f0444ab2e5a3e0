"""What micro-batches cost on Spark, taken from journals of live runs."""

from __future__ import annotations

import math
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from springtide.backends.simulator.calibration import combine_costs, settings_for, spark_costs
from springtide.backends.simulator.settings import MicroBatch, ServiceModel, SimulatorSettings
from springtide.cli.calibrating import calibrate
from springtide.config import build
from springtide.errors import SpringtideError
from springtide.journal.writing import JournalWriter
from springtide.model.allocation import HostType, Pool
from springtide.model.application import SLO, Application, Operator
from springtide.model.batch import BatchCosts, Estimate
from springtide.plan.registry import make_policy
from springtide.simulation import Simulation
from springtide.workload.generators import day_cycle


def costs(task_s: float, error: float, batches: float = 100.0) -> BatchCosts:
    sure = {name: Estimate(value=0.1, error=0.01) for name in ("driver_s", "batch_s", "shard_s", "row_s", "skew")}
    return BatchCosts(task_s=Estimate(value=task_s, error=error), batches=batches, **sure)


def test_what_is_known_better_counts_more() -> None:
    assert combine_costs([costs(0.1, 0.01), costs(0.3, 0.1)]).task_overhead_s == pytest.approx(0.102, abs=0.001)
    assert combine_costs([costs(0.1, 0.05), costs(0.3, 0.05)]).task_overhead_s == pytest.approx(0.2)


def test_what_is_not_known_at_all_counts_only_where_nothing_else_is() -> None:
    assert combine_costs([costs(0.1, 0.01), costs(0.3, math.inf)]).task_overhead_s == pytest.approx(0.1)
    assert combine_costs([costs(0.1, math.inf), costs(0.3, math.inf)]).task_overhead_s == pytest.approx(0.2)


def test_an_operator_with_few_batches_does_not_count() -> None:
    assert combine_costs([costs(0.1, 0.01), costs(9.0, 0.01, batches=3.0)]).task_overhead_s == pytest.approx(0.1)
    with pytest.raises(SpringtideError, match="longer live run"):
        combine_costs([costs(0.1, 0.01, batches=3.0)])


def test_the_costs_that_come_with_springtide_name_their_origin() -> None:
    measured = spark_costs()
    assert {"spark", "machine", "measured", "runs", "command"} <= measured.origin.keys()
    assert measured.micro_batch.fixed_s > 0
    assert settings_for(ServiceModel.MICRO_BATCH).micro_batch == measured.micro_batch
    assert settings_for(ServiceModel.TUPLE) == SimulatorSettings()


def test_a_simulation_is_calibrated_to_its_own_costs(tmp_path: Path) -> None:
    """Of one operator: what tasks of several wait for each other cannot be told from the driver's time."""
    real = MicroBatch(overhead_s=0.3, stage_overhead_s=0.0, stages=1, task_overhead_s=0.1, shard_overhead_s=0.02)
    trace = day_cycle(0).cut(0.0, 7200.0)
    run = Simulation(
        trace=trace,
        application=Application(
            name="count",
            operators=(Operator(name="count", service_time_s=6.0 / trace.peak_rate_per_s, shards=32),),
            edges=(),
            slo=SLO(latency_s=10.0),
        ),
        pool=Pool(host=HostType(cores=2, start_s=30.0), max_hosts=8),
        settings=SimulatorSettings(service=ServiceModel.MICRO_BATCH, micro_batch=real, interval_s=10.0, initial_hosts=4),
        policy=make_policy("hpa", {}),
        policy_name="hpa",
    )
    path = tmp_path / "run.jsonl"
    with JournalWriter(path, run.record(datetime(2026, 1, 1, tzinfo=UTC))) as writer:
        run.run([writer])
    table = tomllib.loads(calibrate([path]))["simulator"]
    found = build(SimulatorSettings, table, "calibrated").micro_batch
    assert found.fixed_s == pytest.approx(0.33, rel=0.1)  # what is fixed on executors is not told apart from the driver's
    assert found.task_overhead_s == pytest.approx(0.1, rel=0.2)
    assert found.shard_overhead_s == pytest.approx(0.02, rel=0.2)


def created():

    return datetime(2026, 1, 1, tzinfo=UTC)
