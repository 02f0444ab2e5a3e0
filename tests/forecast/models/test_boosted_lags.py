"""Boosted lags: what they learn of days, levels and missing rates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from synthetic_series import DAY, INTERVAL_S, cut, days, rms, wild_pasts

from springtide.errors import InvalidValue
from springtide.forecast.lagged.boosting import Boosting
from springtide.forecast.models.boosted_lags import BoostedLags
from springtide.model.windows import Windows

QUICK = BoostedLags(boosting=Boosting(trees=30, least_samples=10))


@pytest.fixture(scope="module")
def of_days() -> tuple[BoostedLags, Windows]:
    """A model that has learnt a daily shape, and windows of the days after."""
    train, later = cut(days(24), past=2 * DAY, future=DAY)
    return QUICK.fit(train, later, seed=0), later


def test_a_daily_shape_is_foreseen_nearly_to_the_noise(of_days: tuple[BoostedLags, Windows]) -> None:
    model, later = of_days
    ahead = model.predict(later.past, DAY)
    assert ahead.shape == later.future.shape
    for distance in (1, 7, 12, DAY):
        assert rms(ahead[:, distance - 1] - later.future[:, distance - 1]) < 1.4 * 0.02  # yesterday's own noise comes on top


def test_beyond_what_was_learnt_the_last_distance_speaks(of_days: tuple[BoostedLags, Windows]) -> None:
    model, later = of_days
    assert rms(model.predict(later.past[:50], 2 * DAY)[:20, DAY + 5] - later.future[6:26, DAY - 1]) < 0.2
    assert model.predict(later.past, 3) == pytest.approx(model.predict(later.past, DAY)[:, :3])


def test_a_load_that_has_tripled_is_followed(of_days: tuple[BoostedLags, Windows]) -> None:
    """Nothing of that level was ever learnt, and trees alone would stay at what they know."""
    model, later = of_days
    ahead = model.predict(later.past + 2.0, 12)
    assert rms(ahead[:, 5] - later.future[:, 5] - 2.0) < 2.0 * 0.02


def test_a_threshold_that_no_line_can_follow_is_learnt_by_the_trees() -> None:
    """A rate that is thrown back whenever it comes high: a saw, whose teeth are of different lengths."""
    chance = np.random.default_rng(2)
    rates = np.zeros(2400)
    for t in range(1, len(rates)):
        rates[t] = 0.05 if rates[t - 1] > 0.8 else rates[t - 1] + 0.02 + 0.05 * chance.random()
    train, later = cut(rates, past=30, future=4)
    model = QUICK.fit(train, later, seed=0)
    assert len(model.forest) > 5
    straight = replace(model, forest=model.forest.first(0))
    truth = later.future[:, 0]
    assert rms(model.predict(later.past, 1)[:, 0] - truth) < 0.5 * rms(straight.predict(later.past, 1)[:, 0] - truth)


def test_missing_rates_are_not_learnt() -> None:
    """Where the future is NaN, the past of later windows holds what was made up: here nonsense."""
    rates = days(16)
    train, later = cut(rates, past=DAY, future=6)
    missing = np.zeros(len(rates), bool)
    missing[200:230] = True
    made_up = np.where(missing, 0.5, rates)
    at = train.origins[:, None] + np.arange(1, 7)
    gappy = Windows(
        interval_s=INTERVAL_S,
        origins=train.origins,
        past=made_up[train.origins[:, None] + np.arange(1 - DAY, 1)],
        future=np.where(missing[at], np.nan, rates[at]),
    )
    ahead = QUICK.fit(gappy, later, seed=0).predict(later.past, 6)
    assert rms(ahead[:, 5] - later.future[:, 5]) < 0.05


def test_learning_is_the_same_for_a_seed_and_every_third_window_is_nearly_as_good() -> None:
    train, later = cut(days(16), past=DAY, future=12)
    first, second = QUICK.fit(train, later, seed=7), QUICK.fit(train, later, seed=7)
    assert np.array_equal(first.predict(later.past, 12), second.predict(later.past, 12))
    thinned = QUICK.fit(train.every(3), later, seed=7)
    assert rms(thinned.predict(later.past, 12) - later.future) < 1.1 * rms(first.predict(later.past, 12) - later.future)


def test_twenty_short_windows_are_enough_and_three_are_refused() -> None:
    train, later = cut(days(1)[:40], past=12, future=4, share=0.9)
    model = QUICK.fit(train, later.every(100), seed=0)
    assert np.isfinite(model.predict(wild_pasts(12), 32)).all()
    few, _ = cut(days(1)[:18], past=12, future=4, share=1.0)
    with pytest.raises(InvalidValue, match="too few to learn from: at least 8 are needed"):
        QUICK.fit(few, later, seed=0)


def test_windows_to_judge_by_must_reach_as_far() -> None:
    train, _ = cut(days(4), past=12, future=4)
    _, nearer = cut(days(4), past=12, future=3)
    with pytest.raises(InvalidValue, match="show 4 future rates, and those to judge by 3"):
        QUICK.fit(train, nearer, seed=0)


def test_nothing_breaks_on_wild_pasts(of_days: tuple[BoostedLags, Windows]) -> None:
    model, _ = of_days
    assert np.isfinite(model.predict(wild_pasts(2 * DAY), DAY)).all()


def test_many_series_at_once_are_each_as_alone(of_days: tuple[BoostedLags, Windows]) -> None:
    model, later = of_days
    train, judged = cut(days(12, seed=4), past=2 * DAY, future=6)
    models = [model, QUICK.fit(train, judged, seed=1), replace(model, forest=model.forest.first(3)), model]
    pasts = later.past[::40][:4]
    at_once = BoostedLags.together(models)(pasts, 32)
    for i, alone in enumerate(models):
        assert at_once[i] == pytest.approx(alone.predict(pasts[i : i + 1], 32)[0], abs=1e-9)
