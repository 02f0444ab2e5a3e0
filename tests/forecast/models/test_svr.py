"""Support vector regression: it says what the library that fitted it says, and learns what can be learnt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.svm import SVR
from synthetic_series import DAY, cut, days, rms, wild_pasts

from springtide.errors import InvalidValue
from springtide.forecast.models.svr import Svr
from springtide.model.windows import Windows

QUICK = Svr(samples=500, penalties=(10.0,), widths=(0.1,))


@pytest.fixture(scope="module")
def of_days() -> tuple[Svr, Windows]:
    """A model that has learnt a daily shape, and windows of the days after."""
    train, later = cut(days(20), past=2 * DAY, future=DAY)
    return QUICK.fit(train, later, seed=0), later


def test_a_daily_shape_is_foreseen(of_days: tuple[Svr, Windows]) -> None:
    model, later = of_days
    ahead = model.predict(later.past, DAY)
    for distance in (1, 12, DAY):
        assert rms(ahead[:, distance - 1] - later.future[:, distance - 1]) < 2.0 * 0.02


def test_it_says_what_scikit_learn_says(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: list[tuple[Any, np.ndarray, np.ndarray]] = []
    fit = SVR.fit

    def watched(machine: Any, features: np.ndarray, values: np.ndarray) -> Any:
        fitted.append((machine, features, values))
        return fit(machine, features, values)

    monkeypatch.setattr(SVR, "fit", watched)
    train, later = cut(days(10), past=20, future=6)  # no day in sight, so that nothing but the kernels adds up
    model = QUICK.fit(train, later, seed=0)
    ((machine, _, _),) = fitted
    features = model.lags.of(later.past, np.full((len(later), 1), 3))[:, 0]
    deviation = np.abs(model.coefficients).max() / np.abs(machine.dual_coef_).max()
    logged = features.copy()
    logged[:, model.lags.of_distance] = np.log(3.0)
    theirs = later.past[:, -1] + deviation * machine.predict((logged - model.centre) * model.per)
    assert model.predict(later.past, 3)[:, 2] == pytest.approx(theirs, abs=1e-9)


def test_a_higher_level_is_followed(of_days: tuple[Svr, Windows]) -> None:
    model, later = of_days
    ahead = model.predict(later.past + 0.1, 6)
    assert rms(ahead[:, 3] - later.future[:, 3] - 0.1) < 0.08


def test_learning_is_the_same_for_a_seed_and_another_for_another() -> None:
    train, later = cut(days(16), past=DAY, future=6)
    first, second, other = (QUICK.fit(train, later, seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(first.predict(later.past, 6), second.predict(later.past, 6))
    assert not np.array_equal(first.predict(later.past, 6), other.predict(later.past, 6))


def test_no_more_is_learnt_from_than_was_allowed(of_days: tuple[Svr, Windows]) -> None:
    assert 0 < len(of_days[0].vectors) <= 500


def test_twenty_short_windows_are_enough_and_three_are_refused() -> None:
    train, later = cut(days(1)[:40], past=12, future=4, share=0.9)
    assert np.isfinite(QUICK.fit(train, later, seed=0).predict(wild_pasts(12), 32)).all()
    few, _ = cut(days(1)[:18], past=12, future=4, share=1.0)
    with pytest.raises(InvalidValue, match="too few to learn from: at least 8 are needed"):
        QUICK.fit(few, later, seed=0)


def test_nothing_breaks_on_wild_pasts_and_far_away_nothing_is_claimed(of_days: tuple[Svr, Windows]) -> None:
    model, _ = of_days
    assert np.isfinite(model.predict(wild_pasts(2 * DAY), DAY)).all()


def test_many_series_at_once_are_each_as_alone(of_days: tuple[Svr, Windows]) -> None:
    model, later = of_days
    train, judged = cut(days(8, seed=4), past=2 * DAY, future=6)
    models = [model, QUICK.fit(train, judged, seed=1), model]
    pasts = later.past[::40][:3]
    at_once = Svr.together(models)(pasts, 32)
    for i, alone in enumerate(models):
        assert at_once[i] == pytest.approx(alone.predict(pasts[i : i + 1], 32)[0], abs=1e-9)
