"""Chance is an input: the same seed gives the same run to the last bit, another seed another one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
from worlds import Run, chain, observe, operator, phases, simulate, steady
from worlds import backend as world

from springtide.backends.simulator.settings import Arrivals, Failure, ServiceModel, ServiceTimes
from springtide.model.action import AddHosts, MoveShards, SetReplicas
from springtide.model.application import Grouping, KeyDistribution

SKEWED = KeyDistribution(keys=500, zipf=0.9, shuffles_per_minute=4.0)


def eventful(seed: int, service: ServiceModel = ServiceModel.TUPLE, *, every_s: float = 10.0) -> Run:
    """Two minutes in which everything happens: bursts, chance, skew, shuffles, moves, a new host and a lost one."""
    application = chain(
        operator("parse", grouping=Grouping.SHUFFLE),
        operator("count", grouping=Grouping.KEY, shards=8, keys=SKEWED, state_bytes_per_shard=10**8),
        operator("store", grouping=Grouping.SHARED, service_time_s=0.004),
    )
    rows = phases((80, 20), (300, 40), (0, 10), (150, 50))
    changes = {
        30.0: [AddHosts(("host-2",)), SetReplicas("count", ("host-0", "host-1", "host-2"), before=2)],
        50.0: [MoveShards("count", {0: 2, 3: 2})],
    }
    return simulate(
        application,
        rows,
        every_s=every_s,
        script=changes,
        hosts=2,
        replicas=2,
        cores=2,
        host={"start_s": 7.0},
        seed=seed,
        service=service,
        arrivals=Arrivals.POISSON,
        service_times=ServiceTimes.EXPONENTIAL,
        network_delay_s=0.1,
        network_delay_spread=0.5,
        failures=(Failure(at_s=71.0, host="host-1"),),
    )


@pytest.mark.parametrize("service", list(ServiceModel))
def test_the_same_seed_gives_the_same_run_to_the_last_bit(service: ServiceModel) -> None:
    one, other = eventful(7, service), eventful(7, service)

    assert [list(values(o)) for o in one.observations] == [list(values(o)) for o in other.observations]
    assert one.latency == other.latency


@pytest.mark.parametrize("service", list(ServiceModel))
def test_another_seed_gives_another_run(service: ServiceModel) -> None:
    one, other = eventful(7, service), eventful(8, service)

    assert one.latency != other.latency
    assert one.last.source_rows != other.last.source_rows
    assert one.at(20).operators["count"].shards.rows.tolist() != other.at(20).operators["count"].shards.rows.tolist()


def test_without_chance_the_seed_is_of_no_account() -> None:
    runs = [simulate(chain(operator("a"), operator("b")), steady(130, seconds=40), seed=seed) for seed in (1, 2)]

    assert list(values(runs[0].last)) == list(values(runs[1].last))


@pytest.mark.parametrize(
    ("chance", "settings"),
    [
        ("arrivals", {"arrivals": Arrivals.POISSON}),
        ("service times", {"service_times": ServiceTimes.EXPONENTIAL}),
        ("delays", {"network_delay_s": 0.5, "network_delay_spread": 0.9}),
    ],
)
def test_each_kind_of_chance_comes_from_the_seed(chance: str, settings: dict[str, Any]) -> None:
    application = chain(operator("a"), operator("b"))
    means = [simulate(application, steady(90, seconds=40), hosts=2, seed=seed, **settings).latency.mean_s for seed in (1, 2, 1)]

    assert means[0] == means[2], chance
    assert means[0] != means[1], chance


def test_how_often_one_looks_does_not_change_what_happens() -> None:
    often, seldom = eventful(3, every_s=2.0), eventful(3, every_s=30.0)

    for name in ("parse", "count", "store"):
        assert often.processed(name) == pytest.approx(seldom.processed(name), rel=1e-12)
        assert often.backlog(name) == pytest.approx(seldom.backlog(name), rel=1e-12)
    assert often.latency.p99_s == seldom.latency.p99_s
    assert often.latency.mean_s == pytest.approx(seldom.latency.mean_s, rel=1e-12)


def test_time_passes_only_when_somebody_waits_for_it() -> None:
    backend = world(chain(operator("a")), steady(10, seconds=60))

    assert backend.clock.now_s() == 0
    observe(backend, until_s=42.0)
    assert backend.clock.now_s() == 42.0
    backend.clock.advance_to(10.0)
    assert backend.clock.now_s() == 42.0


def values(thing: Any) -> Iterator[Any]:
    """Every number in an observation, arrays as their bytes."""
    if is_dataclass(thing):
        for field in fields(thing):
            yield from values(getattr(thing, field.name))
    elif isinstance(thing, Mapping):
        for key, value in thing.items():
            yield key
            yield from values(value)
    elif isinstance(thing, np.ndarray):
        yield thing.tobytes()
    elif isinstance(thing, tuple):
        for value in thing:
            yield from values(value)
    else:
        yield thing
