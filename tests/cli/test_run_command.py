"""`springtide run` and `springtide reshard`: what is wrong is said in one line, before Spark is started."""

from __future__ import annotations

import os
import subprocess
import sys
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
        ([CLICKS, "--interval", "nan"], "--interval must be above 0 s"),
        ([CLICKS, "--for", "-3"], "--for must be above 0 s"),
        ([CLICKS, "--slo", "-1"], "--slo must be above 0 s"),
        ([CLICKS, "--guard", "cooldwn"], "did you mean 'cooldown'?"),
        ([CLICKS, "--option", "keys=7"], "is a file of your own"),
        (["taxi-route"], "nor an application of that name; did you mean 'taxi-routes'?"),
        (["dns", "--option", "colour=red"], "application 'dns' has no option 'colour'"),
        (["dns", "--option", "rates=nobody"], "rates must be the name of a recording or generator:NAME"),
        (["micro-benchmark", "--option", "trace=nowhere.csv"], "nowhere.csv: there is no such file"),
        (["micro-benchmark", "--folder", CLICKS.parent], "it is not a folder of micro-benchmark"),
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
