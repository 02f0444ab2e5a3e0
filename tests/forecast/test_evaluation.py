"""How models are judged: by the rates that came, on the scale of the training part, without a look ahead."""

from dataclasses import replace

import numpy as np
import pytest

from springtide.forecast.evaluation import followed, judge, judge_from_one_origin
from springtide.forecast.models.auto import Auto
from springtide.forecast.models.last_value import LastValue
from springtide.forecast.models.yesterday import Yesterday
from springtide.model.windows import Scale, Windows, windows_of

SCALE = Scale(low_per_s=0.0, high_per_s=10.0, mean_per_s=5.0, deviation_per_s=2.0)


def noisy_days(days: int, seed: int = 0) -> np.ndarray:
    hours = np.arange(24 * days)
    return 0.5 + 0.3 * np.sin(hours * 2 * np.pi / 24) + 0.05 * np.random.default_rng(seed).normal(size=len(hours))


def hours(rates: np.ndarray) -> Windows:
    return windows_of(rates, interval_s=3600.0, past=48, future=12)


def test_errors_are_in_standard_deviations() -> None:
    """Rates that rise by 0.1 an interval, on a scale on which 1 is five deviations: the last value errs by half of one."""
    windows = hours(np.arange(100) / 10)

    near, far = judge(LastValue(), windows, SCALE, (1, 12))

    assert near.rmse == pytest.approx(0.5)
    assert far.rmse == pytest.approx(6.0)
    assert near.mae == pytest.approx(0.5)
    assert near.rates == len(windows)


def test_rates_that_were_made_up_judge_nobody() -> None:
    windows = hours(np.zeros(100))
    future = windows.future.copy()
    future[10:20] = np.nan
    future[20:30] = 1.0

    (score,) = judge(LastValue(), replace(windows, future=future), SCALE, (1,))

    assert score.rates == len(windows) - 10
    assert score.rmse == pytest.approx(5.0 * np.sqrt(10 / score.rates))


def test_a_single_forecast_of_everything_is_judged_by_everything() -> None:
    score = judge_from_one_origin(LastValue(), hours(np.r_[np.zeros(48), np.ones(52)]), SCALE)

    assert score.distance == 52
    assert score.rmse == pytest.approx(5.0)


def test_a_mixture_is_judged_as_it_is_used() -> None:
    auto = Auto().of([Yesterday(cycle=24)], hours(noisy_days(20)))
    windows = hours(noisy_days(30, seed=1))

    (score,) = judge(auto, windows, SCALE, (12,))

    best = min(judge(model, windows, SCALE, (12,))[0].rmse for model in (LastValue(), Yesterday(cycle=24)))
    assert score.rmse < 1.02 * best
    assert score.coverage == pytest.approx(0.9, abs=0.05)


def test_a_mixture_does_not_see_what_has_not_come() -> None:
    auto = Auto().of([Yesterday(cycle=24)], hours(noisy_days(20)))
    rates = noisy_days(20, seed=2)
    other = rates.copy()
    other[300:] = 3.0

    one, _ = followed(auto, hours(rates), np.array([1, 12]))
    two, _ = followed(auto, hours(other), np.array([1, 12]))

    untouched = 300 - 48
    np.testing.assert_array_equal(one[:untouched], two[:untouched])
    assert not np.array_equal(one[untouched:], two[untouched:])


def test_every_so_many_th_window_is_judged_alike() -> None:
    auto = Auto().of([Yesterday(cycle=24)], hours(noisy_days(20)))
    windows = hours(noisy_days(40, seed=3))

    (some,) = judge(auto, windows.every(3), SCALE, (1,))
    (every,) = judge(auto, windows, SCALE, (1,))

    assert some.rmse == pytest.approx(every.rmse, rel=0.15)
