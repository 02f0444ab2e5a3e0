"""The Cost-Balance-Algorithm (Mu et al. 2019, Algorithm 1) step by step, and beside the best there is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.plan.cost.model import Prices, total_cost
from springtide.plan.cost.timetable import acts, balanced, enough, restart_is_dearer, with_few_reroutes, with_few_restarts

PAPER = Prices()
DEAR_ROUTES = Prices(instance=80.0, startup=0.0, shutdown=0.0, reroute=100.0)

money = st.integers(0, 2000).map(float)
any_prices = st.builds(Prices, instance=money, startup=money, shutdown=money, reroute=money)
few = st.integers(1, 5)


def test_step_1_starts_before_the_input_rises_and_stops_after_it_has_fallen() -> None:
    needs = (1, 1, 3, 3, 2, 2)
    assert enough(needs) == (1, 3, 3, 3, 2)


def test_step_2_starts_once_instead_of_twice() -> None:
    """One instance for one interval costs 80, a re-routing 100; two instances, or two intervals, cost more than that."""
    assert with_few_reroutes((1, 2, 3, 3), DEAR_ROUTES) == (1, 3, 3, 3)
    assert with_few_reroutes((1, 2, 4, 4), DEAR_ROUTES) == (1, 2, 4, 4)
    assert with_few_reroutes((1, 2, 2, 3), DEAR_ROUTES) == (1, 2, 2, 3)


def test_step_2_stops_once_instead_of_twice() -> None:
    assert with_few_reroutes((3, 2, 1, 1), DEAR_ROUTES) == (3, 3, 1, 1)
    assert with_few_reroutes((4, 2, 1, 1), DEAR_ROUTES) == (4, 2, 1, 1)


def test_step_2_moves_what_was_moved_on_together() -> None:
    """The third start joins the second for 80; for both of them together to join the first would be 160."""
    assert with_few_reroutes((1, 2, 3, 4), DEAR_ROUTES) == (1, 2, 4, 4)
    cheaper = Prices(instance=30.0, startup=0.0, shutdown=0.0, reroute=100.0)
    assert with_few_reroutes((1, 2, 3, 4), cheaper) == (1, 4, 4, 4)


def test_step_2_never_pays_at_the_papers_prices() -> None:
    """A re-routing is 100, an instance 8000."""
    assert with_few_reroutes((1, 2, 3, 2, 1), PAPER) == (1, 2, 3, 2, 1)


def test_step_3_keeps_what_would_be_started_again_in_the_next_interval() -> None:
    """Stopping and starting one is 5000 + 5000 + 100; keeping it is 8000 for one interval, 16,000 for two."""
    assert restart_is_dearer(1, 1, PAPER)
    assert not restart_is_dearer(1, 2, PAPER)
    assert with_few_restarts((2, 1, 2), PAPER) == (2, 2, 2)
    assert with_few_restarts((2, 1, 1, 2), PAPER) == (2, 1, 1, 2)


def test_step_3_counts_the_rerouting() -> None:
    """Without it, 4000 + 4000 are as much as one instance for one interval."""
    assert restart_is_dearer(1, 1, Prices(startup=4000.0, shutdown=4000.0, reroute=100.0))
    assert not restart_is_dearer(1, 1, Prices(startup=4000.0, shutdown=4000.0, reroute=0.0))


def test_step_3_keeps_no_more_than_are_started_again() -> None:
    assert with_few_restarts((5, 1, 3), PAPER) == (5, 3, 3)
    assert with_few_restarts((3, 1, 5), PAPER) == (3, 3, 5)


def test_step_3_goes_on_until_nothing_is_left_to_keep() -> None:
    """Filling the small gaps makes a large one that is bridged, too."""
    dear_starts = Prices(instance=1.0, startup=5.0, shutdown=5.0, reroute=0.0)
    assert with_few_restarts((4, 2, 1, 2, 1, 2, 4), dear_starts) == (4, 4, 4, 4, 4, 4, 4)


@given(present=few, needs=st.lists(few, min_size=2, max_size=9), prices=any_prices)
def test_no_step_costs_more_or_has_less_than_the_one_before(present: int, needs: list[int], prices: Prices) -> None:
    first = (present, *enough(needs))
    second = with_few_reroutes(first, prices)
    third = with_few_restarts(second, prices)
    for before, after in itertools.pairwise([(present, *needs[1:]), first, second, third]):
        assert all(a <= b for a, b in zip(before, after, strict=True))
    assert total_cost(first, prices) >= total_cost(second, prices) >= total_cost(third, prices)
    assert balanced(present, needs, prices) == third
    assert third[0] == present
    assert max(third) <= max(first)  # nothing is started that is not needed at some time
    assert len(acts(third)) <= len(acts(first))


def small_cases() -> Iterator[tuple[int, tuple[int, ...]]]:
    """Every present number and every input of five intervals that needs one to three instances."""
    return ((present, needs) for present in (1, 2, 3) for needs in itertools.product((1, 2, 3), repeat=5))


def cheapest(present: int, least: Sequence[int], prices: Prices) -> float:
    """By trying them all."""
    return min(total_cost((present, *n), prices) for n in itertools.product(*(range(k, 4) for k in least)))


def test_at_the_papers_prices_no_timetable_above_step_1_is_cheaper() -> None:
    for present, needs in small_cases():
        assert total_cost(balanced(present, needs, PAPER), PAPER) == cheapest(present, enough(needs), PAPER)


def test_what_it_costs_to_stop_late() -> None:
    """Step 1 keeps instances for one interval longer than needed, so that CBA is not the least that satisfies equation 9."""
    assert balanced(3, (3, 1, 1, 1, 1), PAPER) == (3, 3, 1, 1, 1)
    assert cheapest(3, (1, 1, 1, 1), PAPER) == total_cost((3, 1, 1, 1, 1), PAPER)
    assert total_cost((3, 3, 1, 1, 1), PAPER) - total_cost((3, 1, 1, 1, 1), PAPER) == 16_000


def test_at_the_papers_prices_it_is_never_worse_than_doing_nothing() -> None:
    for present, needs in small_cases():
        if present >= max(needs):
            assert total_cost(balanced(present, needs, PAPER), PAPER) <= total_cost((present,) * 5, PAPER)


@pytest.mark.parametrize(
    ("needs", "prices", "why"),
    [
        ((1, 1, 1), Prices(instance=100.0, shutdown=900.0), "a stop is never given up, however little is left to save"),
        ((1, 1, 2), Prices(instance=100.0, startup=0.0, shutdown=0.0, reroute=100.0), "two re-routings are counted as one"),
    ],
)
def test_at_other_prices_it_may_be_worse_than_doing_nothing(needs: tuple[int, ...], prices: Prices, why: str) -> None:
    table = balanced(2, needs, prices)
    assert total_cost(table, prices) > total_cost((2,) * len(table), prices), why
