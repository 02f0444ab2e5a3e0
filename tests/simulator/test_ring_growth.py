"""The simulator's rings grow while it runs: nobody can tell from what is observed how large they were at first.

The kernel stops in the middle of a step when a ring is full, and goes on with a larger one. If anything were lost,
counted twice or done in another order on the way, the figures would differ from those of rings that never had to grow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from worlds import Run, backend, observe, operator

from springtide.backends.simulator import engine, topology
from springtide.backends.simulator.arrays import Simulation
from springtide.backends.simulator.settings import Arrivals, ServiceModel, ServiceTimes, SimulatorSettings
from springtide.model.action import MoveShards, SetReplicas
from springtide.model.application import Application, Edge, Grouping, KeyDistribution
from springtide.model.observation import Observation

SECONDS = 240
ROOMY = 4096
HOSTS = ("host-0", "host-1", "host-2")


def diamond(**fields: Any) -> Application:
    """Keyed operators whose keys are shuffled every ten seconds, a load-balanced one, and a join of paths of two lengths."""
    keys = KeyDistribution(keys=50, zipf=1.1, shuffles_per_minute=6.0)
    return Application(
        name="diamond",
        operators=(
            operator("read", grouping=Grouping.SHUFFLE, service_time_s=0.011, max_replicas=3),
            operator("count", grouping=Grouping.KEY, service_time_s=0.03, shards=5, keys=keys),
            operator("rank", grouping=Grouping.LOAD_BALANCED, service_time_s=0.025, max_replicas=4),
            operator("join", grouping=Grouping.KEY, service_time_s=0.017, shards=7, keys=keys),
            operator("write", grouping=Grouping.SHARED, service_time_s=0.013, max_replicas=3),
        ),
        edges=(
            Edge(upstream="read", downstream="count", selectivity=0.5),
            Edge(upstream="read", downstream="rank", selectivity=0.8),
            Edge(upstream="count", downstream="join"),
            Edge(upstream="rank", downstream="join"),
            Edge(upstream="join", downstream="write", selectivity=0.9),
        ),
        **fields,
    )


def flood() -> NDArray[np.float64]:
    """A minute of far too much, then enough silence for most of it to be worked off."""
    rows = np.full((1, SECONDS), 8.0)
    rows[0, 5:70] = 140.0
    rows[0, 150:160] = 90.0
    return rows


def run(app: Application, **settings: Any) -> Run:
    """The flood, with scale-outs, a scale-in and moves of shards while rows wait everywhere."""
    script = {
        40.0: [SetReplicas("rank", HOSTS, before=1), SetReplicas("count", HOSTS[:2], before=1)],
        50.0: [MoveShards("count", {1: 1, 3: 1}), SetReplicas("read", HOSTS[:2], before=1)],
        90.0: [SetReplicas("join", HOSTS, before=1), MoveShards("join", {0: 1, 4: 2, 5: 2})],
        120.0: [SetReplicas("rank", HOSTS[:1], before=3)],
    }
    world = backend(app, flood(), hosts=3, cores=2, interval_s=10.0, seed=4, **settings)
    return observe(world, every_s=10.0, script=script)


def start_with(monkeypatch: pytest.MonkeyPatch, *, records: int, entries: int, emitted: int, epochs: int) -> None:
    monkeypatch.setattr(topology, "FIRST_RECORDS", records)
    monkeypatch.setattr(topology, "FIRST_ENTRIES", entries)
    monkeypatch.setattr(topology, "FIRST_EMITTED", emitted)

    def with_epochs(app: Application, settings: SimulatorSettings, steps: int, host_slots: int) -> Simulation:
        state = topology.new_simulation(app, settings, steps, host_slots)
        return state._replace(share=np.zeros((len(state.lanes), epochs)))

    monkeypatch.setattr(engine, "new_simulation", with_epochs)


def rings(of: Run) -> dict[str, int]:
    state = of.backend._engine.state
    lengths = {"records": state.records.shape[1], "entries": state.entries.shape[1]}
    return lengths | {"emitted": len(state.emitted), "epochs": state.share.shape[1]}


WORLDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "rows one by one": ({}, {}),
    "rows by chance": ({}, {"arrivals": Arrivals.POISSON, "service_times": ServiceTimes.EXPONENTIAL}),
    "rows that time out": ({"timeout_s": 45.0}, {}),
    "micro-batches": ({}, {"service": ServiceModel.MICRO_BATCH}),
}


@pytest.mark.parametrize("world", list(WORLDS))
@pytest.mark.parametrize("first", [1, 2, 16])
def test_rings_that_grow_show_what_large_ones_show(monkeypatch: pytest.MonkeyPatch, world: str, first: int) -> None:
    of_application, settings = WORLDS[world]
    start_with(monkeypatch, records=first, entries=first, emitted=first, epochs=1)
    grown = run(diamond(**of_application), **settings)
    start_with(monkeypatch, records=ROOMY, entries=ROOMY, emitted=ROOMY, epochs=64)
    roomy = run(diamond(**of_application), **settings)

    assert rings(roomy) == {"records": ROOMY, "entries": ROOMY, "emitted": ROOMY, "epochs": 64}  # it never had to grow
    at_first = {"records": first, "entries": first, "emitted": first, "epochs": 1}
    assert all(4 * length <= rings(grown)[ring] for ring, length in at_first.items())  # the others did, more than once
    assert max(o.backlog_rows for o in roomy.observations) > 1000
    for one, other in zip(grown.observations, roomy.observations, strict=True):
        assert _differing(_figures(one), _figures(other)) == []
    assert grown.latency == roomy.latency


@pytest.mark.parametrize("ring", ["records", "entries", "emitted", "epochs"])
def test_each_ring_grows_on_its_own(monkeypatch: pytest.MonkeyPatch, ring: str) -> None:
    roomy = {"records": ROOMY, "entries": ROOMY, "emitted": ROOMY, "epochs": 64}
    start_with(monkeypatch, **roomy)
    wanted = run(diamond())
    start_with(monkeypatch, **{**roomy, ring: 1})
    found = run(diamond())

    assert {**rings(found), ring: 0} == {**roomy, ring: 0}
    assert rings(found)[ring] >= 8
    for one, other in zip(found.observations, wanted.observations, strict=True):
        assert _differing(_figures(one), _figures(other)) == []


def test_a_ring_that_is_large_enough_does_not_grow() -> None:
    """A world that keeps up needs no room: rows leave in the step they came in."""
    idle = observe(backend(diamond(), np.full((1, 600), 8.0), hosts=3, cores=2, interval_s=10.0), every_s=10.0)

    assert rings(idle) == {
        "records": topology.FIRST_RECORDS,
        "entries": topology.FIRST_ENTRIES,
        "emitted": topology.FIRST_EMITTED,
        "epochs": 1,
    }


def _figures(seen: Observation) -> dict[str, NDArray[np.float64]]:
    """Every number of an observation, by name."""
    found: dict[str, Any] = {
        "sources": list(seen.source_rows.values()),
        "latency": [getattr(seen.latency, name) for name in seen.latency.__slots__],
        "core_s": seen.core_s,
        "downtime_s": seen.downtime_s,
        "reconfigurations": [seen.reconfigurations[name] for name in sorted(seen.reconfigurations)],
    }
    for name, of in seen.operators.items():
        for field in of.__slots__:
            if field == "costs":
                found[f"{name}.costs"] = (
                    [] if of.costs is None else [of.costs.row_s.value, of.costs.driver_s.value, of.costs.batches]
                )
            elif field not in {"name", "shards"}:
                found[f"{name}.{field}"] = getattr(of, field)
        for field in of.shards.__slots__:
            found[f"{name}.shards.{field}"] = getattr(of.shards, field)
    for name, host in seen.hosts.items():
        found[name] = [host.utilisation, host.memory_bytes, host.network_bytes_per_s]
    return {name: np.atleast_1d(np.asarray(value, np.float64)) for name, value in found.items()}


def _differing(one: dict[str, NDArray[np.float64]], other: dict[str, NDArray[np.float64]]) -> list[str]:
    """The figures that are not the same to the last bit."""
    assert one.keys() == other.keys()
    return [name for name in one if not np.array_equal(one[name], other[name])]
