"""What recurrent networks learn: series whose future is known, with gaps, from few windows, and the same each time."""

from __future__ import annotations

import dataclasses
import sys
import threading

import numpy as np
import pytest

from springtide.errors import InvalidValue, SpringtideError
from springtide.forecast.models.bigru import BiGru
from springtide.forecast.models.bilstm import BiLstm
from springtide.forecast.models.gru import Gru
from springtide.forecast.models.last_value import LastValue
from springtide.forecast.models.lstm import Lstm
from springtide.forecast.models.singles import RegisteredModel
from springtide.forecast.recurrent.forecaster import RecurrentForecaster
from springtide.forecast.recurrent.settings import Settings
from springtide.model.windows import Windows, windows_of

HOUR_S = 3600.0
KINDS: tuple[type[RecurrentForecaster], ...] = (Lstm, Gru, BiLstm, BiGru)
QUICK = Settings(updates=80, checks=4, hidden=12, batch=32, recurrent_steps=7, inputs=24, learning_rate=0.03, dropout=0.0)

kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def parts(rates: np.ndarray, *, past: int, future: int, stride: int = 1) -> tuple[Windows, Windows, Windows]:
    """Training, validation and test windows: two thirds, a sixth and a sixth of the series."""
    first, second = len(rates) * 4 // 6, len(rates) * 5 // 6
    cut = [rates[:first], rates[first - past : second], rates[second - past :]]
    train, validation, test = (windows_of(r, interval_s=HOUR_S, past=past, future=future, stride=stride) for r in cut)
    return train, validation, test


