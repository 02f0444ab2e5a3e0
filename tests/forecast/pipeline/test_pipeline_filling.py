"""Gaps: what was recorded stays, what is made up comes from the neighbours or from other days, and all of it is counted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.errors import InvalidValue
from springtide.forecast.pipeline.filling import filled_rates, gaps_in

HOUR_S = 3_600.0
NAN = np.nan


def days(*levels: float) -> np.ndarray:
    """One day of hours for each level: the level, and the hour of the day on top of it."""
    return np.concatenate([level + np.arange(24.0) for level in levels])


def test_a_short_gap_is_a_straight_line_though_other_days_are_known() -> None:
    rates = days(0.0, 100.0, 200.0)
    rates[30:33] = NAN

    assert filled_rates(rates, HOUR_S)[29:34].tolist() == [105.0, 106.0, 107.0, 108.0, 109.0]


def test_an_hour_is_short_however_many_intervals_it_has() -> None:
    rates = np.tile(np.arange(288.0), 2)
    rates[300:312] = NAN
    line = filled_rates(rates, 300.0)
    rates[300:313] = NAN
    copied = filled_rates(rates, 300.0)

    assert line[300:312] == pytest.approx(np.arange(12.0, 24.0))
    assert copied[300:313].tolist() == np.arange(12.0, 25.0).tolist()
    rates[:288] += 1_000.0
    assert filled_rates(rates, 300.0)[300:313].tolist() == np.arange(1_012.0, 1_025.0).tolist(), "it is of the day before"


def test_a_long_gap_is_the_day_before() -> None:
    rates = days(0.0, 100.0, 200.0)
    rates[30:36] = NAN

    assert filled_rates(rates, HOUR_S)[30:36].tolist() == [6.0, 7.0, 8.0, 9.0, 10.0, 11.0]


def test_a_long_gap_in_the_first_day_is_the_day_after() -> None:
    rates = days(0.0, 100.0)
    rates[6:12] = NAN

    assert filled_rates(rates, HOUR_S)[6:12].tolist() == [106.0, 107.0, 108.0, 109.0, 110.0, 111.0]


def test_a_gap_of_days_repeats_the_last_day_that_was_recorded() -> None:
    rates = days(0.0, 100.0, 200.0, 300.0)
    rates[24:72] = NAN

    assert filled_rates(rates, HOUR_S)[24:72].tolist() == days(0.0, 0.0).tolist()


def test_a_long_gap_without_any_other_day_is_a_straight_line() -> None:
    rates = np.array([1.0, NAN, NAN, NAN, NAN, 6.0])

    assert filled_rates(rates, HOUR_S).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_gaps_are_counted_and_the_longest_is_told() -> None:
    gaps = gaps_in(np.array([0, 1, 0, 0, 1, 1, 1, 0, 1], dtype=bool))

    assert (gaps.gaps, gaps.intervals, gaps.longest_intervals) == (3, 5, 3)
    assert gaps_in(np.zeros(5, dtype=bool)).longest_intervals == 0


def test_a_series_begins_and_ends_with_something_recorded() -> None:
    for rates in ([], [NAN, 1.0], [1.0, NAN]):
        with pytest.raises(InvalidValue, match="begin and end"):
            filled_rates(np.array(rates), 60.0)


@given(
    st.lists(st.one_of(st.none(), st.floats(0, 1e9)), max_size=200),
    st.sampled_from([60.0, 600.0, 7_000.0, 100_000.0]),
)
def test_whatever_is_missing_nothing_recorded_changes_and_nothing_leaves_its_range(
    middle: list[float | None], interval_s: float
) -> None:
    rates = np.array([1.0, *middle, 2.0], dtype=float)
    filled = filled_rates(rates, interval_s)
    recorded = ~np.isnan(rates)

    assert filled[recorded].tolist() == rates[recorded].tolist()
    assert np.isfinite(filled).all()
    assert filled.min() >= np.nanmin(rates)
    assert filled.max() <= np.nanmax(rates) * (1 + 1e-12)
