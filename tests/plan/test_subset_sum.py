"""Subset sum against brute force where that is possible, and against its promise where it is not."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.plan.placement.subset_sum import EXACT_ITEMS, RESOLUTION, smallest_sum_reaching

unhurried = settings(deadline=None)
milli_loads = st.integers(min_value=0, max_value=400)


def in_cores(millis: list[int]) -> list[float]:
    return [m / 1000 for m in millis]


def best_by_brute_force(millis: list[int], wanted: int) -> tuple[int, int]:
    """The smallest sum that reaches what is wanted, and the fewest items that make it."""
    subsets = [c for size in range(len(millis) + 1) for c in combinations(millis, size)]
    return min((sum(c), len(c)) for c in subsets if sum(c) >= wanted)


@unhurried
@given(millis=st.lists(milli_loads, min_size=1, max_size=9), share=st.floats(0, 1))
def test_few_items_are_chosen_exactly(millis: list[int], share: float) -> None:
    wanted = int(sum(millis) * share)
    chosen = smallest_sum_reaching(in_cores(millis), wanted / 1000)
    assert (sum(millis[i] for i in chosen), len(chosen)) == best_by_brute_force(millis, wanted)


@unhurried
@given(millis=st.lists(milli_loads, min_size=EXACT_ITEMS + 1, max_size=200), share=st.floats(0.01, 0.99))
def test_many_items_reach_the_amount_with_less_to_spare_than_one_item(millis: list[int], share: float) -> None:
    wanted = int(sum(millis) * share)
    chosen = smallest_sum_reaching(in_cores(millis), wanted / 1000)
    reached = sum(millis[i] for i in chosen)
    assert reached >= wanted
    assert reached - wanted < max(1, *millis)
    assert chosen == tuple(sorted(set(chosen)))


@unhurried
@given(millis=st.lists(st.integers(1, 400), min_size=EXACT_ITEMS + 1, max_size=60, unique=True), share=st.floats(0.1, 0.9))
def test_many_different_items_come_within_a_hundredth_of_a_core_of_the_optimum(millis: list[int], share: float) -> None:
    wanted = int(sum(millis) * share)
    reachable = 1
    for m in millis:
        reachable |= reachable << m
    optimum = next(s for s in range(wanted, sum(millis) + 1) if reachable >> s & 1)
    chosen = smallest_sum_reaching(in_cores(millis), wanted / 1000)
    assert sum(millis[i] for i in chosen) - optimum <= 10


@pytest.mark.parametrize("count", [64, 1000])
def test_equal_items_are_as_few_as_can_be(count: int) -> None:
    assert len(smallest_sum_reaching([0.05] * count, 1.02)) == 21


def test_nothing_leaves_when_nothing_has_to() -> None:
    assert smallest_sum_reaching([0.5, 0.2], 0.0) == ()
    assert smallest_sum_reaching([], 0.3) == ()


def test_everything_that_has_load_leaves_when_all_of_it_is_too_little() -> None:
    assert smallest_sum_reaching([0.5, 0.0, 0.2], 0.9) == (0, 2)


def test_of_equal_sums_the_fewest_items_leave() -> None:
    assert smallest_sum_reaching([0.1, 0.2, 0.3, 0.15], 0.3) == (2,)


def test_sums_are_equal_to_within_the_resolution() -> None:
    assert smallest_sum_reaching([0.1 + RESOLUTION / 4, 0.1, 0.2], 0.2) == (2,)
