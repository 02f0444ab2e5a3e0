"""Quantiles that hold: from errors that have been, and from how often they did."""

import numpy as np
import pytest

from springtide.forecast.mixing.calibration import LEVELS, first_levels, moved_levels, scores, stretched


def test_stretching_undoes_scoring() -> None:
    mean, came = np.array([0.1, 0.5, -0.2]), np.array([0.3, 0.5, 1.0])

    np.testing.assert_allclose(stretched(mean, scores(mean, came)), came)


def test_levels_are_raised_by_as_much_as_few_errors_ask_for() -> None:
    """100 errors ten intervals ahead are worth ten: 0.9 becomes 0.9 (1 + 0.7 / 10)."""
    levels = first_levels(np.array([1, 10]), 100)

    assert levels[0, LEVELS.index(0.9)] == pytest.approx(0.9 * (1 + 0.7 / 100))
    assert levels[1, LEVELS.index(0.9)] == pytest.approx(0.9 * (1 + 0.7 / 10))
    assert levels[1, LEVELS.index(0.05)] == pytest.approx(max(0.0005, 0.05 - 0.95 * 0.7 / 10))
    assert levels[1, LEVELS.index(0.5)] == pytest.approx(0.5)


def test_a_level_falls_a_little_when_it_held_and_rises_a_lot_when_it_did_not() -> None:
    """Gibbs and Candès, Eq. (2), with alpha = 0.1: up by 0.9 steps, down by 0.1."""
    at = LEVELS.index(0.9)
    levels = np.array([LEVELS])

    up = moved_levels(levels, np.array([1]), np.zeros((1, len(LEVELS)), bool))[0, at] - 0.9
    down = 0.9 - moved_levels(levels, np.array([1]), np.ones((1, len(LEVELS)), bool))[0, at]

    assert up == pytest.approx(9 * down)


def test_far_ahead_levels_move_slowly() -> None:
    levels, held = np.array([LEVELS, LEVELS]), np.ones((2, len(LEVELS)), bool)

    moved = levels - moved_levels(levels, np.array([1, 100]), held)

    assert moved[0, 4] == pytest.approx(10 * moved[1, 4])


def test_levels_stay_levels() -> None:
    levels = np.array([LEVELS])
    for held in (True, False):
        moved = levels
        for _ in range(10_000):
            moved = moved_levels(moved, np.array([1]), np.full((1, len(LEVELS)), held))
        assert ((moved > 0) & (moved < 1)).all()
