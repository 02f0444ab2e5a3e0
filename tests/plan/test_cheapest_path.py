"""The dynamic program against every way there is."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.plan.horizon.path import Moves, cheapest_path, first_step, path_cost

costs = st.floats(0, 10)


@given(
    st.integers(1, 4),
    st.integers(1, 5),
    st.data(),
    st.builds(Moves, up=costs, down=costs, change=costs),
)
@settings(max_examples=200, deadline=None)
def test_no_way_is_cheaper(sizes: int, count: int, data: st.DataObject, moves: Moves) -> None:
    stages = np.array(data.draw(st.lists(st.lists(costs, min_size=sizes, max_size=sizes), min_size=count, max_size=count)))
    start = data.draw(st.integers(0, sizes - 1))
    every = np.arange(sizes)
    path = cheapest_path(stages, every, start, moves)
    found = path_cost(stages, every, start, path, moves)
    best = min(path_cost(stages, every, start, np.array(way), moves) for way in itertools.product(range(sizes), repeat=count))
    assert found == pytest.approx(best)
    assert first_step(stages, every, start, moves) == path[0]


def test_cost_is_what_the_formula_says() -> None:
    stages = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    moves = Moves(up=10.0, down=100.0, change=1000.0)
    assert path_cost(stages, np.arange(3), 0, np.array([2, 1]), moves) == 3 + 2 * 10 + 1000 + 2 + 100 + 1000


def test_a_dip_that_is_shorter_than_a_change_is_worth_is_sat_through() -> None:
    def wanted(dip: int) -> list[int]:
        need = np.array([1] * 3 + [0] * dip + [1] * 3)
        stages = np.array([[5.0 * (size < n) + size for size in range(2)] for n in need])
        return cheapest_path(stages, np.arange(2), 1, Moves(up=2.0, down=1.0, change=0.5)).tolist()

    assert wanted(3) == [1] * 9
    assert wanted(5) == [1] * 3 + [0] * 5 + [1] * 3


def test_sizes_need_not_follow_one_another() -> None:
    stages = np.array([[0.0, 9.0, 9.0], [9.0, 9.0, 0.0]])
    sizes = np.array([1, 2, 8])
    assert cheapest_path(stages, sizes, 1, Moves(up=1.0, down=1.0, change=0.0)).tolist() == [1, 8]
    assert cheapest_path(stages, sizes, 1, Moves(up=2.0, down=1.0, change=0.0)).tolist() == [1, 1]
