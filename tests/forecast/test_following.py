"""Mixtures in use: they follow what comes, they do not look ahead, and series do not disturb one another."""

import numpy as np
import pytest

from springtide.forecast.mixing.calibration import LEVELS
from springtide.forecast.mixing.distances import distances_to
from springtide.forecast.mixing.following import Beginning, Following, Foreseen
from springtide.forecast.models.auto import _beginning

STEPS = 4
NINETY = LEVELS.index(0.9)


def beginning(seed: int, *, good: int, errors: int = 300) -> Beginning:
    """Two members, of which one was good on the validation part: its errors were a tenth."""
    rng = np.random.default_rng(seed)
    distances = distances_to(STEPS)
    came = np.zeros((errors, len(distances)))
    said = rng.normal(size=(errors, len(distances), 2))
    said[:, :, good] *= 0.1
    return _beginning(distances, said, came)


def follow(following: Following, rates: np.ndarray, said: np.ndarray) -> list[Foreseen]:
    """`rates[interval, series]` come, and members say `said[interval, series, member]` at every distance."""
    told = []
    for index, (came, one) in enumerate(zip(rates, said, strict=True)):
        following.came(index, came)
        told.append(following.says(np.repeat(one[:, :, None], STEPS, axis=2)))
    return told


def test_at_first_the_member_that_was_good_is_believed() -> None:
    following = Following([beginning(1, good=1)], STEPS)

    (foreseen,) = follow(following, np.zeros((1, 1)), np.array([[[5.0, 1.0]]]))

    assert foreseen.mean[0] == pytest.approx(np.ones(STEPS), abs=0.2)


def test_a_member_that_turns_bad_is_believed_less_and_less() -> None:
    following = Following([beginning(1, good=1)], STEPS)
    rates = np.zeros((1500, 1))
    said = np.tile([[[0.1, 1.0]]], (1500, 1, 1))  # the good one is now off by ten times as much

    told = follow(following, rates, said)

    assert told[0].mean[0, 0] > 0.8
    assert abs(told[-1].mean[0, 0]) < 0.25


def test_quantiles_hold_as_often_as_they_say_though_errors_grow() -> None:
    rng = np.random.default_rng(5)
    following = Following([beginning(5, good=0)], STEPS)
    rates = rng.normal(scale=0.4, size=(3000, 1))  # four times what the good member's errors were

    told = follow(following, rates, np.zeros((3000, 1, 2)))

    held = [rates[i + 1, 0] <= told[i].quantiles[0, NINETY, 0] for i in range(500, 2999)]
    assert np.mean(held) == pytest.approx(0.9, abs=0.03)


def test_quantiles_never_cross() -> None:
    rng = np.random.default_rng(6)
    told = follow(Following([beginning(6, good=0)], STEPS), rng.normal(size=(300, 1)), rng.normal(size=(300, 1, 2)))

    assert all((np.diff(foreseen.quantiles[0], axis=0) >= 0).all() for foreseen in told)


def test_what_has_not_come_changes_nothing() -> None:
    rng = np.random.default_rng(7)
    rates, said = rng.normal(size=(200, 1)), rng.normal(size=(200, 1, 2))
    other = rates.copy()
    other[150:] = 100.0

    one = follow(Following([beginning(7, good=0)], STEPS), rates, said)
    two = follow(Following([beginning(7, good=0)], STEPS), other, said)

    for a, b in zip(one[:150], two[:150], strict=True):
        np.testing.assert_array_equal(a.quantiles, b.quantiles)


def test_series_are_followed_together_as_they_are_alone() -> None:
    rng = np.random.default_rng(8)
    beginnings = [beginning(seed, good=seed % 2) for seed in range(3)]
    rates, said = rng.normal(size=(100, 3)), rng.normal(size=(100, 3, 2))

    together = follow(Following(beginnings, STEPS), rates, said)

    for s in range(3):
        alone = follow(Following([beginnings[s]], STEPS), rates[:, s : s + 1], said[:, s : s + 1])
        for a, b in zip(together, alone, strict=True):
            np.testing.assert_allclose(a.mean[s], b.mean[0], rtol=1e-10)


def test_a_rate_that_is_not_known_teaches_nothing() -> None:
    taught, untaught = (Following([beginning(9, good=0)], STEPS) for _ in range(2))
    said = np.tile([[[0.3, 0.5]]], (50, 1, 1))

    follow(taught, np.ones((50, 1)), said)
    follow(untaught, np.full((50, 1), np.nan), said)

    (fresh,) = follow(Following([beginning(9, good=0)], STEPS), np.zeros((1, 1)), said[:1])
    (after,) = follow(untaught, np.zeros((1, 1)), said[:1])
    (moved,) = follow(taught, np.zeros((1, 1)), said[:1])
    np.testing.assert_allclose(after.mean, fresh.mean, atol=1e-3)
    assert abs(moved.mean[0, 0] - fresh.mean[0, 0]) > 0.003
