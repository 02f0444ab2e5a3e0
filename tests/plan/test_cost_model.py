"""BGElasor's cost model (Mu et al. 2019, section 3.3, equations 5 to 9) at the paper's prices (section 4.3)."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.errors import InvalidValue
from springtide.plan.cost.model import (
    Prices,
    extra_cost,
    interval_cost,
    least_instances,
    reroutes,
    shutdowns,
    startups,
    total_cost,
    transition_cost,
)

PAPER = Prices()
numbers = st.lists(st.integers(1, 9), min_size=1, max_size=8)
money = st.integers(0, 10_000).map(float)


def test_the_prices_are_those_of_figure_4() -> None:
    assert (PAPER.instance, PAPER.startup, PAPER.shutdown, PAPER.reroute) == (8000, 5000, 5000, 100)


@pytest.mark.parametrize(
    ("before", "after", "started", "stopped", "rerouted"), [(2, 5, 3, 0, 1), (5, 2, 0, 3, 1), (4, 4, 0, 0, 0)]
)
def test_what_a_change_consists_of(before: int, after: int, started: int, stopped: int, rerouted: int) -> None:
    assert startups(before, after) == started  # Eq. (6)
    assert shutdowns(before, after) == stopped  # Eq. (7)
    assert reroutes(before, after) == rerouted  # Eq. (8)
    assert transition_cost(before, after, PAPER) == 5000 * started + 5000 * stopped + 100 * rerouted


def test_a_whole_timetable() -> None:
    # 1 + 2 + 2 + 1 instances at 8000; one start, one stop, two re-routings.
    assert total_cost((1, 2, 2, 1), PAPER) == 48_000 + 5000 + 5000 + 200  # Eq. (5)


def test_what_a_timetable_costs_beyond_the_least_that_is_enough() -> None:
    """One instance is not needed in the second interval. Keeping it costs 8000, doing without it 10,200."""
    assert extra_cost((2, 2, 2), (2, 1, 2), PAPER) == 8000  # Eq. (9)
    assert extra_cost((2, 1, 2), (2, 1, 2), PAPER) == 10_200


@given(numbers=numbers, prices=st.tuples(money, money, money, money))
def test_the_sums_of_equation_5_written_out(numbers: list[int], prices: tuple[float, float, float, float]) -> None:
    p, up, down, route = prices
    ups = sum(max(0, b - a) for a, b in pairwise(numbers))
    downs = ups - (numbers[-1] - numbers[0])
    changes = sum(a != b for a, b in pairwise(numbers))
    expected = p * sum(numbers) + up * ups + down * downs + route * changes
    assert total_cost(numbers, Prices(instance=p, startup=up, shutdown=down, reroute=route)) == pytest.approx(expected)


@given(numbers=numbers, spare=st.lists(st.integers(0, 3), min_size=8, max_size=8))
def test_only_instances_that_are_not_needed_and_changes_cost_extra(numbers: list[int], spare: list[int]) -> None:
    least = [max(1, n - s) for n, s in zip(numbers, spare, strict=False)]
    idle = sum(numbers) - sum(least)
    assert extra_cost(numbers, least, PAPER) >= 8000 * idle
    assert (extra_cost(numbers, least, PAPER) == 8000 * idle) == (len(set(numbers)) == 1)


@given(demand=st.floats(0, 1e6), capacity=st.floats(0.1, 1e4))
def test_the_least_instances_are_enough_and_one_fewer_is_not(demand: float, capacity: float) -> None:
    least = least_instances(demand, capacity)
    assert least * capacity >= demand * (1 - 1e-8) - 1e-8 * capacity
    assert least == 1 or (least - 1) * capacity < demand


def test_capability_may_equal_the_input() -> None:
    assert least_instances(300.0, 100.0) == 3
    assert least_instances(3 * 0.1, 0.1) == 3  # 0.30000000000000004
    assert interval_cost(3, demand_rows_per_s=300.0, capacity_rows_per_s=100.0, prices=PAPER) == 24_000


def test_too_few_instances_are_forbidden_unless_they_have_a_price() -> None:
    short = {"demand_rows_per_s": 350.0, "capacity_rows_per_s": 100.0}
    assert interval_cost(3, **short, prices=PAPER) == math.inf
    assert interval_cost(3, **short, prices=Prices(shortfall=2.0)) == 24_000 + 2 * 50
    assert interval_cost(4, **short, prices=PAPER) == 32_000


@pytest.mark.parametrize("what", ["instance", "startup", "shutdown", "reroute", "shortfall"])
def test_prices_that_cannot_be_are_refused(what: str) -> None:
    with pytest.raises(InvalidValue, match=f"{what} must be 0 or more, not -1"):
        Prices(**{what: -1.0})
