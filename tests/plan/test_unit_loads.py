"""From a view to what units and hosts carry, at the places that are asked about."""

import pytest
from observations import INTERVAL_S, placed_on, replicas, shards, view

from factories import application, operator
from springtide.model.application import Application, Grouping
from springtide.model.protocols import View
from springtide.plan.loads import bins, empty_bin, expected_utilisation, host_loads, unit_hosts, unit_loads, units_on

APP = application(
    operator("parse", grouping=Grouping.SHUFFLE, row_bytes=100, memory_bytes=1000),
    operator("count", shards=4, state_bytes_per_shard=50, memory_bytes=400),
    operator("one", shards=4, max_replicas=1),
)
PLACED = placed_on(parse=(0, 1), count=shards(0, 0, 1, 1), one=shards(1, 1, 1, 1))
LOADS = {"parse": [0.5, 0.3], "count": [0.1, 0.2, 0.3, 0.4], "one": 0.8}


@pytest.fixture
def seen() -> View:
    return view(APP, PLACED, LOADS)


def cores(seen: View, application: Application, name: str) -> list[float]:
    return pytest.approx(unit_loads(seen, name, seen.requested.operators[name]).cpu_cores.tolist())


def test_units_are_shards_or_replicas(seen: View) -> None:
    assert cores(seen, APP, "parse") == [0.5, 0.3]
    assert cores(seen, APP, "count") == [0.1, 0.2, 0.3, 0.4]


def test_an_operator_of_one_replica_is_one_unit_with_all_its_shards(seen: View) -> None:
    assert cores(seen, APP, "one") == [0.8]
    assert unit_hosts(APP.operator("one"), PLACED.operators["one"]) == ("host-1",)


def test_memory_is_state_and_a_share_of_the_operators_own(seen: View) -> None:
    assert unit_loads(seen, "parse", PLACED.operators["parse"]).memory_bytes.tolist() == [500, 500]
    assert unit_loads(seen, "count", PLACED.operators["count"]).memory_bytes.tolist() == [150, 150, 150, 150]


def test_network_is_what_the_rows_weigh(seen: View) -> None:
    per_replica = 500 * 100 / INTERVAL_S
    assert unit_loads(seen, "parse", PLACED.operators["parse"]).network_bytes_per_s.tolist() == [per_replica] * 2


def test_replicas_that_are_only_requested_share_the_load_evenly(seen: View) -> None:
    assert unit_loads(seen, "parse", replicas(0, 0, 1, 1)).cpu_cores.tolist() == pytest.approx([0.2] * 4)


def test_units_on_a_host_come_in_order(seen: View) -> None:
    found = units_on(seen, PLACED, "host-1")
    assert [(u.operator, u.index) for u in found] == [("parse", 1), ("count", 2), ("count", 3), ("one", 0)]
    assert [u.cpu_cores for u in found] == pytest.approx([0.3, 0.3, 0.4, 0.8])


def test_a_host_carries_what_is_on_it_where_it_is_asked_about(seen: View) -> None:
    now = host_loads(seen, PLACED)
    assert {h: load.cpu_cores for h, load in now.items()} == pytest.approx({"host-0": 0.8, "host-1": 1.8})
    assert now["host-1"].units == {"parse": 1, "count": 2, "one": 1}
    after = host_loads(seen, PLACED.with_operator("count", shards(0, 0, 0, 1)))
    assert {h: load.cpu_cores for h, load in after.items()} == pytest.approx({"host-0": 1.1, "host-1": 1.5})


def test_free_is_what_the_limit_leaves(seen: View) -> None:
    first, second = bins(seen, PLACED, 0.6)
    assert (first.cpu_cores, second.cpu_cores) == pytest.approx((4 * 0.6 - 0.8, 4 * 0.6 - 1.8))
    assert first.memory_bytes == seen.pool.host.memory_bytes - 500 - 2 * 150
    assert empty_bin(seen, "new", 0.6).cpu_cores == pytest.approx(2.4)


def test_an_operator_of_which_nothing_was_measured_has_no_load(seen: View) -> None:
    wider = application(*APP.operators, operator("new", shards=2))
    placed = placed_on(**PLACED.operators, new=shards(0, 1))
    blind = View(application=wider, pool=seen.pool, observation=seen.observation, demand_rows_per_s={})
    assert host_loads(blind, placed)["host-0"].cpu_cores == pytest.approx(0.8)


def test_what_is_expected_is_measured_while_nothing_changes_and_added_up_otherwise(seen: View) -> None:
    assert expected_utilisation(seen, seen.requested) == pytest.approx(1.8 / 4)
    relieved = PLACED.with_operator("one", shards(0, 0, 0, 0))
    assert expected_utilisation(seen, relieved) == pytest.approx(1.6 / 4)
