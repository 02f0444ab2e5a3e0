"""One contract for every backend: the loop cannot tell the simulator from Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyspark.sql.functions as F
import pytest

from springtide.backends.simulator.backend import SimulatorBackend
from springtide.backends.simulator.settings import SimulatorSettings
from springtide.errors import InvalidValue
from springtide.execute.diff import actions
from springtide.loop import ControlLoop
from springtide.model.action import AddHosts, MoveShards, SetReplicas
from springtide.model.allocation import Allocation, HostType, OperatorAllocation, Pool
from springtide.model.application import Application, Operator
from springtide.model.observation import Observation
from springtide.plan.registry import make_policy

POOL = Pool(host=HostType(cores=1, start_s=2.0, release_s=1.0), min_hosts=1, max_hosts=3)


@contextmanager
def simulated(_: Any, __: Path) -> Iterator[Any]:
    application = Application(name="sums", operators=(Operator(name="sum", service_time_s=0.001, shards=4),))
    settings = SimulatorSettings(step_s=0.5, interval_s=1.0, initial_hosts=2, initial_replicas=1)
    backend = SimulatorBackend(application, POOL, settings, np.full((1, 2000), 50.0))
    backend.application = application  # type: ignore[attr-defined]
    yield backend


@contextmanager
def live(request: Any, folder: Path) -> Iterator[Any]:
    from springtide.backends.spark.application import Application as Live  # noqa: PLC0415
    from springtide.backends.spark.backend import backend_for  # noqa: PLC0415
    from springtide.workload.replay import replay  # noqa: PLC0415

    spark = request.getfixturevalue("spark")
    app = Live("sums")
    source = app.source("events", lambda s: replay(s, "generator:steps:levels=100,hold_s=600"), ingest_time="offered_at")
    counted = app.operator(
        "sum", lambda df: df.groupBy("key").agg(F.count("*").alias("rows")), source, shards=4, output_mode="update"
    )
    app.sink(counted, lambda df, _: df.write.format("noop").mode("overwrite").save())
    backend = backend_for(spark, app, POOL, str(folder / "app"), hosts=2)
    backend.start()
    try:
        yield backend
    finally:
        backend.stop()


@pytest.fixture(params=[simulated, pytest.param(live, marks=pytest.mark.spark)], ids=["simulator", "spark"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with request.param(request, tmp_path) as found:
        yield found


def observed(backend: Any, happened: Callable[[Observation], bool], most: int = 120) -> Observation:
    for _ in range(most):
        backend.clock.advance_to(backend.clock.now_s() + 1.0)
        observation = backend.observe()
        if happened(observation):
            return observation
    raise AssertionError("it did not happen")


class Written:
    def __init__(self) -> None:
        self.observations: list[Observation] = []
        self.decisions = 0

    def observation(self, observation: Observation) -> None:
        self.observations.append(observation)

    def decision(self, *_: object) -> None:
        self.decisions += 1

    def outcome(self, *_: object) -> None: ...


def test_a_backend_keeps_the_contract(backend: Any) -> None:
    first = observed(backend, lambda o: o.operators["sum"].processed_rows > 0)
    check_observation(first)
    second = observed(backend, lambda _: True)
    assert (second.index, second.start_s) == (first.index + 1, first.end_s), "intervals follow one another"

    for wrong in (
        [MoveShards("sum", {9: 0})],
        [SetReplicas("none", first.requested.hosts, before=1)],
        [AddHosts(("a", "b", "c"))],
    ):
        with pytest.raises(InvalidValue):
            backend.apply(wrong)
    backend.apply([])

    one, two = first.requested.hosts
    planned = Allocation((one, two), {"sum": OperatorAllocation((one, two), (0, 1, 1, 1))})
    backend.apply(actions(second.requested, planned))
    seen = observed(backend, lambda o: o.observed.operators["sum"] == planned.operators["sum"])
    assert seen.requested.operators == planned.operators
    check_observation(seen)

    alone = Allocation((two,), {"sum": OperatorAllocation((two,), (0, 0, 0, 0))})
    backend.apply(actions(seen.requested, alone))
    seen = observed(backend, lambda o: one not in o.hosts)
    assert seen.requested.hosts == (two,)

    written = Written()
    loop = ControlLoop(application=backend.application, pool=POOL, policy=make_policy("local-thresholds", {}), interval_s=1.0)
    loop.run(backend, written, backend.clock.now_s() + 3.0)
    assert written.decisions == len(written.observations) == 3
    assert sum(seen.offered_rows for seen in written.observations) > 0


def check_observation(observation: Observation) -> None:
    measured = observation.operators["sum"]
    assert observation.interval_s > 0
    assert measured.processed_rows > 0
    assert measured.service_time_s > 0
    assert len(measured.replica_utilisation) == observation.observed.operators["sum"].replicas
    assert measured.shards.rows.shape == (4,)
    assert measured.shards.rows.sum() == pytest.approx(measured.processed_rows, rel=0.2)
    assert set(observation.requested.hosts) <= set(observation.hosts)
    assert observation.core_s > 0
    assert min(observation.source_rows.values()) >= 0
