"""What every forecasting model must do: the same suite over all of them."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from springtide.errors import SpringtideError
from springtide.forecast.models.arima import Arima
from springtide.forecast.models.last_value import LastValue
from springtide.forecast.models.registry import make_model, models
from springtide.forecast.models.singles import RegisteredModel
from springtide.forecast.models.yesterday import Yesterday
from springtide.forecast.recurrent.forecaster import RecurrentForecaster
from springtide.forecast.recurrent.settings import Settings
from springtide.forecast.storage import decoded, encoded
from springtide.model.windows import Windows, windows_of

DAY = 24
PAST, FUTURE = 7 * DAY, 12
ALL = sorted(models())

# Small ones, which learn in a second.
TINY = Settings(hidden=8, recurrent_steps=7, updates=120, checks=3, learning_rate=0.03, dropout=0.0)
FEW = (LastValue, Yesterday, Arima)


@pytest.fixture(autouse=True)
def _mixtures_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("springtide.forecast.models.auto.SINGLES", FEW)


def fresh(name: str, updates: int = 15) -> RegisteredModel:
    """The model, which has learnt nothing yet; a network will not learn much."""
    model = make_model(name)
    return replace(model, settings=replace(TINY, updates=updates)) if isinstance(model, RecurrentForecaster) else model


def rates(days: int = 40, seed: int = 0) -> np.ndarray:
    """A day cycle with noise, in intervals of an hour, scaled."""
    rng = np.random.default_rng(seed)
    return 0.5 + 0.35 * np.sin(np.arange(days * DAY) * 2 * np.pi / DAY) + 0.05 * rng.normal(size=days * DAY)


@cache
def windows() -> tuple[Windows, Windows]:
    series = rates()
    train = windows_of(series[: 30 * DAY], interval_s=3600.0, past=PAST, future=FUTURE)
    validation = windows_of(series[30 * DAY - PAST :], interval_s=3600.0, past=PAST, future=FUTURE)
    return train, validation


@cache
def learnt(name: str) -> RegisteredModel:
    return fresh(name, updates=120).fit(*windows(), 0)


@pytest.mark.parametrize("name", ALL)
def test_it_tells_who_it_is_and_where_it_comes_from(name: str) -> None:
    model = models()[name]

    assert model.name == name
    assert model.summary
    assert model.reference


@pytest.mark.parametrize("name", ALL)
def test_it_continues_every_row(name: str) -> None:
    past = windows()[1].past[:5]

    said = learnt(name).predict(past, FUTURE)

    assert said.shape == (5, FUTURE)
    np.testing.assert_allclose(learnt(name).predict(past[2:3], FUTURE)[0], said[2], atol=1e-6)
    np.testing.assert_allclose(learnt(name).predict(past, 3), said[:, :3], atol=1e-6)


@pytest.mark.parametrize("name", [name for name in ALL if name != "last-value"])
def test_it_knows_a_day_better_than_the_last_value_does(name: str) -> None:
    _, validation = windows()

    def rmse(model: RegisteredModel) -> float:
        return float(np.sqrt(np.mean((model.predict(validation.past, FUTURE) - validation.future) ** 2)))

    assert rmse(learnt(name)) < 0.5 * rmse(make_model("last-value"))


@pytest.mark.parametrize("name", ALL)
def test_it_learns_the_same_from_the_same(name: str) -> None:
    train, validation = windows()
    few = train.every(4)

    one, two = (fresh(name).fit(few, validation, 7).predict(validation.past[:3], FUTURE) for _ in range(2))

    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("name", ALL)
def test_it_is_the_same_after_it_was_stored(name: str) -> None:
    past = windows()[1].past[:4]

    again = decoded(encoded(learnt(name)), "memory")

    assert type(again) is type(learnt(name))
    np.testing.assert_array_equal(again.predict(past, FUTURE), learnt(name).predict(past, FUTURE))


@pytest.mark.parametrize("name", ALL)
def test_many_series_together_are_as_each_alone(name: str) -> None:
    train, validation = windows()
    other = fresh(name).fit(train.every(3), validation, 1)
    both = [learnt(name), other, learnt(name)]

    said = type(learnt(name)).together(both)(validation.past[:3], FUTURE)

    for model, past, row in zip(both, validation.past, said, strict=False):
        np.testing.assert_allclose(row, model.predict(past[None], FUTURE)[0], atol=1e-5)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "past",
    [np.zeros(PAST), np.ones(PAST), np.full(PAST, 100.0), np.r_[np.zeros(PAST - 1), 1e3]],
    ids=["0", "1", "100", "spike"],
)
def test_whatever_it_sees_it_says_a_number(name: str, past: np.ndarray) -> None:
    assert np.isfinite(learnt(name).predict(past[None], FUTURE)).all()


@pytest.mark.parametrize("name", ALL)
def test_rates_that_were_made_up_are_not_learnt_from(name: str) -> None:
    train, validation = windows()
    hidden = np.random.default_rng(3).random(train.future.shape) < 0.2

    def with_future(future: np.ndarray) -> Windows:
        return Windows(interval_s=3600.0, origins=train.origins, past=train.past, future=future)

    said = fresh(name).fit(with_future(np.where(hidden, np.nan, train.future)), validation, 0).predict(validation.past, FUTURE)

    assert np.isfinite(said).all()


@pytest.mark.parametrize("name", ALL)
def test_too_few_windows_are_learnt_from_or_refused_in_one_line(name: str) -> None:
    tiny = windows_of(rates(2)[:30], interval_s=3600.0, past=12, future=4, stride=5)

    try:
        model = fresh(name).fit(tiny, tiny, 0)
    except SpringtideError as error:
        refused = str(error)
    else:
        refused = None
        assert np.isfinite(model.predict(tiny.past, 4)).all()
    assert refused is None or (refused and "\n" not in refused)


def test_a_model_that_is_not_there_is_refused() -> None:
    with pytest.raises(SpringtideError, match="did you mean 'bigru'"):
        make_model("biguru")
