"""Parts of a series and lengths of windows: the paper's where there is enough, smaller ones where there is not."""

from __future__ import annotations

import pytest

from springtide.errors import InvalidValue
from springtide.forecast.pipeline.options import PrepareOptions
from springtide.forecast.pipeline.parts import PARTS, Bounds, Lengths, lengths_for, split_of, usual_split

DAY = 288  # intervals of 300 s


def lengths(intervals: int, interval_s: float = 300.0, **given_s: float) -> Lengths:
    bounds = usual_split(intervals, interval_s).bounds(intervals, interval_s)
    return lengths_for(bounds, interval_s, given_s.get("past_s"), given_s.get("future_s"))


class TestSplit:
    def test_sixty_days_are_split_as_in_the_paper_and_what_is_beyond_is_tested_on(self) -> None:
        bounds = usual_split(61 * DAY, 300.0).bounds(61 * DAY, 300.0)

        assert bounds == Bounds(validation=40 * DAY, test=50 * DAY, end=61 * DAY)
        assert [bounds.part(part) for part in PARTS] == [(0, 40 * DAY), (40 * DAY, 50 * DAY), (50 * DAY, 61 * DAY)]

    def test_less_than_sixty_days_are_split_by_shares(self) -> None:
        assert usual_split(600, 300.0).bounds(600, 300.0) == Bounds(validation=400, test=500, end=600)

    def test_a_split_may_be_given_by_days_or_by_shares(self) -> None:
        assert split_of("2d/1d/1d").bounds(5 * DAY, 300.0) == Bounds(validation=2 * DAY, test=3 * DAY, end=5 * DAY)
        assert split_of("1/1/2").bounds(100, 300.0) == Bounds(validation=25, test=50, end=100)

    def test_days_that_are_not_there_leave_parts_empty(self) -> None:
        bounds = split_of("40d/10d/10d").bounds(45 * DAY, 300.0)

        assert bounds.part("test") == (45 * DAY, 45 * DAY)

    @pytest.mark.parametrize("text", ["", "4/1", "4d/1/1", "4/1/0", "a/b/c", "4/1/-1", "1/inf/1", "nan/1/1"])
    def test_anything_else_is_refused_with_what_a_split_is(self, text: str) -> None:
        with pytest.raises(InvalidValue, match='as days "40d/10d/10d" or as shares "4/1/1"'):
            split_of(text)
        with pytest.raises(InvalidValue):
            PrepareOptions(split=text)


class TestLengths:
    def test_sixty_days_have_windows_of_a_week_and_a_day(self) -> None:
        assert lengths(60 * DAY) == Lengths(past=7 * DAY, future=DAY)

    def test_two_weeks_have_windows_of_a_day_and_a_day(self) -> None:
        assert lengths(14 * DAY) == Lengths(past=DAY, future=DAY)

    def test_a_day_has_windows_of_an_eighth_of_its_training_part(self) -> None:
        assert lengths(DAY) == Lengths(past=24, future=24)

    def test_the_future_has_twelve_intervals_where_there_is_room(self) -> None:
        assert lengths(90) == Lengths(past=7, future=12)
        assert lengths(36) == Lengths(past=4, future=6), "validation and test have no more than that"

    def test_a_few_intervals_still_have_windows(self) -> None:
        assert lengths(9) == Lengths(past=4, future=1)

    def test_a_series_that_is_too_short_is_refused_with_what_is_there_and_what_is_needed(self) -> None:
        with pytest.raises(InvalidValue, match=r"its train part has 4 intervals .* needs 5"):
            lengths(6)

    def test_lengths_are_given_as_durations(self) -> None:
        assert lengths(DAY, past_s=3_600.0, future_s=900.0) == Lengths(past=12, future=3)
        with pytest.raises(InvalidValue, match="future_s of 60 s is shorter than an interval of 300 s"):
            lengths(DAY, future_s=60.0)
        with pytest.raises(InvalidValue, match=r"its validation part has 48 intervals of 300 s, .* needs 72"):
            lengths(DAY, future_s=6 * 3_600.0)


def test_durations_are_whole_seconds() -> None:
    for wrong in (0.0, -60.0, 0.5, 60.5):
        with pytest.raises(InvalidValue, match="interval_s must be a whole number of seconds"):
            PrepareOptions(interval_s=wrong)


def test_a_refit_is_no_setting_and_all_else_is() -> None:
    before = PrepareOptions(split="4/1/1")

    assert PrepareOptions(split="4/1/1", refit=True).differences(before) == []
    assert PrepareOptions(split="5/1/1", past_s=60).differences(before) == [
        "past_s is 60 and was None",
        "split is 5/1/1 and was 4/1/1",
    ]
