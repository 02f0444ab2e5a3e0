"""The cheapest supply of hosts for a load that is known."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.comparison.clairvoyant import DemandCurve, Measured, cheapest_supply
from springtide.errors import InvalidValue


def measured(hosts: int, **rates: bool) -> list[Measured]:
    return [Measured(hosts=hosts, rows_per_s=float(rate.removeprefix("r")), kept=kept) for rate, kept in rates.items()]


def test_a_curve_has_what_each_number_of_hosts_carries_below_its_first_miss() -> None:
    curve = DemandCurve.of(
        [*measured(2, r100=True, r150=False, r160=True), *measured(1, r50=True, r80=False), *measured(3, r90=True, r150=False)]
    )

    assert (curve.hosts, curve.carried_per_s) == ((1, 2, 3), (50.0, 100.0, 100.0))
    assert curve.hosts_for(np.array([50.0, 51.0, 101.0])).tolist() == [1, 2, 3]


def test_a_curve_that_descends_is_refused() -> None:
    with pytest.raises(InvalidValue, match="carry less"):
        DemandCurve(hosts=(1, 2), carried_per_s=(50.0, 40.0))


def test_a_short_dip_is_sat_through_and_a_long_one_is_not() -> None:
    demand = np.array([1] * 5 + [3] * 5 + [1] * 2 + [3] * 5 + [1] * 30)

    supply = cheapest_supply(demand, step_s=1.0, cores=2, start_s=3.0, release_s=1.0, begins_with=1)

    assert supply.hosts.tolist() == [1] * 5 + [3] * 12 + [1] * 30
    assert supply.core_s == 2 * (5 + 36 + 30 + 2 * 3 + 2 * 1)


@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=6),
    st.integers(1, 3),
    st.sampled_from([0.0, 1.0, 2.5]),
    st.sampled_from([0.0, 0.5, 3.0]),
)
def test_no_supply_that_meets_the_demand_is_cheaper(
    demand: list[int], begins_with: int, start_s: float, release_s: float
) -> None:
    def cost(hosts: tuple[int, ...]) -> float:
        changes = np.diff([begins_with, *hosts])
        return sum(hosts) + start_s * np.maximum(0, changes).sum() + release_s * np.maximum(0, -changes).sum()

    every = [hosts for hosts in product((1, 2, 3), repeat=len(demand)) if all(np.array(hosts) >= demand)]
    supply = cheapest_supply(
        np.array(demand), step_s=1.0, cores=1, start_s=start_s, release_s=release_s, begins_with=begins_with
    )

    assert supply.core_s == pytest.approx(min(map(cost, every)))
    assert supply.core_s == pytest.approx(cost(tuple(supply.hosts.tolist())))
    assert (supply.hosts >= demand).all()
