"""Training anew beside a run: it is looked at, never waited for."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from trained_models import trained_folder

from springtide.errors import SpringtideError
from springtide.forecast.running.choosing import Models, forecast_for
from springtide.forecast.running.retraining import Retrained, Retraining
from springtide.plan.policies.tide import Tide

EVERY_S = 100.0


def until(ready: Callable[[], Retrained | None], at_most_s: float = 60.0) -> Retrained:
    end_s = time.monotonic() + at_most_s
    while time.monotonic() < end_s:
        found = ready()
        if found is not None:
            return found
        time.sleep(0.02)
    raise AssertionError("nothing became ready")


def python(script: str) -> list[str]:
    return [sys.executable, "-c", script]


def test_models_are_trained_when_it_is_time_and_loaded_when_they_are_there(tmp_path: Path) -> None:
    made = trained_folder(tmp_path / "made", ["clicks"])
    folder = tmp_path / "models"
    copying = python(f"import shutil; shutil.copytree({str(made)!r}, {str(folder)!r})")
    retraining = Retraining(folder, copying, ["clicks"], EVERY_S)

    assert retraining.look(0.0) is None
    assert retraining.look(EVERY_S - 1) is None
    assert not folder.exists()
    retrained = until(lambda: retraining.look(EVERY_S))

    assert retrained.loaded is not None
    assert [one.source for one in retrained.loaded[0]] == ["clicks"]
    retraining.close()


def test_what_went_wrong_is_told_and_tried_again(tmp_path: Path) -> None:
    failing = python("import sys; sys.exit('springtide: the journal is too short')")
    retraining = Retraining(tmp_path / "models", failing, ["clicks"], EVERY_S)
    retraining.look(0.0)

    first = until(lambda: retraining.look(EVERY_S))
    second = until(lambda: retraining.look(3 * EVERY_S))

    assert first.problem == second.problem == "training anew failed (springtide: the journal is too short)"
    retraining.close()


def test_looking_does_not_wait_and_closing_ends_the_process(tmp_path: Path) -> None:
    retraining = Retraining(tmp_path / "models", python("import time; time.sleep(600)"), ["clicks"], EVERY_S)
    retraining.look(0.0)

    began_s = time.monotonic()
    for at_s in range(100, 200):
        assert retraining.look(float(at_s)) is None
    assert time.monotonic() - began_s < 5

    process = retraining._process
    assert process is not None
    retraining.close()
    assert process.poll() is not None


def test_retraining_needs_a_journal(tmp_path: Path) -> None:
    models = Models(folder=tmp_path / "models", retrain_s=60.0)

    with (
        pytest.raises(SpringtideError, match="name one with --journal"),
        forecast_for(Tide(), 5.0, models=models, sources=["clicks"]),
    ):
        pass


def test_models_that_are_not_there_are_refused_unless_they_are_to_be_trained(tmp_path: Path) -> None:
    with (
        pytest.raises(SpringtideError, match="holds no models"),
        forecast_for(Tide(), 5.0, models=Models(folder=tmp_path), sources=["clicks"]),
    ):
        pass
    with forecast_for(
        Tide(),
        5.0,
        models=Models(folder=tmp_path, retrain_s=60.0),
        sources=["clicks"],
        journal=tmp_path / "journal.jsonl",
    ) as forecast:
        assert callable(forecast)
