"""`springtide run`: what is wrong is said in one line before Spark is started; a driver that is killed goes on where it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CLICKS = Path(__file__).parents[2] / "examples" / "clicks.py"


def springtide(*arguments: object, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "springtide", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def said(*arguments: object) -> str:
    """What a refused command says: one line, with exit code 2."""
    process = springtide(*arguments)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2, err
    assert out == ""
    assert err.count("\n") == 1, err
    return err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.py"], "there is no such file"),
        ([CLICKS, "--policy", "locl-thresholds"], "did you mean 'local-thresholds'?"),
        ([CLICKS, "--hosts", "four"], "write it as MIN:MAX"),
        ([CLICKS, "--hosts", "4:2"], "MAX not below it"),
        ([CLICKS, "--start-hosts", "9"], "--start-hosts 9 is not between --hosts 1 and 4"),
        ([CLICKS, "--scaling", "elastik"], "did you mean 'elastic'?"),
        ([CLICKS, "--interval", "0"], "--interval must be above 0 s"),
        ([CLICKS, "--slo", "-1"], "latency_s must be above 0"),
        ([CLICKS, "--guard", "cooldwn"], "did you mean 'cooldown'?"),
    ],
)
def test_what_is_wrong_is_said_before_spark_is_started(arguments: list[object], words: str) -> None:
    assert words in said("run", *arguments)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n", "it makes 0 applications"),
        ("import nowhere\n", "ModuleNotFoundError: No module named 'nowhere'"),
        ("def f(:\n", "SyntaxError"),
        ("import springtide\napp = springtide.Application('a b')\n", "'a b' cannot be the name of an application"),
        ("import springtide\napp = springtide.Application('empty')\n", "has no operator"),
    ],
)
def test_an_application_file_that_cannot_be_used_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "app.py").write_text(text)
    assert words in said("run", tmp_path / "app.py")


def test_a_folder_that_is_not_an_operators_is_not_resharded(tmp_path: Path) -> None:
    assert "this is not an operator's folder" in said("reshard", tmp_path, "--shards", 4)


@pytest.mark.spark
@pytest.mark.slow
def test_a_driver_that_is_killed_goes_on_from_its_folder(tmp_path: Path) -> None:
    """SIGKILL in the middle, the same command again: the counts are those of all rows, once each."""
    environment = {
        "CLICKS_TRACE": "generator:steps:levels=200,hold_s=30",
        "CLICKS_RESULTS": str(tmp_path / "results"),
    }
    command = ["run", CLICKS, "--folder", tmp_path / "app", "--hosts", "2:2", "--until-drained", "--interval", 2, "--json"]
    first = springtide(*command, **environment)
    wait_for(lambda: len(list((tmp_path / "app" / "per-page" / "checkpoint").glob("commits/[1-9]*"))) >= 2, first)
    first.send_signal(signal.SIGKILL)
    first.communicate()

    second = springtide(*command, **environment)
    out, err = second.communicate(timeout=300)
    assert second.returncode == 0, err
    (summary,) = json.loads(out)
    assert summary["rows"]["backlog"] == 0

    checked = subprocess.run(
        [sys.executable, CLICKS], env={**os.environ, **environment}, capture_output=True, text=True, timeout=300, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert checked.stdout.startswith("6,000 clicks"), checked.stdout


def wait_for(happened, process: subprocess.Popen[str], patience_s: float = 240.0) -> None:
    deadline = time.monotonic() + patience_s
    while not happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
