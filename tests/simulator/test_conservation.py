"""Whatever is done to an application, no row is lost, made up or counted twice."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st
from random_worlds import MAX_HOSTS, STEPS, PlanChange, applications, loads, plan_changes, settings

from springtide.analyze.demand import propagate
from springtide.backends.simulator.backend import SimulatorBackend
from springtide.backends.simulator.settings import ServiceModel, ServiceTimes, SimulatorSettings
from springtide.execute.diff import actions
from springtide.model.allocation import HostType, Pool
from springtide.model.application import Application
from springtide.model.observation import Observation

POOL = Pool(host=HostType(cores=2, start_s=4.0, release_s=3.0, bandwidth_bytes_per_s=3e6), max_hosts=MAX_HOSTS)


@pytest.mark.parametrize("service", list(ServiceModel))
@budget(max_examples=75, deadline=None, derandomize=True)
@given(data=st.data(), changes=st.lists(plan_changes, max_size=12), seed=st.integers(0, 3))
def test_every_row_offered_is_processed_dropped_or_waiting(
    service: ServiceModel, data: st.DataObject, changes: list[PlanChange], seed: int
) -> None:
    application = data.draw(applications())
    world = data.draw(settings(service=service))
    rows = data.draw(loads(len(application.sources)))
    seen = _run(SimulatorBackend(application, POOL, world, rows, seed=seed), application, world, changes)

    _check_rows_of_operators(application, seen)
    _check_rows_on_edges(application, seen)
    _check_rows_at_sinks(application, seen)
    for observation in seen:
        _check_signs(observation)
        _check_parts_add_up(observation, application)
        if service is ServiceModel.MICRO_BATCH or world.service_times is ServiceTimes.CONSTANT:
            _check_capacity(observation)


@pytest.mark.parametrize("service", list(ServiceModel))
@budget(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data(), changes=st.lists(plan_changes, max_size=8))
def test_every_row_comes_out_in_the_end_where_nothing_is_dropped(
    service: ServiceModel, data: st.DataObject, changes: list[PlanChange]
) -> None:
    application = data.draw(applications(lossless=True))
    world = data.draw(settings(lossless=True, service=service))
    came = 0.05 * data.draw(loads(len(application.sources)))[:, : STEPS // 2]
    silence = np.zeros((len(came), 5000))
    backend = SimulatorBackend(application, POOL, world, np.concatenate([came, silence], axis=1))
    seen = _run(backend, application, world, changes, until_s=STEPS / 2 * world.step_s)
    backend.clock.advance_to(backend.duration_s)
    seen.append(backend.observe())

    rows = {s.name: sum(o.source_rows[s.name] for o in seen) for s in application.sources}
    demand = propagate(application, rows)
    for name, wanted in demand.items():
        assert sum(o.operators[name].processed_rows for o in seen) == pytest.approx(wanted, rel=1e-9, abs=1e-6)
        assert seen[-1].operators[name].backlog_rows == pytest.approx(0, abs=1e-6)
    leaving = sum(demand[o.name] for o in application.operators if not application.outputs(o.name))
    assert backend.latency_of_run().rows == pytest.approx(leaving, rel=1e-9, abs=1e-6)


def _run(
    backend: SimulatorBackend,
    application: Application,
    world: SimulatorSettings,
    changes: Sequence[PlanChange],
    until_s: float = math.inf,
) -> list[Observation]:
    """Change the plan at the end of each interval, as a policy would: from what has been asked for so far."""
    seen: list[Observation] = []
    waiting = list(changes)
    until_s = min(until_s, backend.duration_s)
    while backend.clock.now_s() < until_s:
        backend.clock.advance_to(min(backend.clock.now_s() + world.interval_s, until_s))
        seen.append(backend.observe())
        if waiting:
            planned = waiting.pop(0).of(seen[-1].requested, application, list(seen[-1].hosts))
            backend.apply(actions(seen[-1].requested, planned))
    return seen


def _check_rows_of_operators(application: Application, seen: list[Observation]) -> None:
    offered, gone = Counter[str](), Counter[str]()
    for observation in seen:
        for name, of in observation.operators.items():
            offered[name] += of.offered_rows
            gone[name] += of.processed_rows + of.dropped_rows
            assert gone[name] + of.backlog_rows == pytest.approx(offered[name], rel=1e-9, abs=1e-6)


def _check_rows_on_edges(application: Application, seen: list[Observation]) -> None:
    for observation in seen:
        sent = {name: of.processed_rows for name, of in observation.operators.items()} | dict(observation.source_rows)
        for name, of in observation.operators.items():
            wanted = sum(sent[e.upstream] * e.selectivity for e in application.inputs(name))
            assert of.offered_rows == pytest.approx(wanted, rel=1e-9, abs=1e-6)
            assert of.emitted_rows == pytest.approx(
                of.processed_rows * sum(e.selectivity for e in application.outputs(name)), rel=1e-9
            )


def _check_rows_at_sinks(application: Application, seen: list[Observation]) -> None:
    sinks = [o.name for o in application.operators if not application.outputs(o.name)]
    for observation in seen:
        left = sum(observation.operators[name].processed_rows for name in sinks)
        assert observation.latency.rows == pytest.approx(left, rel=1e-9, abs=1e-6)


def _check_signs(observation: Observation) -> None:
    latency = observation.latency
    assert 0 <= latency.p10_s <= latency.p50_s <= latency.p90_s <= latency.p99_s <= latency.max_s
    assert latency.mean_s >= 0
    assert 0 <= latency.violation_share <= 1
    assert observation.core_s >= 0
    assert 0 <= observation.downtime_s <= observation.interval_s + 1e-9
    for of in observation.operators.values():
        assert of.latency_s >= 0
        assert of.backlog_s >= 0
        for array in (of.shards.rows, of.shards.busy_s, of.shards.backlog_rows, of.replica_utilisation):
            assert (array >= -1e-9).all()
    for host in observation.hosts.values():
        assert host.utilisation >= 0
        assert host.network_bytes_per_s >= 0
        assert host.memory_bytes >= 0


def _check_parts_add_up(observation: Observation, application: Application) -> None:
    for name, of in observation.operators.items():
        placed = observation.observed.operators[name]
        assert len(of.replica_utilisation) == placed.replicas
        assert len(of.shards.rows) == (len(placed.shard_replicas) or placed.replicas)
        assert of.shards.backlog_rows.sum() == pytest.approx(of.backlog_rows, rel=1e-9, abs=1e-6)
        assert of.shards.rows.sum() <= of.offered_rows * (1 + 1e-9) + 1e-6
        assert of.backlog_rows <= application.operator(name).queue_rows * (1 + 1e-9)


def _check_capacity(observation: Observation) -> None:
    for host in observation.hosts.values():
        assert host.utilisation <= 1 + 1e-6
    for of in observation.operators.values():
        assert (of.replica_utilisation <= 1 + 1e-6).all()
