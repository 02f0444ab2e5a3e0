"""Trained models in use: when they are listened to, when they are not, and what is said then."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from trained_models import INTERVAL_S, PAST_DAYS, day_cycle, mixture, observation, trained_folder

from springtide.forecast.models.yesterday import Yesterday
from springtide.forecast.running.choosing import Models, forecast_for
from springtide.forecast.running.online import OnlineForecaster
from springtide.forecast.running.serving import Served, ServedForecaster, served
from springtide.forecast.trained import open_trained, weights_file
from springtide.model.protocols import Forecast
from springtide.plan.policies.static import Static
from springtide.plan.policies.tide import Tide

SOURCE = "clicks"
ENOUGH = PAST_DAYS * 24 + 3


def run(forecaster: ServedForecaster, rates: np.ndarray) -> list[Forecast]:
    told = []
    for index, rate in enumerate(rates):
        forecast = forecaster(observation(index, {SOURCE: rate}))
        assert forecast is not None
        told.append(forecast)
    return told


@pytest.fixture
def one_model(tmp_path: Path) -> list[Served]:
    found, missing = served(open_trained(trained_folder(tmp_path / "models", [SOURCE])), [SOURCE])
    assert missing == {}
    return found


def test_a_model_that_knows_the_day_takes_over_once_it_has_seen_enough(one_model: list[Served]) -> None:
    forecaster = ServedForecaster(INTERVAL_S)
    forecaster.use(one_model, {})

    told = run(forecaster, day_cycle(6, noise=0.2))

    assert told[0].note == "the trained model is not used: it needs 48 h of past rates, and has 1 h"
    assert told[0].model == "online"
    assert [one.model for one in told[96:]].count("auto") > 36
    assert all(bool(one.note) == (one.model == "online") for one in told)


def test_with_it_the_hours_ahead_are_foreseen_better(one_model: list[Served]) -> None:
    rates = day_cycle(8, noise=0.1)
    with_models = ServedForecaster(INTERVAL_S)
    with_models.use(one_model, {})
    alone = OnlineForecaster(INTERVAL_S)

    ours = run(with_models, rates)
    theirs = [alone(observation(i, {SOURCE: rate})) for i, rate in enumerate(rates)]

    def error(told: list[Forecast], ahead: int = 8) -> float:
        return float(np.mean([abs(told[i].mean[SOURCE][ahead - 1] - rates[i + ahead]) for i in range(100, len(rates) - ahead)]))

    assert error(ours) < 0.9 * error([one for one in theirs if one is not None])


def test_a_run_that_goes_on_where_the_data_ended_has_its_past_at_once(tmp_path: Path) -> None:
    trained = open_trained(trained_folder(tmp_path / "models", [SOURCE]))
    end = datetime.fromisoformat(trained.series[0].end)

    found, _ = served(trained, [SOURCE], end)
    later, _ = served(trained, [SOURCE], end + timedelta(days=1))

    forecaster = ServedForecaster(INTERVAL_S)
    forecaster.use(found, {})
    assert "past rates" not in run(forecaster, day_cycle(1)[:3])[-1].note
    assert later[0].recent_per_s.size == 0


def test_a_source_without_a_model_is_named(tmp_path: Path) -> None:
    trained = open_trained(trained_folder(tmp_path / "models", ["a", "b"]))

    found, missing = served(trained, ["a", "clicks"])

    assert [one.source for one in found] == ["a"]
    assert "has no model of 'clicks'" in missing["clicks"]


def test_the_only_model_serves_the_only_source_whatever_its_name(tmp_path: Path) -> None:
    trained = open_trained(trained_folder(tmp_path / "models", ["bgelasor_periodic"]))

    assert [one.source for one in served(trained, ["clicks"])[0]] == ["clicks"]


def test_a_model_of_a_journal_serves_the_source_of_its_name(tmp_path: Path) -> None:
    trained = open_trained(trained_folder(tmp_path / "models", ["operator:count", "source:clicks"]))

    assert [one.series.name for one in served(trained, ["clicks"])[0]] == ["source:clicks"]


def test_a_damaged_weights_file_leaves_the_run_going(tmp_path: Path) -> None:
    folder = trained_folder(tmp_path / "models", [SOURCE])
    file = weights_file(folder, SOURCE, "auto", 0)
    file.write_bytes(file.read_bytes()[:100])

    found, missing = served(open_trained(folder), [SOURCE])
    forecaster = ServedForecaster(INTERVAL_S)
    forecaster.use(found, missing)

    (told,) = run(forecaster, day_cycle(1)[:1])
    assert "is damaged" in told.note
    assert "\n" not in told.note
    assert np.isfinite(told.mean[SOURCE]).all()


def test_a_model_that_is_too_old_is_silent(one_model: list[Served]) -> None:
    forecaster = ServedForecaster(INTERVAL_S, oldest_s=3 * 86_400)
    forecaster.use(one_model, {}, age_s=2.5 * 86_400)

    told = run(forecaster, day_cycle(4))

    assert told[-1].note == "the trained model is not used: it is 6.5 d old, and 3 d are the most"
    assert told[-1].model == "online"


def test_a_model_that_is_worse_than_the_last_value_is_not_used(one_model: list[Served]) -> None:
    wrong = [replace(one, auto=mixture(lag=11)) for one in one_model]  # it takes every hour for another
    forecaster = ServedForecaster(INTERVAL_S)
    forecaster.use(wrong, {})

    told = run(forecaster, day_cycle(6))

    assert told[-1].model == "online"
    assert "worse than the last value lately" in told[-1].note or "a simpler one has been better" in told[-1].note


def test_new_models_go_on_with_what_was_seen(one_model: list[Served]) -> None:
    forecaster = ServedForecaster(INTERVAL_S)
    forecaster.use(one_model, {})
    run(forecaster, day_cycle(3))

    forecaster.use(one_model, {})
    forecast = forecaster(observation(72, {SOURCE: 100.0}))

    assert forecast is not None
    assert "past rates" not in forecast.note


def test_intervals_of_models_may_be_longer_or_shorter_than_those_of_decisions(one_model: list[Served]) -> None:
    rates = day_cycle(4)
    quick, slow = ServedForecaster(INTERVAL_S / 6), ServedForecaster(2 * INTERVAL_S)
    quick.use(one_model, {})
    slow.use(one_model, {})

    for index, rate in enumerate(np.repeat(rates, 6)):
        soon = quick(observation(index, {SOURCE: rate}, interval_s=INTERVAL_S / 6))
    for index, rate in enumerate(rates.reshape(-1, 2).mean(axis=1)):
        late = slow(observation(index, {SOURCE: rate}, interval_s=2 * INTERVAL_S))

    assert soon is not None
    assert late is not None
    assert "past rates" not in soon.note + late.note


def test_of_very_many_sources_some_predict_with_each_decision_and_what_the_others_said_still_holds(
    one_model: list[Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    predicted: list[int] = []
    together = Yesterday.together

    def counted(models: Sequence[Yesterday]) -> Callable[[np.ndarray, int], np.ndarray]:
        predict = together(models)
        return lambda pasts, steps: (predicted.append(len(pasts)), predict(pasts, steps))[1]

    monkeypatch.setattr(Yesterday, "together", staticmethod(counted))
    names = [f"clicks-{i}" for i in range(500)]
    forecaster = ServedForecaster(INTERVAL_S)
    forecaster.use([replace(one_model[0], source=name, recent_per_s=day_cycle(PAST_DAYS)) for name in names], {})
    told = []
    for index, rate in enumerate(day_cycle(2)):
        told.append(forecaster(observation(index, dict.fromkeys(names, rate))))

    assert max(predicted) <= 200
    assert len(predicted) == 48  # once with each decision
    newest = told[-1]
    assert newest is not None
    assert (newest.model, newest.note) == ("auto", "")
    came = day_cycle(3)[48:56]
    for name in names[::50]:  # of every group, whether it has just predicted or some hours ago; an hour changes up to 21
        np.testing.assert_allclose(newest.mean[name][[0, 1, 3, 7]], came[[0, 1, 3, 7]], atol=1.0)


def test_only_a_policy_that_looks_ahead_gets_models(tmp_path: Path) -> None:
    models = Models(folder=trained_folder(tmp_path / "models", [SOURCE]))

    with forecast_for(Static(), INTERVAL_S, models=models, sources=[SOURCE]) as forecast:
        assert forecast(observation(0, {SOURCE: 1.0})) is None
    with forecast_for(Tide(), INTERVAL_S, models=models, sources=[SOURCE], begins=datetime(2000, 1, 1, tzinfo=UTC)) as forecast:
        assert isinstance(forecast, ServedForecaster)