def days(count: int, seed: int = 0) -> np.ndarray:
    """Hourly rates: quiet nights, busy days, quieter week-ends, some noise."""
    hours = np.arange(24 * count)
    busy = np.exp(-(((hours % 24) - 14) ** 2) / 18) * np.where(hours // 24 % 7 < 5, 1.0, 0.5)
    return 0.1 + 0.8 * busy + 0.02 * np.random.default_rng(seed).standard_normal(len(hours))


def alternating(count: int, seed: int = 0) -> np.ndarray:
    """Values near 1 or 0. Every third is the exclusive or of the two before, the others are drawn."""
    chance = np.random.default_rng(seed)
    bits = [1, 0, 1]
    while len(bits) < count:
        bits.append(bits[-1] ^ bits[-2] if len(bits) % 3 == 0 else int(chance.integers(2)))
    return np.array(bits, float) + 0.01 * chance.standard_normal(count)


def error(model: RecurrentForecaster | LastValue, windows: Windows) -> float:
    return float(np.sqrt(np.nanmean((model.predict(windows.past, windows.steps) - windows.future) ** 2)))


@kinds
def test_days_and_week_ends_are_foreseen(kind: type[RecurrentForecaster]) -> None:
    train, validation, test = parts(days(60), past=7 * 24, future=24)
    model = kind(settings=QUICK).fit(train, validation, seed=1)
    assert error(model, test) < 0.1
    assert error(LastValue(), test) > 0.3


@kinds
def test_an_exclusive_or_is_learnt(kind: type[RecurrentForecaster]) -> None:
    """No weighted sum of past values foresees it: the error of linear models stays at 0.5."""
    train, validation, test = (w.every(3) for w in parts(alternating(3600), past=9, future=1))
    assert len(train) > 600
    model = kind(settings=dataclasses.replace(QUICK, updates=150)).fit(train, validation, seed=0)
    assert error(model, test) < 0.25


def test_a_level_that_shifts_for_good_is_kept_up_with() -> None:
    rates = days(60)
    train, validation, test = parts(rates, past=2 * 24, future=24)
    model = BiGru(settings=QUICK).fit(train, validation, seed=0)
    shifted = dataclasses.replace(test, past=test.past + 2.0, future=test.future + 2.0)
    assert error(model, shifted) == pytest.approx(error(model, test), rel=0.01)


@kinds
def test_the_same_seed_gives_the_same_network(kind: type[RecurrentForecaster]) -> None:
    """Also while others draw from numpy's global generator and train other networks."""
    train, validation, test = parts(days(30), past=2 * 24, future=6)
    untrained = kind(settings=dataclasses.replace(QUICK, updates=8))
    first = untrained.fit(train, validation, seed=3).predict(test.past, 6)
    stop = threading.Event()

    def disturb() -> None:
        while not stop.wait(0.001):
            np.random.random(100)  # noqa: NPY002 - the generator that everybody shares
            untrained.fit(train, validation, seed=5)

    other = threading.Thread(target=disturb)
    other.start()
    try:
        again = untrained.fit(train, validation, seed=3).predict(test.past, 6)
    finally:
        stop.set()
        other.join()
    assert np.array_equal(first, again)
    assert not np.array_equal(first, untrained.fit(train, validation, seed=4).predict(test.past, 6))


def test_what_was_missing_is_never_learnt() -> None:
    """A third of the future rates is unknown, whole windows among them. Made-up rates in their place would mislead."""
    train, validation, test = parts(days(30), past=2 * 24, future=6)
    holes = np.random.default_rng(5).random(train.future.shape) < 0.3
    holes[::7] = True
    unknown, made_up = (dataclasses.replace(train, future=np.where(holes, rate, train.future)) for rate in (np.nan, 5.0))
    without, whole, misled = (Gru(settings=QUICK).fit(part, validation, seed=0) for part in (unknown, train, made_up))
    assert error(without, test) < 1.2 * error(whole, test)
    assert error(misled, test) > 5 * error(whole, test)


@kinds
@pytest.mark.parametrize("stride", [1, 5])
def test_few_and_short_windows_suffice(kind: type[RecurrentForecaster], stride: int) -> None:
    rates = 0.5 + 0.4 * np.sin(np.arange(12 + 3 + 19 * stride) / 2)
    windows = windows_of(rates, interval_s=60.0, past=12, future=3, stride=stride)
    assert len(windows) == 20
    model = kind(settings=dataclasses.replace(QUICK, updates=30)).fit(windows, windows, seed=0)
    assert model.predict(windows.past, 5).shape == (20, 5)
    assert error(model, windows) < 0.5 * error(LastValue(), windows)


def test_windows_in_which_nothing_changes_are_continued_so() -> None:
    windows = windows_of(np.full(60, 0.5), interval_s=60.0, past=12, future=3)
    assert Lstm(settings=QUICK).fit(windows, windows, seed=0).predict(windows.past, 3) == pytest.approx(0.5, abs=0.05)


def test_without_anything_known_there_is_nothing_to_learn() -> None:
    windows = windows_of(days(10), interval_s=HOUR_S, past=24, future=4)
    unknown = dataclasses.replace(windows, future=np.full_like(windows.future, np.nan))
    with pytest.raises(InvalidValue, match=r"^validation: 213 windows with 0 known future rates, and at least one is needed$"):
        Gru().fit(windows, unknown, seed=0)
    with pytest.raises(InvalidValue, match=r"^training: 213 windows"):
        Gru().fit(unknown, windows, seed=0)


def test_validation_windows_of_other_lengths_are_refused() -> None:
    train = windows_of(days(10), interval_s=HOUR_S, past=24, future=4)
    validation = windows_of(days(10), interval_s=HOUR_S, past=24, future=5)
    with pytest.raises(InvalidValue, match="they must be alike"):
        Gru().fit(train, validation, seed=0)


def test_a_hundred_series_are_predicted_together_as_each_alone() -> None:
    train, validation, test = parts(days(20), past=2 * 24, future=6)
    models = [
        BiGru(settings=dataclasses.replace(QUICK, hidden=h, updates=2)).fit(train, validation, seed=h) for h in (4, 8, 8, 5)
    ]
    models, pasts = models * 25, np.repeat(test.past[:50], 2, axis=0)[:100]
    found = BiGru.together(models)(pasts, 9)
    for i in range(100):
        assert found[i] == pytest.approx(models[i].predict(pasts[i : i + 1], 9)[0], abs=1e-6)


@pytest.mark.parametrize("missing", ["jax", "optax"])
def test_without_its_libraries_learning_says_what_to_install(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = windows_of(days(10), interval_s=HOUR_S, past=24, future=4)
    monkeypatch.delitem(sys.modules, "springtide.forecast.recurrent.training", raising=False)
    monkeypatch.delattr("springtide.forecast.recurrent.training", raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SpringtideError, match=r"^training bilstm needs jax and optax: pip install 'springtide\[neural\]'$"):
        BiLstm().fit(windows, windows, seed=0)


@kinds
def test_each_kind_has_what_the_registry_asks_for(kind: type[RecurrentForecaster]) -> None:
    model: type[RegisteredModel] = kind
    assert model.name == kind.__name__.lower()
    assert "BGElasor" in model.reference
    assert model.summary
