"""The wheel is whole: installed into an empty environment, with what it asks for and nothing else, it works."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import httpx
import pytest

PROJECT = Path(__file__).parent.parent
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")
# Nothing of this environment reaches the empty one.
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "VIRTUAL_ENV"))}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, *PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, PROJECT]
    subprocess.run(command, check=True)
    (built,) = folder.glob("springtide-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `springtide` command of an environment that holds the wheel and its dependencies."""
    place = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    python = place / "bin" / "python"
    pinned = ("--constraint", PROJECT / "constraints.txt")
    # Not compiled: most of it is never imported here.
    subprocess.run([python, *PIP, "install", "--no-compile", *pinned, wheel], env=CLEAN, check=True)
    return place / "bin" / "springtide"


def springtide(installed: Path, folder: Path, *arguments: str) -> str:
    done = subprocess.run([installed, *arguments], cwd=folder, env=CLEAN, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"springtide"}
    assert any(name.endswith("dashboard/static/index.html") for name in names)


def test_it_tells_its_version(installed: Path, tmp_path: Path) -> None:
    assert re.match(r"springtide \d+\.\d+", springtide(installed, tmp_path, "--version"))


def test_it_needs_no_test_dependency(installed: Path) -> None:
    command = [installed.parent / "python", "-m", "pip", "list", "--disable-pip-version-check"]
    listed = subprocess.run(command, env=CLEAN, capture_output=True, text=True, check=True)
    packages = set(listed.stdout.lower().split())
    assert "pyspark" in packages
    assert packages.isdisjoint({"pytest", "hypothesis", "jax", "jaxlib", "mypy", "ruff", "playwright", "httpx"})


def test_it_simulates_a_day_and_serves_its_page(installed: Path, tmp_path: Path) -> None:
    assert "core-hours" in springtide(installed, tmp_path, "simulate", "generator:bursty-day", "--journal", "run.jsonl")
    command = [installed, "dashboard", "run.jsonl", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, env=CLEAN, stderr=subprocess.PIPE, text=True) as serving:
        assert serving.stderr is not None
        address = next(word for line in serving.stderr for word in line.split() if word.startswith("http://")).partition("#")[0]
        page = httpx.get(address)
        assert page.status_code == 200
        parts = re.findall(r'(?:src|href)="((?!https?:|#|data:)[^"]+)"', page.text)
        assert parts
        for part in parts:
            assert httpx.get(httpx.URL(address).join(part)).status_code == 200, part
        assert httpx.get(f"{address}api/runs").json()["runs"][0]["file"] == "run.jsonl"
        serving.send_signal(signal.SIGINT)
        assert serving.wait(30) == 130
