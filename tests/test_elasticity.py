"""The elasticity metrics of SPEC's research group."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.analyze.elasticity import Elasticity, measure_elasticity
from springtide.errors import InvalidValue

HOSTS = st.integers(min_value=0, max_value=20).map(float)


def found(*accuracies: float) -> Elasticity:
    under, over, under_time, over_time = accuracies
    return Elasticity(
        under_percent=under,
        over_percent=over,
        under_time_percent=under_time,
        over_time_percent=over_time,
        instability_percent=0.0,
        adaptations=0,
    )


@pytest.mark.parametrize(
    ("accuracies", "speed_up"),
    [
        ((0.48, 4.28, 15.85, 89.10), 1.84),
        ((1.88, 2.62, 42.55, 57.25), 1.29),
        ((5.07, 1.42, 76.50, 32.55), 1.17),
    ],
)
def test_the_published_speed_ups_come_out(accuracies: tuple[float, ...], speed_up: float) -> None:
    baseline = found(3.29, 3.06, 57.95, 57.05)

    assert found(*accuracies).speed_up(baseline, least_percent=0.01) == pytest.approx(speed_up, abs=0.01)


def test_what_is_never_missed_counts_as_one_sample() -> None:
    assert found(0.0, 10.0, 0.0, 50.0).speed_up(found(5.0, 10.0, 5.0, 50.0), least_percent=5.0) == pytest.approx(1.0)


@given(st.lists(st.tuples(HOSTS, HOSTS), min_size=1, max_size=60))
def test_a_supply_is_too_small_or_too_large_or_right(pairs: list[tuple[float, float]]) -> None:
    demand, supply = np.array(pairs).T
    metrics = measure_elasticity(demand, supply)
    right = measure_elasticity(demand, demand)

    assert metrics.under_time_percent + metrics.over_time_percent <= 100 + 1e-9
    assert 0 <= metrics.under_percent <= 100
    assert (metrics.under_percent > 0) == (metrics.under_time_percent > 0)
    assert right.accuracies.tolist() == [0.0] * 4
    assert right.instability_percent == 0


def test_a_supply_that_stays_misses_every_change_of_the_demand() -> None:
    metrics = measure_elasticity(np.array([1.0, 1.0, 3.0, 3.0, 1.0]), np.full(5, 3.0))

    assert (metrics.over_percent, metrics.over_time_percent) == pytest.approx((100 * 6 / 5, 60.0))
    assert (metrics.instability_percent, metrics.adaptations) == (50.0, 0)


def test_demand_and_supply_must_be_sampled_together() -> None:
    with pytest.raises(InvalidValue, match="same times"):
        measure_elasticity(np.array([1.0]), np.array([1.0, 2.0]))
