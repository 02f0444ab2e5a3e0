"""Windows: each belongs to the part that holds its future, no part has too many, and their content has a name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.forecast.pipeline.parts import PARTS, Bounds, Lengths
from springtide.forecast.pipeline.windowing import Series, cut, days_of_windows, digest_of, origins_in
from springtide.forecast.pipeline.writing import series_folder
from springtide.model.windows import Scale

HOURS = 3_600
SCALE = Scale(low_per_s=0.0, high_per_s=100.0, mean_per_s=50.0, deviation_per_s=20.0)
LENGTHS = Lengths(past=5, future=3)


def hours(count: int, first: int = 0) -> Series:
    return Series(first=first, interval_s=HOURS, rates_per_s=np.arange(float(count)), filled=np.zeros(count, dtype=bool))


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.integers(1, 20), st.integers(1, 20), st.integers(1, 50))
def test_every_window_has_its_future_in_its_part_and_no_part_has_too_many(
    train: int, validation: int, test: int, past: int, future: int, most: int
) -> None:
    bounds = Bounds(validation=train, test=train + validation, end=train + validation + test)
    lengths = Lengths(past=past, future=future)
    for part in PARTS:
        begin, end = bounds.part(part)
        origins = origins_in(bounds, part, lengths, most)
        every = origins_in(bounds, part, lengths, 10_000)
        possible = [o for o in range(bounds.end) if o - past + 1 >= 0 and begin <= o + 1 and o + future < end]

        assert every.tolist() == possible
        assert len(origins) <= most
        assert len(origins) > 0 or not possible
        assert set(origins.tolist()) <= set(possible)
        if len(origins) > 1:
            stride = int(origins[1] - origins[0])
            assert stride == 1 or -(-len(possible) // (stride - 1)) > most, "a smaller stride would have kept too many"


def test_the_past_reaches_back_into_the_part_before() -> None:
    bounds = Bounds(validation=40, test=50, end=60)

    assert origins_in(bounds, "validation", LENGTHS, 100).tolist() == list(range(39, 47))


def test_windows_are_told_by_the_day_of_their_last_past_interval() -> None:
    days = days_of_windows(hours(72, first=12), Bounds(validation=48, test=60, end=72), LENGTHS, 1_000)

    assert [(day.name, int(day.origins[0]), len(day.origins)) for day in days] == [
        ("train/1970-01-01", 4, 8),
        ("train/1970-01-02", 12, 24),
        ("train/1970-01-03", 36, 9),
        ("validation/1970-01-03", 47, 10),
        ("test/1970-01-03", 59, 1),
        ("test/1970-01-04", 60, 9),
    ]


def test_a_window_is_scaled_and_does_not_show_the_future_that_was_made_up() -> None:
    series = replace(hours(10), filled=np.arange(10) == 6)
    (day,) = days_of_windows(series, Bounds(validation=10, test=10, end=10), LENGTHS, 1_000)
    rows = cut(day, series, LENGTHS, SCALE).to_pylist()

    assert [row["origin"] for row in rows] == [4, 5, 6]
    assert rows[0]["past"] == pytest.approx([0.0, 0.01, 0.02, 0.03, 0.04])
    assert rows[0]["future"][0] == pytest.approx(0.05)
    assert [row["future"].count(None) for row in rows] == [1, 1, 0]
    assert rows[0]["future"][1] is None
    assert rows[2]["past"][-1] == pytest.approx(0.06), "but the past shows it"
    assert rows[1]["time"].isoformat() == "1970-01-01T05:00:00+00:00"


def test_a_day_has_another_name_when_anything_that_its_windows_show_has_changed() -> None:
    series, bounds = hours(72), Bounds(validation=72, test=72, end=72)

    def names(series: Series, scale: Scale = SCALE) -> list[str]:
        return [digest_of(day, series, LENGTHS, scale) for day in days_of_windows(series, bounds, LENGTHS, 1_000)]

    before = names(series)
    rates = series.rates_per_s.copy()
    rates[25] = 7.0
    changed = [old != new for old, new in zip(before, names(replace(series, rates_per_s=rates)), strict=True)]
    assert changed == [True, True, False], "the windows of the evening before foresee it"
    rates = series.rates_per_s.copy()
    rates[40] = 7.0
    changed = [old != new for old, new in zip(before, names(replace(series, rates_per_s=rates)), strict=True)]
    assert changed == [False, True, False]
    assert names(replace(series, filled=np.arange(72) == 71))[:2] == before[:2]
    assert set(names(series, replace(SCALE, high_per_s=200.0))).isdisjoint(before)


def test_folders_are_named_so_that_any_name_of_a_series_can_be_read_back() -> None:
    assert series_folder("source:a/b=c 100%") == "series=source%3Aa%2Fb%3Dc%20100%25"
    assert series_folder("Zürich-1_2.x") == "series=Zürich-1_2.x"
