"""The commands of `springtide forecast`, as a user calls them."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ran import Ran, assert_refused
from springtide.workload.traces import Trace
from springtide.workload.written import write_trace

Springtide = Callable[..., Ran]


def days(folder: Path, name: str, count: int) -> Path:
    hours = np.arange(24 * count)
    chance = np.random.default_rng(0).normal(size=len(hours))
    counts = 3600 * np.maximum(0.0, 100 + 60 * np.sin(hours * 2 * np.pi / 24) + 5 * chance)
    write_trace(Trace(name=name, step_s=3600.0, counts=counts, start="2024-03-01T00:00:00+00:00"), folder / f"{name}.parquet")
    return folder / f"{name}.parquet"


def test_models_are_listed(springtide: Springtide) -> None:
    told = json.loads(springtide("forecast", "models", "--json").out)

    assert [one["name"] for one in told][:3] == ["last-value", "yesterday", "last-week"]
    assert {"arima", "svr", "lstm", "gru", "bilstm", "bigru", "boosted-lags", "auto"} <= {one["name"] for one in told}


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("forecast", "prepare"), "nothing to prepare"),
        (("forecast", "prepare", "x.csv", "--kind", "event"), "did you mean 'events'"),
        (("forecast", "prepare", "x.csv", "--past", "soon"), "write a time above 0"),
        (("forecast", "prepare", "x.csv", "--workers", "0"), "--workers must be at least 1"),
        (("forecast", "prepare", "generator:stabel"), "there is no generator 'stabel'"),
        (("forecast", "train", "nothing"), "holds no prepared data"),
        (("forecast", "train", "nothing", "--models", "lstn"), "did you mean 'lstm'"),
        (("forecast", "evaluate", "--repetitions", "0"), "--repetitions must be at least 1"),
        (("forecast", "evaluate", "--plot", "errors.txt"), "write to a file that ends in"),
        (("forecast", "predict", "nothing"), "holds no models"),
        (("simulate", "generator:constant", "-p", "tide", "--models", "nothing"), "holds no models"),
        (("run", "examples.py", "--retrain", "1h"), "--retrain trains models into the folder of --models"),
    ],
)
def test_mistakes_are_one_line(springtide: Springtide, arguments: tuple[str, ...], hint: str) -> None:
    assert_refused(springtide(*arguments), hint)


@pytest.fixture
def alone(tmp_path: Path) -> Springtide:
    """Run a command in a process of its own, as it must be when it starts Spark, in an empty folder."""

    def command(*arguments: object) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "springtide", *map(str, arguments)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return command


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.xdist_group("commands")
def test_from_a_file_to_a_prediction_and_a_run(alone: Springtide, tmp_path: Path) -> None:
    file = days(tmp_path, "clicks", 40)

    prepared = alone("forecast", "prepare", file, "--workers", 2, "--json")
    assert prepared.code == 0, prepared.err
    assert json.loads(prepared.out)["series"][0]["name"] == "clicks"

    trained = alone("forecast", "train", "--models", "last-value,yesterday,arima,auto", "--workers", 2, "--json")
    assert trained.code == 0, trained.err
    assert [one["model"] for one in json.loads(trained.out)["series"][0]["models"]] == [
        "last-value",
        "yesterday",
        "arima",
        "auto",
    ]

    judged = alone("forecast", "evaluate", "models", "--json", "--plot", "errors.png", "--workers", 2)
    assert judged.code == 0, judged.err
    (series,) = json.loads(judged.out)["series"]
    assert [verdict["distance"] for verdict in series["verdicts"]] == [1, 12, 24]
    assert (tmp_path / "errors.png").stat().st_size > 10_000

    said = alone("forecast", "predict", "models", "--steps", 24, "--json", "--plot", "next.png")
    assert said.code == 0, said.err
    intervals = json.loads(said.out)["intervals"]
    assert intervals[0]["time"] == "2024-04-10T00:00:00+00:00"
    assert all(one["quantiles"]["0.05"] <= one["rate_per_s"] <= one["quantiles"]["0.99"] for one in intervals)
    assert (tmp_path / "next.png").stat().st_size > 10_000

    run = alone("simulate", file, "-p", "tide", "--models", "models", "--interval", 600, "--step", 60, "--journal", "j.jsonl")
    assert run.code == 0, run.err
    reasons = [json.loads(line).get("reason", "") for line in (tmp_path / "j.jsonl").read_text().splitlines()]
    assert any("the trained model is not used: it needs" in reason for reason in reasons)

    again = alone("forecast", "predict", "models", "--after", file, "--steps", 3, "--json", "--model", "yesterday")
    assert again.code == 0, again.err
    assert_refused(alone("forecast", "predict", "models", "--steps", 25), "--steps must be between 1 and 24")
    assert_refused(alone("forecast", "predict", "models", "--model", "bigru"), "has no model 'bigru'")
