"""A forecast that learns while it runs: what it says of series whose future is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factories import observation
from springtide.forecast.running.online import HORIZON_S, LEVELS, OnlineForecaster, distances_of
from springtide.model.protocols import Forecast

INTERVAL_S = 60.0
STEPS = int(distances_of(INTERVAL_S)[-1])
DAY = 1440


def told(rates: np.ndarray | list[float], forecaster: OnlineForecaster | None = None, first: int = 0) -> Forecast:
    """The forecast after all these rates, one an interval."""
    forecaster = forecaster or OnlineForecaster(INTERVAL_S)
    forecast = None
    for i, rate in enumerate(np.asarray(rates).tolist()):
        forecast = forecaster(observation(index=first + i, interval_s=INTERVAL_S, rows=rate * INTERVAL_S))
    assert forecast is not None
    return forecast


def test_what_never_changes_is_foreseen_with_little_doubt() -> None:
    forecast = told([100.0] * 400)
    assert forecast.mean["source"] == pytest.approx([100.0] * STEPS)
    assert forecast.quantiles["source"].shape == (len(LEVELS), STEPS)
    assert forecast.upper["source"][0] == pytest.approx(100.0, rel=0.02)


def test_a_ramp_is_followed() -> None:
    rates = 100.0 + np.arange(300.0)
    ahead = told(rates).mean["source"]
    assert ahead[7] > rates[-1] + 4  # eight intervals ahead it has risen by 8


def test_the_second_day_is_foreseen_from_the_first() -> None:
    hours = np.arange(2 * DAY) / 60
    rates = np.where((hours % 24 >= 9) & (hours % 24 < 17), 500.0, 100.0)
    before_nine = DAY + 9 * 60 - 10  # ten minutes before it jumps
    forecast = told(rates[:before_nine])
    assert forecast.mean["source"][-1] > 300
    assert told(rates[: 9 * 60 - 10]).mean["source"][-1] < 150  # on the first day nobody could know


def test_as_much_is_above_a_quantile_as_should_be() -> None:
    """Noise that nothing foresees: the quantiles are those of the noise."""
    chance = np.random.default_rng(3)
    rates = 100.0 * np.exp(0.3 * chance.standard_normal(2500))
    forecaster = OnlineForecaster(INTERVAL_S)
    forecast = told(rates[:500], forecaster)
    above = np.zeros(len(LEVELS))
    for i, rate in enumerate(rates[500:].tolist()):
        above += rate > forecast.quantiles["source"][:, 0]
        forecast = told([rate], forecaster, first=500 + i)
    shares = above / 2000
    assert shares == pytest.approx(1 - np.array(LEVELS), abs=0.03)


def test_low_rates_do_not_make_high_ones_uncertain() -> None:
    """At night two rows or twenty, by day a thousand each minute."""
    chance = np.random.default_rng(5)
    night = 10.0 * np.exp(1.0 * chance.standard_normal(DAY // 2))
    day = 1000.0 * np.exp(0.02 * chance.standard_normal(DAY // 2))
    upper = told(np.concatenate([night, day])).upper["source"][0]
    assert upper < 1200


def test_nothing_at_all_is_a_forecast_too() -> None:
    forecast = told([0.0] * 50)
    assert forecast.mean["source"] == pytest.approx([0.0] * STEPS)
    assert forecast.upper["source"].max() == 0.0


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=120))
@settings(max_examples=40, deadline=None)
def test_whatever_comes_forecasts_are_finite_and_in_order(rates: list[float]) -> None:
    forecast = told(rates)
    quantiles = forecast.quantiles["source"]
    assert np.isfinite(quantiles).all()
    assert (quantiles >= 0).all()
    assert (np.diff(quantiles, axis=0) >= -1e-9 * quantiles.max()).all()
    assert np.array_equal(quantiles, told(rates).quantiles["source"])


@pytest.mark.parametrize("interval_s", [1.0, 3.0, 30.0, 600.0])
def test_the_horizon_is_covered_at_any_interval(interval_s: float) -> None:
    steps = int(distances_of(interval_s)[-1])
    forecast = OnlineForecaster(interval_s)(observation(interval_s=interval_s))
    assert steps * interval_s >= HORIZON_S
    assert forecast is not None
    assert forecast.quantiles["source"].shape == (len(LEVELS), steps)


def test_one_burst_is_not_expected_for_ever() -> None:
    """A minute of 180 rows/s among 40 rows/s. After it, another one is as likely as one in all that time is."""
    quiet, burst = [40.0] * 60, [180.0] * 20
    soon, late = (told(quiet + burst + [40.0] * more).quantiles["source"][LEVELS.index(0.95)] for more in (60, 600))
    assert soon[3] < 60
    assert late[15] < 60
    again = told((quiet + burst) * 8 + quiet).quantiles["source"][LEVELS.index(0.95)]
    assert again[31] > 150
