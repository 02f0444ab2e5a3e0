"""ARIMA: by hand, against statsmodels, and on processes whose order is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.tsa.arima.model import ARIMA
from synthetic_series import DAY, arma, cut, days, rms, wild_pasts

from springtide.errors import InvalidValue
from springtide.forecast.arima.estimates import Order, least_squares, most_likely
from springtide.forecast.arima.orders import differences_needed, fitted, searched
from springtide.forecast.arima.process import Arma, coefficients, partials, shocks
from springtide.forecast.models.arima import Arima


def model(differences: int = 0, mean: float = 0.0, phi: tuple[float, ...] = (), theta: tuple[float, ...] = ()) -> Arima:
    return Arima(process=Arma(differences=differences, mean=mean, phi=np.array(phi), theta=np.array(theta)))


def test_an_autoregression_of_order_1_by_hand() -> None:
    """It is at 4, its mean 2, and half of the way back remains after each step."""
    ahead = model(mean=2.0, phi=(0.5,)).predict(np.array([[2.0, 2.0, 4.0]]), 3)
    assert ahead.tolist() == [[3.0, 2.5, 2.25]]


def test_a_moving_average_remembers_one_shock_for_one_step() -> None:
    past = np.r_[np.full(40, 1.0), 2.0]
    assert model(mean=1.0, theta=(0.4,)).predict(past[None], 3)[0] == pytest.approx([1.4, 1.0, 1.0])


def test_a_walk_with_a_drift_goes_on_from_where_it_is() -> None:
    past = np.array([[0.1, 0.5, 0.3]])
    assert model(differences=1, mean=0.1).predict(past, 3)[0] == pytest.approx([0.4, 0.5, 0.6])


def test_a_series_differenced_twice_keeps_its_slope() -> None:
    assert model(differences=2).predict(np.array([[1.0, 2.0, 4.0]]), 3)[0] == pytest.approx([6.0, 8.0, 10.0])


@pytest.mark.parametrize(
    ("phi", "differences", "theta", "mean"),
    [
        ((0.7,), 0, (), 0.4),
        ((0.5, 0.3), 0, (0.6,), -1.0),
        ((), 0, (0.4, -0.3), 0.2),
        ((0.6,), 1, (-0.8,), 0.05),
        ((1.2, -0.5), 1, (0.3, 0.2, 0.1), 0.0),
        ((0.4,), 2, (-0.9,), 0.0),
    ],
)
def test_it_forecasts_what_statsmodels_does(
    phi: tuple[float, ...], differences: int, theta: tuple[float, ...], mean: float
) -> None:
    rates = arma(list(phi), list(theta), 400) * 0.1 + mean
    for _ in range(differences):
        rates = np.cumsum(rates)
    trend = {0: "c", 1: "t", 2: "n"}[differences]
    theirs = ARIMA(rates, order=(len(phi), differences, len(theta)), trend=trend)
    known = theirs.smooth([*([mean] if trend != "n" else []), *phi, *theta, 0.01])
    ours = model(differences, mean if trend != "n" else 0.0, phi, theta).predict(rates[None], 24)[0]
    assert ours == pytest.approx(known.forecast(24), abs=1e-3)


def test_the_order_and_coefficients_of_an_autoregression_are_found() -> None:
    process = fitted(0.01 * arma([0.5, 0.3], [], 1500, seed=6) + 0.4, past=100)
    assert (process.differences, len(process.theta)) == (0, 0)
    assert process.phi == pytest.approx([0.5, 0.3], abs=0.05)
    assert process.mean == pytest.approx(0.4, abs=0.01)


def test_whatever_order_is_found_it_forecasts_nearly_as_well_as_the_process_itself() -> None:
    rates = arma([0.6], [0.5], 1600)
    train, later = cut(rates, past=60, future=4)
    found, known = Arima().fit(train, later, seed=0), model(phi=(0.6,), theta=(0.5,))
    for h in (0, 3):
        error = rms(found.predict(later.past, 4)[:, h] - later.future[:, h])
        assert error < 1.02 * rms(known.predict(later.past, 4)[:, h] - later.future[:, h])


def test_a_walk_is_differenced_once_and_a_stationary_series_not_at_all() -> None:
    steps = arma([0.5], [], 2000)
    assert differences_needed(steps) == 0
    assert differences_needed(np.cumsum(steps)) == 1
    assert differences_needed(np.full(100, 0.3)) == 0


def test_the_search_ends_no_worse_than_where_it_began() -> None:
    values = arma([1.3, -0.6], [0.4], 1500)
    found = {(c.order.p, c.order.q): c.aicc for c in searched(values, 0) if c.order.has_mean}
    best = min(found, key=lambda order: found[order])
    assert best[0] >= 2
    assert found[best] <= min(found[start] for start in ((2, 2), (0, 0), (1, 0), (0, 1)))
    assert all(0 <= p <= 5 and 0 <= q <= 5 for p, q in found)


def test_the_most_likely_coefficients_leave_hardly_more_than_the_least_squares() -> None:
    values = arma([0.8], [-0.4], 800)
    order = Order(p=1, differences=0, q=1, has_mean=False)
    least = least_squares(values, order)
    likely = most_likely(values, order, least)
    assert likely is not None
    assert rms(shocks(values, least)) <= rms(shocks(values, likely)) <= 1.001 * rms(shocks(values, least))


@given(st.lists(st.floats(-0.95, 0.95), max_size=5))
def test_partial_autocorrelations_make_stationary_coefficients_and_come_back(given_partials: list[float]) -> None:
    known = np.array(given_partials)
    phi = coefficients(known)
    assert Arma(phi=phi).nearest_root > 1.0
    assert partials(phi) == pytest.approx(known, abs=1e-6)


def test_learning_is_the_same_every_time_and_beats_the_last_rate() -> None:
    train, later = cut(0.1 * arma([0.7], [], 600), past=DAY, future=12)
    first, second = Arima().fit(train, later, seed=1), Arima().fit(train, later, seed=2)
    assert first.process.phi.tolist() == second.process.phi.tolist()
    ahead = first.predict(later.past, 12)
    assert rms(ahead[:, 3] - later.future[:, 3]) < 0.9 * rms(later.past[:, -1] - later.future[:, 3])


def test_a_constant_series_goes_on() -> None:
    train, later = cut(np.full(200, 0.5), past=12, future=4)
    assert Arima().fit(train, later, seed=0).predict(later.past, 4) == pytest.approx(np.full((len(later), 4), 0.5))


def test_twenty_short_windows_are_enough_and_a_handful_of_rates_is_refused() -> None:
    train, later = cut(days(1)[:40], past=12, future=2, share=1.0)
    learnt = Arima().fit(train.every(2), later, seed=0)
    assert np.isfinite(learnt.predict(wild_pasts(12), 32)).all()
    few, later = cut(np.arange(14.0) / 14, past=6, future=2, share=1.0)
    with pytest.raises(InvalidValue, match="needs 24 rates to learn from, and there are 14"):
        Arima().fit(few, later, seed=0)


def test_shocks_that_outlast_a_short_past_are_not_built_upon() -> None:
    """The differences of noise remember every shock for ever, and twelve rates do not show them."""
    steps = np.diff(np.random.default_rng(1).standard_normal(600))
    assert max(candidate.process.remembered(12) for candidate in searched(steps, 0)) > 0.5
    assert fitted(steps, past=12).remembered(12) <= 0.05


def test_an_exploding_series_still_gives_a_model_that_does_not_explode() -> None:
    growing = 1.02 ** np.arange(300.0)
    process = fitted(growing / growing.max(), past=60)
    assert process.nearest_root >= 1.0
    assert np.abs(Arima(process=process).predict(wild_pasts(60), 500)).max() < 1e6


def test_many_series_at_once_are_each_as_alone() -> None:
    chance = np.random.default_rng(0)
    models = [model(phi=(0.5,), mean=0.3), model(1, 0.0, (0.4, 0.2), (0.3,)), model(2), model(theta=(0.9, 0.1, 0.05))]
    pasts = chance.random((4, 200))
    at_once = Arima.together(models)(pasts, 32)
    for i, alone in enumerate(models):
        assert at_once[i] == pytest.approx(alone.predict(pasts[i : i + 1], 32)[0], abs=1e-9)
