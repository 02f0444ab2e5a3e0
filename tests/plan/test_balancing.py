"""Elasticutor's shard balancing (section 3.1): even enough, and with few moves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.plan.placement.balancing import balance, imbalance

unhurried = settings(deadline=None)


def replica_loads(loads: list[float], routes: tuple[int, ...], replicas: int) -> np.ndarray:
    return np.bincount(routes, weights=loads, minlength=replicas).astype(float)


def test_delta_is_the_highest_load_over_the_mean() -> None:
    assert imbalance(np.array([3.0, 1.0, 2.0])) == pytest.approx(1.5)
    assert imbalance(np.zeros(3)) == 1.0


def test_a_balanced_operator_is_left_alone() -> None:
    assert balance([1.1, 0.9], [0, 1], 2) == (0, 1)


def test_the_shard_that_helps_most_moves_first() -> None:
    # 9 against 1: moving 4 makes it 5 against 5, moving 3 or 2 leaves more.
    assert balance([4.0, 3.0, 2.0, 1.0], [0, 0, 0, 1], 2) == (1, 0, 0, 1)


def test_one_hot_shard_cannot_be_split() -> None:
    assert balance([1.0, 0.0, 0.0], [0, 0, 0], 2) == (0, 0, 0)


def test_two_replicas_that_share_the_highest_load_are_both_relieved() -> None:
    routes = balance([1.0] * 8, [0, 0, 0, 0, 1, 1, 1, 1], 4)
    assert sorted(replica_loads([1.0] * 8, routes, 4)) == [2, 2, 2, 2]


def test_a_new_replica_gets_its_share_in_as_few_moves_as_there_are_shards_to_give() -> None:
    before = [s % 3 for s in range(12)]
    after = balance([1.0] * 12, before, 4)
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 3


def test_no_load_moves_nothing() -> None:
    assert balance([0.0, 0.0], [0, 0], 2) == (0, 0)


@unhurried
@given(
    loads=st.lists(st.floats(0, 1), min_size=1, max_size=30),
    replicas=st.integers(1, 6),
    theta=st.sampled_from([1.0, 1.2, 2.0]),
    data=st.data(),
)
def test_balancing_never_raises_the_highest_load_and_moves_only_what_is_needed(
    loads: list[float], replicas: int, theta: float, data: st.DataObject
) -> None:
    before = tuple(data.draw(st.lists(st.integers(0, replicas - 1), min_size=len(loads), max_size=len(loads))))
    after = balance(loads, before, replicas, theta)
    old, new = replica_loads(loads, before, replicas), replica_loads(loads, after, replicas)
    assert new.sum() == pytest.approx(old.sum())
    assert new.max() <= old.max() * (1 + 1e-9)
    if imbalance(old) <= theta:
        assert after == before


@unhurried
@given(loads=st.lists(st.floats(0.01, 0.05), min_size=40, max_size=64), replicas=st.integers(2, 4))
def test_many_small_shards_always_come_below_theta(loads: list[float], replicas: int) -> None:
    assert imbalance(replica_loads(loads, balance(loads, [0] * len(loads), replicas), replicas)) <= 1.2
