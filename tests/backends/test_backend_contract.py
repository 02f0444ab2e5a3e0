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
from springtide.model.allocation import Allocation, HostType, OperatorAllocation, Pool, new_host_names
from springtide.model.application import Application, Operator
from springtide.model.observation import HostState, Observation
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


@pytest.fixture(scope="module", params=[simulated, pytest.param(live, marks=pytest.mark.spark)], ids=["simulator", "spark"])
def backend(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One application for all promises: each test begins by asking for the hosts it needs."""
    with request.param(request, tmp_path_factory.mktemp("backend")) as found:
        yield found


def observed(backend: Any, happened: Callable[[Observation], bool], most: int = 120) -> Observation:
    for _ in range(most):
        backend.clock.advance_to(backend.clock.now_s() + 1.0)
        observation: Observation = backend.observe()
        if happened(observation):
            return observation
    raise AssertionError("it did not happen")


def anything(_: Observation) -> bool:
    return True


def processing(observation: Observation) -> bool:
    return observation.operators["sum"].processed_rows > 0


def on_two_hosts(backend: Any) -> Observation:
    """An interval in which rows are processed, with one replica on the first of two hosts."""
    now = observed(backend, anything)
    kept = now.requested.hosts[:2]
    hosts = (*kept, *new_host_names(frozenset({*now.hosts, *kept}), 2 - len(kept)))
    planned = Allocation(hosts, {"sum": OperatorAllocation(hosts[:1], (0, 0, 0, 0))})
    backend.apply(actions(now.requested, planned))
    return observed(backend, lambda o: o.observed == planned and set(o.hosts) == set(hosts) and processing(o))


def test_an_interval_follows_the_one_before(backend: Any) -> None:
    first, second, third = (observed(backend, anything) for _ in range(3))
    assert [second.index, third.index] == [first.index + 1, first.index + 2]
    assert [second.start_s, third.start_s] == [first.end_s, second.end_s]
    assert first.interval_s > 0


def test_rows_are_counted_by_operator_and_by_shard(backend: Any) -> None:
    measured = observed(backend, processing).operators["sum"]
    assert measured.service_time_s > 0
    assert measured.shards.rows.shape == (4,)
    assert measured.shards.rows.sum() == pytest.approx(measured.processed_rows, rel=0.2)


def test_every_replica_has_a_utilisation(backend: Any) -> None:
    seen = observed(backend, processing)
    assert len(seen.operators["sum"].replica_utilisation) == seen.observed.operators["sum"].replicas


def test_offered_rows_are_never_negative_and_come_in_the_end(backend: Any) -> None:
    seen = [observed(backend, anything) for _ in range(3)]
    assert min(rows for one in seen for rows in one.source_rows.values()) >= 0
    assert sum(one.offered_rows for one in seen) > 0


def test_hosts_that_were_asked_for_are_shown_and_cost_core_seconds(backend: Any) -> None:
    seen = on_two_hosts(backend)
    assert set(seen.requested.hosts) <= set(seen.hosts)
    assert seen.core_s > 0


@pytest.mark.parametrize("wrong", ["a shard that is not there", "an operator that is not there", "more hosts than allowed"])
def test_what_cannot_be_done_is_refused_and_changes_nothing(backend: Any, wrong: str) -> None:
    before = on_two_hosts(backend).requested
    action = {
        "a shard that is not there": MoveShards("sum", {9: 0}),
        "an operator that is not there": SetReplicas("none", before.hosts, before=1),
        "more hosts than allowed": AddHosts(("a", "b", "c")),
    }[wrong]
    with pytest.raises(InvalidValue):
        backend.apply([action])
    assert observed(backend, anything).requested == before


def test_no_actions_change_nothing(backend: Any) -> None:
    before = on_two_hosts(backend)
    backend.apply([])
    after = observed(backend, processing)
    assert (after.requested, after.observed) == (before.requested, before.observed)


def test_replicas_and_shards_go_where_they_are_sent(backend: Any) -> None:
    requested = on_two_hosts(backend).requested
    spread_out = OperatorAllocation(requested.hosts, (0, 1, 1, 1))
    backend.apply(actions(requested, Allocation(requested.hosts, {"sum": spread_out})))
    seen = observed(backend, lambda o: o.observed.operators["sum"] == spread_out and processing(o))
    assert seen.requested.operators["sum"] == spread_out
    assert len(seen.operators["sum"].replica_utilisation) == 2


def test_a_host_that_is_released_leaves_and_its_shards_stay(backend: Any) -> None:
    requested = on_two_hosts(backend).requested
    one, two = requested.hosts
    backend.apply(actions(requested, Allocation((two,), {"sum": OperatorAllocation((two,), (0, 0, 0, 0))})))
    seen = observed(backend, lambda o: one not in o.hosts and processing(o))
    assert seen.requested.hosts == seen.observed.hosts == (two,)
    assert seen.operators["sum"].shards.rows.sum() > 0


def test_a_host_that_is_added_comes(backend: Any) -> None:
    requested = on_two_hosts(backend).requested
    (new,) = new_host_names(frozenset(requested.hosts), 1)
    backend.apply(actions(requested, Allocation((*requested.hosts, new), requested.operators)))
    seen = observed(backend, lambda o: o.hosts[new].state is HostState.RUNNING)
    assert new in seen.observed.hosts


def test_a_policy_controls_it(backend: Any) -> None:
    on_two_hosts(backend)
    written = Written()
    loop = ControlLoop(application=backend.application, pool=POOL, policy=make_policy("local-thresholds", {}), interval_s=1.0)
    loop.run(backend, written, backend.clock.now_s() + 3.0)
    assert written.decisions == len(written.observations) == 3


class Written:
    """A recorder that counts."""

    def __init__(self) -> None:
        self.observations: list[Observation] = []
        self.decisions = 0

    def observation(self, observation: Observation) -> None:
        self.observations.append(observation)

    def decision(self, *_: object) -> None:
        self.decisions += 1

    def outcome(self, *_: object) -> None: ...
