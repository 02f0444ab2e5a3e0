"""From prepared data to judged models, on Spark: every series and model in a group of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from springtide.errors import SpringtideError
from springtide.forecast.models.auto import Auto
from springtide.forecast.models.registry import make_model
from springtide.forecast.pipeline.evaluating import evaluate
from springtide.forecast.pipeline.options import PrepareOptions
from springtide.forecast.pipeline.prepared import Prepared
from springtide.forecast.pipeline.preparing import prepare
from springtide.forecast.pipeline.stored_windows import read_newest_rates, read_windows
from springtide.forecast.pipeline.training import train
from springtide.forecast.trained import Trained, open_trained
from springtide.workload.traces import Trace
from springtide.workload.written import write_trace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MODELS = ["last-value", "yesterday", "last-week", "arima", "auto"]
HOUR_S = 3600.0


def noisy_days(days: int, seed: int) -> np.ndarray:
    hours = np.arange(24 * days)
    chance = np.random.default_rng(seed).normal(size=len(hours))
    return np.rint(HOUR_S * np.maximum(0.0, 100 + 60 * np.sin(hours * 2 * np.pi / 24) + 8 * chance))


def quietly(*_: object) -> None: ...


@pytest.fixture(scope="module")
def data(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """Two series: sixty days, and five, which have no day to look back."""
    folder = tmp_path_factory.mktemp("data")
    for name, days in (("long", 60), ("short", 5)):
        trace = Trace(name=name, step_s=HOUR_S, counts=noisy_days(days, days), start="2024-03-01T00:00:00+00:00")
        write_trace(trace, folder / f"{name}.parquet")
    return prepare(spark, [folder], folder / "prepared", PrepareOptions(), quietly)


@pytest.fixture(scope="module")
def trained(spark: SparkSession, data: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return train(spark, data, tmp_path_factory.mktemp("trained") / "models", MODELS, progress=quietly)


def test_every_model_of_every_series_is_there_or_says_why_not(trained: Trained) -> None:
    long, short = (trained.named(name) for name in ("long", "short"))

    assert [one.model for one in long.models] == MODELS
    assert all(one.problem is None for one in long.models)
    assert [one.model for one in short.models if one.problem is not None] == ["yesterday", "last-week"]
    assert "7 d of past rates are needed" in (short.models[2].problem or "")


def test_what_is_stored_is_what_learns_from_the_stored_windows(data: Prepared, trained: Trained) -> None:
    learn, validate, test = (read_windows(data.folder, "long", HOUR_S, part) for part in ("train", "validation", "test"))

    here = make_model("arima").fit(learn, validate, 0)

    there = trained.load("long", "arima")
    np.testing.assert_allclose(there.predict(test.past[:5], 12), here.predict(test.past[:5], 12), atol=1e-9)


def test_the_newest_rates_are_kept(data: Prepared, trained: Trained) -> None:
    series = trained.named("long")

    np.testing.assert_allclose(trained.recent("long"), noisy_days(60, 60)[-series.past :] / HOUR_S)
    np.testing.assert_allclose(read_newest_rates(data.folder, "long", 3), noisy_days(60, 60)[-3:] / HOUR_S)


def test_models_are_judged_by_days_they_have_not_seen(spark: SparkSession, data: Prepared, trained: Trained) -> None:
    told: list[tuple[int, int, str]] = []

    judged = evaluate(spark, data, trained, lambda *progress: told.append(progress))

    of = {(one.series, one.model): one for one in judged}
    errors = {name: of["long", name].scores[-1].rmse for name in MODELS}
    assert errors["auto"] < 1.05 * min(errors.values())
    assert errors["yesterday"] < errors["last-value"] * 1.5
    assert 0.8 < (of["long", "auto"].scores[0].coverage or 0) < 0.98
    assert of["long", "arima"].from_one_origin is not None
    assert len(told) == len(judged) == 8
    assert told[-1][:2] == (8, 8)


def test_the_folder_can_be_opened_by_anyone(trained: Trained) -> None:
    again = open_trained(trained.folder)

    assert again.series == trained.series
    assert isinstance(again.load("short", "auto"), Auto)
    assert not list(trained.folder.glob(".*"))


def test_a_folder_with_something_else_in_it_is_left_alone(spark: SparkSession, data: Prepared, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")

    with pytest.raises(SpringtideError, match=r"holds 'thesis.txt' and no models; choose an empty folder"):
        train(spark, data, tmp_path, ["last-value"], progress=quietly)

    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_where_no_model_can_learn_nothing_is_written(spark: SparkSession, data: Prepared, tmp_path: Path) -> None:
    with pytest.raises(SpringtideError, match="no model could learn from any series"):
        train(spark, data.only(["short"]), tmp_path / "models", ["last-week"], progress=quietly)

    assert not (tmp_path / "models").exists()
