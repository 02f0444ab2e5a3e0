"""`springtide doctor`: one line a check, exit code 1 for a problem, JSON for programs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from springtide.cli.doctor import doctor
from springtide.doctor.finding import Level, line, ok, problem, warning
from springtide.errors import InvalidValue, SpringtideError


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> typer.Typer:
    monkeypatch.chdir(tmp_path)
    for name in ("JAVA_HOME", "SPARK_HOME", "PYSPARK_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    made = typer.Typer()
    made.command()(doctor)
    return made


def run(app: typer.Typer, *arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_a_machine_that_is_fine_has_a_line_for_each_check_and_code_0(app: typer.Typer) -> None:
    done = run(app, "--quick", "--hosts", "1:1")
    assert done.exit_code == 0, done.output
    *lines, verdict = done.output.splitlines()
    assert {entry.split()[0] for entry in lines} <= {"ok", "warning"}
    for check in ("Python", "Java", "PySpark", "pandas", "memory", "cores", "disk", "folder", "open files", "ports", "JAX"):
        assert sum(entry[9:].startswith(f"{check}: ") for entry in lines) == 1, check
    assert verdict.startswith(f"{len(lines)} checks: 0 problems")


def test_a_problem_is_code_1_and_says_what_to_do(app: typer.Typer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/no/such/jdk")
    done = run(app, "--quick")
    assert done.exit_code == 1
    assert "problem  Java: JAVA_HOME is /no/such/jdk, where there is no bin/java; set it to a JDK 17" in done.output


def test_spark_is_not_tried_without_a_java(app: typer.Typer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/no/such/jdk")
    done = run(app)
    assert done.exit_code == 1
    assert "warning  Spark: not tried; solve the problems above first" in done.output


def test_json_has_the_same_findings(app: typer.Typer) -> None:
    done = run(app, "--quick", "--json", "--hosts", "1:400")
    report = json.loads(done.stdout)
    assert report["problem"] is False
    by_check = {finding["check"]: finding for finding in report["findings"]}
    assert by_check["cores"]["level"] == "warning"
    assert "400 executors" in by_check["cores"]["found"]
    assert by_check["Python"]["level"] == "ok"


def test_a_folder_that_cannot_be_used_is_a_problem(app: typer.Typer, tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    done = run(app, "--quick", "--folder", "state")
    assert done.exit_code == 1
    assert "is a file; name another --folder" in done.output


def test_nonsense_is_refused(app: typer.Typer) -> None:
    done = run(app, "--quick", "--hosts", "many")
    assert isinstance(done.exception, SpringtideError)


def test_looking_leaves_nothing_behind(app: typer.Typer, tmp_path: Path) -> None:
    run(app, "--quick", "--folder", "springtide-clicks")
    assert not any(tmp_path.iterdir())


def test_the_command_is_there_without_waiting_for_spark() -> None:
    """`springtide --help` imports this module."""
    heavy = "{'pyspark', 'pandas', 'numba', 'springtide.backends', 'springtide.doctor'} & set(sys.modules)"
    code = f"import sys, springtide.cli.doctor; print({heavy} or 'light')"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "light\n"


def test_a_finding_that_is_not_fine_says_what_to_do() -> None:
    with pytest.raises(InvalidValue, match="needs advice"):
        problem("Java", "none", "")
    assert line(problem("Java", "none", "install one")) == "problem  Java: none; install one"
    assert line(warning("cores", "1", "expect rows to wait")).startswith("warning  cores: 1;")
    assert ok("disk", "9 MB").level is Level.OK
