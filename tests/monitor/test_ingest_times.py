"""When rows entered: a few points that stand for all rows, however often they are joined."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from springtide.monitor.ingest_times import MOST_POINTS, IngestTimes, at_once, joined, nobody

NOW_S = 1_772_366_400.0  # a time since the epoch: what is left of a double's digits is a quarter of a microsecond
ROUNDING_S = 1e-5


def mean_s(times: IngestTimes) -> float:
    """Ages are small beside times, and their mean loses no digits."""
    return float(np.average(NOW_S - times.times_s, weights=times.rows))


def quantile_s(times: IngestTimes, share: float) -> float:
    share = min(1.0, max(0.0, share))
    return float(np.quantile(times.times_s, share, weights=times.rows, method="inverted_cdf"))


def sample(rng: np.random.Generator, points: int, spread_s: float = 60.0, skew: float = 1.0) -> IngestTimes:
    """Points in no order; `skew` 0 gives all of them one weight, 3 a few of them most of the rows."""
    return IngestTimes(NOW_S - spread_s * rng.random(points) ** 2, np.exp(skew * rng.standard_normal(points)))


class TestOneBatch:
    def test_all_rows_at_once(self) -> None:
        times = at_once(NOW_S, 7)

        assert (times.times_s.tolist(), times.rows.tolist(), times.total_rows) == ([NOW_S], [7.0], 7.0)

    @pytest.mark.parametrize("rows", [0, 0.0, -1])
    def test_no_rows_no_point(self, rows: float) -> None:
        assert len(at_once(NOW_S, rows).times_s) == 0
        assert nobody().total_rows == 0

    def test_an_age_is_what_has_passed_since(self) -> None:
        times = IngestTimes(np.array([10.0, 12.5]), np.array([1.0, 1.0]))

        assert times.ages_s(20.0).tolist() == [10.0, 7.5]

    def test_a_clock_that_runs_ahead_makes_no_negative_age(self) -> None:
        assert at_once(10.0, 1).ages_s(9.0).tolist() == [0.0]


class TestJoining:
    def test_nothing_joined_is_nobody(self) -> None:
        assert joined([]).total_rows == 0
        assert joined([nobody(), nobody()]).total_rows == 0
        assert len(joined(nobody() for _ in range(1000)).times_s) == 0

    def test_few_points_are_kept_as_they_are(self) -> None:
        parts = [at_once(NOW_S + i, i) for i in range(MOST_POINTS + 1)]  # the first has no rows, and is no point
        together = joined(parts)

        assert together.times_s.tolist() == [NOW_S + i for i in range(1, MOST_POINTS + 1)]
        assert together.rows.tolist() == list(range(1, MOST_POINTS + 1))

    def test_one_point_more_is_one_too_many(self) -> None:
        together = joined(at_once(NOW_S + i, 1) for i in range(MOST_POINTS + 1))

        assert len(together.times_s) <= MOST_POINTS
        assert together.total_rows == MOST_POINTS + 1

    def test_points_of_one_weight_become_points_of_one_weight(self) -> None:
        together = joined(at_once(NOW_S + i, 3) for i in range(10 * MOST_POINTS))

        assert together.rows.tolist() == [30.0] * MOST_POINTS
        assert together.times_s[:2].tolist() == pytest.approx([NOW_S + 4.5, NOW_S + 14.5], abs=ROUNDING_S)

    def test_a_heavy_point_does_not_drag_its_neighbours_along(self) -> None:
        """Nearly all rows entered in one second; the few late ones, which a percentile is about, stay where they are."""
        late = [at_once(NOW_S + 1000 + i, 1) for i in range(300)]
        together = joined([at_once(NOW_S, 1_000_000), *late])

        assert together.times_s.min() == pytest.approx(NOW_S, abs=ROUNDING_S)
        assert together.rows[together.times_s.argmin()] == 1_000_000
        assert together.total_rows == 1_000_300
        assert together.times_s.max() > NOW_S + 1000

    def test_the_parts_are_left_alone(self) -> None:
        parts = [sample(np.random.default_rng(seed), 150) for seed in range(3)]
        before = [(p.times_s.copy(), p.rows.copy()) for p in parts]
        joined(parts)

        for part, (times_s, rows) in zip(parts, before, strict=True):
            assert (part.times_s == times_s).all()
            assert (part.rows == rows).all()


@st.composite
def many_parts(draw: st.DrawFn) -> list[IngestTimes]:
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    sizes = draw(st.lists(st.integers(0, 400), min_size=1, max_size=8))
    spread_s, skew = draw(st.sampled_from([0.0, 1e-3, 60.0, 1e5])), draw(st.sampled_from([0.0, 1.0, 3.0]))
    return [sample(rng, size, spread_s, skew) for size in sizes]


def together(parts: list[IngestTimes]) -> IngestTimes:
    """All points, none left out."""
    everything: tuple[NDArray[np.float64], NDArray[np.float64]] = (
        np.concatenate([p.times_s for p in parts]),
        np.concatenate([p.rows for p in parts]),
    )
    return IngestTimes(*everything)


@given(many_parts())
def test_rows_and_their_mean_are_kept_and_points_are_few(parts: list[IngestTimes]) -> None:
    exact, found = together(parts), joined(parts)

    assert len(found.times_s) <= MOST_POINTS
    assert found.total_rows == pytest.approx(exact.total_rows, rel=1e-12)
    assert (found.rows > 0).all()
    if exact.total_rows:
        assert mean_s(found) == pytest.approx(mean_s(exact), abs=ROUNDING_S)
        assert found.times_s.min() >= exact.times_s.min() - ROUNDING_S
        assert found.times_s.max() <= exact.times_s.max() + ROUNDING_S


@given(many_parts(), st.sampled_from([0.01, 0.1, 0.5, 0.9, 0.99]))
def test_a_percentile_is_off_by_no_more_than_a_point_and_the_heaviest_of_those_it_came_from(
    parts: list[IngestTimes], share: float
) -> None:
    """A point is the mean of neighbours whose middles are no further apart than one part in `MOST_POINTS` of the rows."""
    exact, found = together(parts), joined(parts)
    if not exact.total_rows:
        return
    off = 1 / MOST_POINTS + exact.rows.max() / exact.total_rows + 1e-9

    assert quantile_s(exact, share - off) - ROUNDING_S <= quantile_s(found, share)
    assert quantile_s(found, share) <= quantile_s(exact, share + off) + ROUNDING_S


def test_a_long_run_loses_no_row_and_does_not_drift() -> None:
    """Two thousand batches, each joined to those before it: the way an aggregate's times go down a chain of operators."""
    rng = np.random.default_rng(5)
    so_far, rows, age_s = nobody(), 0.0, 0.0
    for batch in range(2000):
        part = IngestTimes(NOW_S + batch + rng.random(5), rng.integers(1, 100, 5).astype(np.float64))
        rows += part.total_rows
        age_s += float((part.rows * (part.times_s - NOW_S)).sum())
        so_far = joined([so_far, part])

    assert so_far.total_rows == rows
    assert len(so_far.times_s) <= MOST_POINTS
    assert -mean_s(so_far) == pytest.approx(age_s / rows, abs=1e-4)
    assert math.isclose(quantile_s(so_far, 0.5), NOW_S + 1000, abs_tol=20)
