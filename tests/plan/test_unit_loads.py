"""From a view to what units and hosts carry, at the places that are asked about."""

from dataclasses import replace

import pytest
from observations import placed_on, replicas, shards, view

from factories import application, operator
from springtide.model.application import Grouping
from springtide.model.protocols import View
from springtide.plan.placement.loads import Loads, unit_hosts

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


def cores(seen: View, name: str) -> list[float]:
    return pytest.approx(Loads(seen).of_operator(name, seen.requested.operators[name]).cpu_cores.tolist())


def test_units_are_shards_or_replicas(seen: View) -> None:
    assert cores(seen, "parse") == [0.5, 0.3]
    assert cores(seen, "count") == [0.1, 0.2, 0.3, 0.4]


def test_an_operator_of_one_replica_is_one_unit_with_all_its_shards(seen: View) -> None:
    assert cores(seen, "one") == [0.8]
    assert unit_hosts(APP.operator("one"), PLACED.operators["one"]) == ("host-1",)


def test_memory_is_state_and_a_share_of_the_operators_own(seen: View) -> None:
    assert Loads(seen).of_operator("parse", PLACED.operators["parse"]).memory_bytes.tolist() == [500, 500]
    assert Loads(seen).of_operator("count", PLACED.operators["count"]).memory_bytes.tolist() == [150, 150, 150, 150]


def test_network_is_what_the_rows_weigh(seen: View) -> None:
    rows_per_s = [500.0, 300.0]  # half a core and 0.3 of one, at 1 ms a row
    found = Loads(seen).of_operator("parse", PLACED.operators["parse"]).network_bytes_per_s
    assert found.tolist() == pytest.approx([rows * 100 for rows in rows_per_s])


def test_replicas_that_are_only_requested_share_the_load_evenly(seen: View) -> None:
    assert Loads(seen).of_operator("parse", replicas(0, 0, 1, 1)).cpu_cores.tolist() == pytest.approx([0.2] * 4)


def test_units_on_a_host_come_in_order(seen: View) -> None:
    found = Loads(seen).units_on(PLACED, "host-1")
    assert [(u.operator, u.index) for u in found] == [("parse", 1), ("count", 2), ("count", 3), ("one", 0)]
    assert [u.cpu_cores for u in found] == pytest.approx([0.3, 0.3, 0.4, 0.8])


def test_a_host_carries_what_is_on_it_where_it_is_asked_about(seen: View) -> None:
    now = Loads(seen).by_host(PLACED)
    assert {h: load.cpu_cores for h, load in now.items()} == pytest.approx({"host-0": 0.8, "host-1": 1.8})
    assert now["host-1"].units == {"parse": 1, "count": 2, "one": 1}
    after = Loads(seen).by_host(PLACED.with_operator("count", shards(0, 0, 0, 1)))
    assert {h: load.cpu_cores for h, load in after.items()} == pytest.approx({"host-0": 1.1, "host-1": 1.5})


def test_free_is_what_the_limit_leaves(seen: View) -> None:
    first, second = Loads(seen).bins(PLACED, 0.6)
    assert (first.cpu_cores, second.cpu_cores) == pytest.approx((4 * 0.6 - 0.8, 4 * 0.6 - 1.8))
    assert first.memory_bytes == seen.pool.host.memory_bytes - 500 - 2 * 150
    assert Loads(seen).empty_bin("new", 0.6).cpu_cores == pytest.approx(2.4)


def busier(seen: View, name: str, extra: float) -> View:
    """The same, but each replica of the operator was busy for longer than its rows took."""
    operators = dict(seen.observation.operators)
    operators[name] = replace(operators[name], replica_utilisation=operators[name].replica_utilisation + extra)
    hosts = {name: replace(h, utilisation=h.utilisation + extra / h.cores) for name, h in seen.observation.hosts.items()}
    return replace(seen, observation=replace(seen.observation, operators=operators, hosts=hosts))


def test_what_a_replica_did_besides_its_rows_is_shared_by_its_shards(seen: View) -> None:
    assert cores(busier(seen, "count", 0.2), "count") == [0.2, 0.3, 0.4, 0.5]
    assert cores(busier(seen, "parse", 0.2), "parse") == [0.7, 0.5]


def test_waiting_for_a_core_is_no_load(seen: View) -> None:
    halved = {name: replace(h, utilisation=h.utilisation / 2) for name, h in seen.observation.hosts.items()}
    crowded = replace(seen, observation=replace(seen.observation, hosts=halved))
    assert cores(crowded, "count") == [0.05, 0.1, 0.15, 0.2]


def test_units_add_up_to_what_their_host_was_busy_with(seen: View) -> None:
    for observed in (seen, busier(seen, "count", 0.2)):
        measured = {name: h.utilisation * h.cores for name, h in observed.observation.hosts.items()}
        assert {h: load.cpu_cores for h, load in Loads(observed).by_host(PLACED).items()} == pytest.approx(measured)


def test_an_operator_of_which_nothing_was_measured_has_no_load(seen: View) -> None:
    wider = application(*APP.operators, operator("new", shards=2))
    placed = placed_on(**PLACED.operators, new=shards(0, 1))
    blind = View(application=wider, pool=seen.pool, observation=seen.observation, demand_rows_per_s={})
    assert Loads(blind).by_host(placed)["host-0"].cpu_cores == pytest.approx(0.8)


def test_what_is_expected_is_measured_while_nothing_changes_and_added_up_otherwise(seen: View) -> None:
    assert Loads(seen).highest_utilisation(seen.requested) == pytest.approx(1.8 / 4)
    relieved = PLACED.with_operator("one", shards(0, 0, 0, 0))
    assert Loads(seen).highest_utilisation(relieved) == pytest.approx(1.6 / 4)
