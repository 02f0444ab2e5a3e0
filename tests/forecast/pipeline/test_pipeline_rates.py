"""Rates from counts: which interval is taken, which row belongs where, what is a gap, and what cannot become rates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from springtide.errors import SpringtideError
from springtide.forecast.pipeline.assembling import assemble, scale_of
from springtide.forecast.pipeline.options import Kind, PrepareOptions
from springtide.forecast.pipeline.rates import (
    IntervalCounts,
    Piece,
    SeriesPlan,
    event_interval_s,
    interval_at,
    plan_series,
    rates_of,
    step_interval_s,
    time_text,
)
from springtide.forecast.pipeline.summaries import Counted, Flaw

US = 1_000_000
DAY_S = 86_400


def piece(
    key: str = "a",
    *,
    first_s: float = 0.0,
    last_s: float = 6_000.0,
    step_s: float | None = 60.0,
    kind: Kind = "rates",
    are_rates: bool = False,
    flaw: Flaw | None = None,
    repeated_us: int | None = None,
) -> Piece:
    step_us = None if step_s is None else round(step_s * US)
    counted = Counted(
        series="s",
        first_us=round(first_s * US),
        last_us=round(last_s * US),
        step_us=step_us,
        flaw=flaw,
        repeated_us=repeated_us,
    )
    return Piece(path=f"/data/{key}.csv", key=key, kind=kind, are_rates=are_rates, counted=counted)


def counts(plan: SeriesPlan, rows: Sequence[tuple[str, float, float]]) -> IntervalCounts:
    """Counts of rows of (file, second, value), put into intervals as Spark does it."""
    found: dict[tuple[int, str], tuple[float, int]] = {}
    for key, second, value in rows:
        number = (round(second * US) + plan.shift_us(key)) // (plan.interval_s * US)
        total, so_far = found.get((number, key), (0.0, 0))
        found[number, key] = (total + value, so_far + 1)
    ordered = sorted(found)
    return IntervalCounts(
        numbers=np.array([number for number, _ in ordered]),
        files=[key for _, key in ordered],
        values=np.array([found[at][0] for at in ordered]),
        rows=np.array([found[at][1] for at in ordered]),
    )


def made(pieces: Sequence[Piece], rows: Sequence[tuple[str, float, float]], interval_s: int | None = None) -> list[float]:
    plan = plan_series("s", pieces, interval_s)
    return rates_of(plan, counts(plan, rows)).rates_per_s.tolist()


class TestInterval:
    def test_events_are_counted_per_minute_unless_there_are_too_few_minutes(self) -> None:
        assert [event_interval_s(span_s) for span_s in (18_000.0, 17_999.0, 3_000.0, 2_999.0, 5.0)] == [60, 10, 10, 1, 1]

    def test_steps_are_taken_as_they_are_but_for_a_minute_in_long_series(self) -> None:
        assert step_interval_s(300.0, 60 * DAY_S) == 300
        assert step_interval_s(1.0, 60 * DAY_S) == 60
        assert step_interval_s(1.0, 3_600.0) == 1
        assert step_interval_s(10.0, 60_001.0) == 60
        assert step_interval_s(10.0, 60_000.0) == 10

    def test_a_step_that_jitters_is_whole_and_one_that_is_not_whole_is_rounded_up(self) -> None:
        assert [step_interval_s(step_s, 100.0) for step_s in (0.1, 0.999, 10.04, 9.96, 10.3, 1.5)] == [1, 1, 10, 10, 11, 2]

    def test_an_interval_shorter_than_a_step_is_refused(self) -> None:
        with pytest.raises(
            SpringtideError, match="a row every 60 s, and an interval of 30 s is shorter; take one of at least 60 s"
        ):
            plan_series("s", [piece()], 30)

    def test_a_number_of_an_interval_is_told_as_a_time_and_back(self) -> None:
        for number in (0, 5_174_400, -3):
            assert interval_at(time_text(number * 300 * US), 300) == number


class TestRates:
    def test_a_rate_is_rows_per_second(self) -> None:
        assert made([piece()], [("a", 0, 60), ("a", 60, 120), ("a", 120, 30)]) == [1.0, 2.0, 0.5]

    def test_finer_steps_are_summed_up(self) -> None:
        rows = [("a", 10 * i, float(i)) for i in range(12)]
        assert made([piece(step_s=10.0)], rows, 60) == [15 / 60, 51 / 60]

    def test_rates_of_finer_steps_are_averaged(self) -> None:
        rows = [("a", 10 * i, float(i)) for i in range(12)]
        assert made([piece(step_s=10.0, are_rates=True)], rows, 60) == [2.5, 8.5]

    def test_a_missing_step_is_a_gap(self) -> None:
        found = made([piece()], [("a", 0, 60), ("a", 120, 60)])
        assert found[0] == found[2] == 1.0
        assert np.isnan(found[1])

    def test_an_interval_of_which_half_is_missing_is_told_by_the_other_half_and_one_with_less_is_a_gap(self) -> None:
        half = [("a", 10 * i, 10.0) for i in range(18) if i not in (7, 8, 9)]
        assert made([piece(step_s=10.0)], half, 60) == [1.0, 1.0, 1.0]
        less = [row for row in half if row[1] != 100]
        assert np.isnan(made([piece(step_s=10.0)], less, 60)[1])

    def test_a_recorder_that_jitters_leaves_neither_gaps_nor_doubles(self) -> None:
        rng = np.random.default_rng(1)
        for late_s in (0.0, 30.0, 53.0):
            times = 60.0 * np.arange(200) + late_s + rng.uniform(-12.0, 12.0, 200)
            times[0] = late_s
            found = made([piece(first_s=late_s)], [("a", time, 60.0 + i) for i, time in enumerate(times)], 60)
            assert found == [(60.0 + i) / 60 for i in range(200)], late_s

    def test_an_interval_without_an_event_has_the_rate_zero(self) -> None:
        events = [piece(kind="events", step_s=None, last_s=180.0)]
        assert made(events, [("a", 0, 0), ("a", 1, 0), ("a", 1, 0), ("a", 180, 0)], 60) == [3 / 60, 0.0, 0.0, 1 / 60]

    def test_files_of_one_series_follow_one_another(self) -> None:
        pieces = [piece("a"), piece("b", first_s=120.0)]
        assert made(pieces, [("a", 0, 60), ("a", 60, 120), ("b", 120, 180)]) == [1.0, 2.0, 3.0]

    def test_events_of_several_files_are_added(self) -> None:
        pieces = [piece(key, kind="events", step_s=None) for key in "ab"]
        assert made(pieces, [("a", 0, 0), ("b", 1, 0), ("b", 61, 0)], 60) == [2 / 60, 1 / 60]

    def test_files_that_tell_of_the_same_time_twice_are_refused(self) -> None:
        rows = [(key, 60 * i, 60.0) for key in "ab" for i in range(5)]
        with pytest.raises(SpringtideError, match=r"/data/a.csv and /data/b.csv both have rows for 1970-01-01T00:00:00Z"):
            made([piece("a"), piece("b")], rows)


class TestRefusals:
    def test_a_bad_count_is_refused_with_its_file_and_time(self) -> None:
        bad = piece(flaw=Flaw(why="is negative", time_us=90 * US))
        with pytest.raises(
            SpringtideError, match=r"/data/a.csv has a count at 1970-01-01T00:01:30Z that is negative; .* a gap"
        ):
            plan_series("s", [piece("b"), bad], None)

    def test_two_rows_for_one_time_are_refused(self) -> None:
        with pytest.raises(SpringtideError, match=r"several rows for 1970-01-01T00:01:30Z; .* kind 'events'"):
            plan_series("s", [piece(repeated_us=90 * US)], None)

    def test_a_single_row_does_not_tell_how_long_a_step_is(self) -> None:
        with pytest.raises(SpringtideError, match="single row"):
            plan_series("s", [piece(step_s=None)], None)
        plan_series("s", [piece(step_s=None), piece("b")], None)

    def test_a_series_is_of_one_kind(self) -> None:
        with pytest.raises(SpringtideError, match=r"events in /data/b.csv, rates in /data/a.csv"):
            plan_series("s", [piece("a"), piece("b", kind="events")], None)

    def test_a_name_must_fit_into_that_of_a_folder(self) -> None:
        with pytest.raises(SpringtideError, match="name that is longer"):
            plan_series("s" * 200, [piece()], None)


class TestSeries:
    def rows(self, intervals: int, level: float = 60.0) -> list[tuple[str, float, float]]:
        return [("a", 60 * i, level + 600 * (i % 7)) for i in range(intervals)]

    def plan(self) -> SeriesPlan:
        return plan_series("s", [piece()], 60)

    def test_the_scale_is_that_of_what_was_recorded_in_the_training_part(self) -> None:
        rows = [row for row in self.rows(600) if row[1] != 60 * 100]
        rows[50] = ("a", 60 * 50, 60_000.0)
        rows[-1] = ("a", 60 * 599, 600_000.0)
        prepared, series = assemble(self.plan(), counts(self.plan(), rows), PrepareOptions(), None)

        assert (prepared.scale.low_per_s, prepared.scale.high_per_s) == (1.0, 1_000.0), "outliers are kept, test days unseen"
        recorded = series.rates_per_s[:400][~series.filled[:400]]
        assert len(recorded) == 399
        assert prepared.scale.mean_per_s == pytest.approx(recorded.mean())
        assert prepared.scale.deviation_per_s == pytest.approx(recorded.std())
        assert prepared.gaps.intervals == 1

    def test_new_days_are_tested_on_and_scaled_as_before(self) -> None:
        before, _ = assemble(self.plan(), counts(self.plan(), self.rows(600)), PrepareOptions(), None)
        rows = [*self.rows(600), *(("a", 60 * i, 1e6) for i in range(600, 700))]
        after, _ = assemble(self.plan(), counts(self.plan(), rows), PrepareOptions(), before)

        assert after.scale == before.scale
        assert (after.validation_start, after.test_start) == (before.validation_start, before.test_start)
        assert (after.windows.train, after.windows.validation) == (before.windows.train, before.windows.validation)
        assert after.windows.test == before.windows.test + 100
        assert after.end == "1970-01-01T11:40:00Z"

    def test_data_from_before_the_start_are_learnt_from(self) -> None:
        rows = [(key, 60 * 600 + second, value) for key, second, value in self.rows(600)]
        before, _ = assemble(self.plan(), counts(self.plan(), rows), PrepareOptions(), None)
        after, _ = assemble(self.plan(), counts(self.plan(), [*self.rows(600), *rows]), PrepareOptions(), before)

        assert after.windows.train == before.windows.train + 600
        assert after.windows.test == before.windows.test
        assert after.start == "1970-01-01T00:00:00Z"

    def test_a_series_that_never_changes_is_refused(self) -> None:
        rows = [("a", 60 * i, 60.0) for i in range(600)]
        with pytest.raises(SpringtideError, match="all 1 rows/s"):
            assemble(self.plan(), counts(self.plan(), rows), PrepareOptions(), None)

    def test_a_training_part_without_anything_recorded_is_refused(self) -> None:
        with pytest.raises(SpringtideError, match="nothing recorded"):
            scale_of(np.ones(5), np.ones(5, dtype=bool))
