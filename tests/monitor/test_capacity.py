"""Utilisation where rows are processed in batches: 1 where the objective is just kept, and no matter how busy slots are."""

from __future__ import annotations

import numpy as np
import pytest

from factories import application, operator
from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.model.application import SLO, Application, Edge
from springtide.model.batch import BatchCosts, Estimate, longest_batches_s
from springtide.monitor.capacity import OperatorBatches, measure_host_utilisation

LONGEST_S = 2.0


def costs(**values: float) -> BatchCosts:
    known = {"driver_s": 0.4, "batch_s": 0.0, "task_s": 0.03, "shard_s": 0.02, "row_s": 0.01, "skew": 1.0, **values}
    return BatchCosts(**{name: Estimate(value=value, error=0.0) for name, value in known.items()}, batches=100.0)


def batches(rows: list[float], shards: list[float], **values: float) -> OperatorBatches:
    return OperatorBatches(
        costs=costs(**values), longest_s=LONGEST_S, replica_rows=np.array(rows), replica_shards=np.array(shards)
    )


def test_utilisation_is_1_where_batches_are_as_long_as_the_objective_allows() -> None:
    found = costs()
    for shards in (1.0, 8.0, 40.0):
        empty_s = found.duration_s(rows=0.0, tasks=1, shards=shards, slots=1)
        rate = (1 - empty_s / LONGEST_S) / found.row_s.value
        assert found.duration_s(rows=rate * LONGEST_S, tasks=1, shards=shards, slots=1) == pytest.approx(LONGEST_S)
        assert batches([rate * 10.0 * 0.999], [shards]).replica_utilisation(10.0)[0] == pytest.approx(0.999)


def test_it_grows_with_the_rows_and_not_with_the_time_that_batches_take() -> None:
    one, two = (float(batches([rows], [8.0]).replica_utilisation(10.0)[0]) for rows in (100.0, 200.0))
    assert two == pytest.approx(2 * one)
    assert one == pytest.approx(0.1 / (1 - 0.4 / 2 - 0.19 / 2))


def test_an_objective_that_even_empty_batches_miss_leaves_no_capacity() -> None:
    assert batches([1.0, 0.0], [8.0, 8.0], driver_s=3.0).replica_utilisation(10.0).tolist() == pytest.approx([0.05, 0.0])
    assert float(batches([100.0], [8.0], driver_s=3.0).replica_utilisation(10.0)[0]) == 1.0


def placed(**replica_hosts: tuple[str, ...]) -> Allocation:
    hosts = dict.fromkeys(host for hosts in replica_hosts.values() for host in hosts)
    return Allocation((*hosts, "idle"), {name: OperatorAllocation(hosts) for name, hosts in replica_hosts.items()})


def test_a_host_with_one_replica_a_core_is_as_utilised_as_they_are() -> None:
    its = batches([100.0, 100.0], [4.0, 4.0])
    found = measure_host_utilisation(placed(count=("a", "a")), {"count": its}, cores=2, interval_s=10.0)
    assert found["a"] == pytest.approx(float(its.replica_utilisation(10.0)[0]))
    assert found["idle"] == 0.0


def test_two_replicas_on_one_core_leave_less_room_than_either_alone() -> None:
    its = batches([100.0, 100.0], [4.0, 4.0])
    found = measure_host_utilisation(placed(count=("a", "a")), {"count": its}, cores=1, interval_s=10.0)
    assert found["a"] == pytest.approx(0.2 / (1 - 0.4 / 2 - 2 * 0.11 / 2))


def test_operators_that_share_a_host_use_the_time_in_which_the_other_waits_for_the_driver() -> None:
    its = {"count": batches([100.0], [4.0]), "sum": batches([100.0], [4.0], driver_s=0.2)}
    found = measure_host_utilisation(placed(count=("a",), sum=("a",)), its, cores=1, interval_s=10.0)
    assert found["a"] == pytest.approx(0.2 / (1 - 0.2 / 2 - 2 * 0.11 / 2))


def test_an_allocation_that_has_just_changed_is_not_mixed_with_what_was_counted_before() -> None:
    its = batches([100.0, 100.0], [4.0, 4.0])
    assert measure_host_utilisation(placed(count=("a",)), {"count": its}, cores=1, interval_s=10.0)["a"] == 0.0


def test_the_objective_is_shared_by_the_operators_in_a_row() -> None:
    alone = application("count", slo=SLO(latency_s=5.0, percentile=0.9))
    assert longest_batches_s(alone) == {"count": pytest.approx(5 / 1.9)}
    names = ("read", "left", "right", "deep", "join")
    edges = (("read", "left"), ("read", "right"), ("right", "deep"), ("left", "join"), ("deep", "join"))
    diamond = Application(
        name="diamond",
        operators=tuple(operator(name) for name in names),
        edges=tuple(Edge(upstream=a, downstream=b) for a, b in edges),
        slo=SLO(latency_s=5.0, percentile=0.9),
    )
    found = longest_batches_s(diamond)
    assert {name: round(5 / 1.9 / seconds) for name, seconds in found.items()} == {
        "read": 4,
        "left": 3,
        "right": 4,
        "deep": 4,
        "join": 4,
    }
