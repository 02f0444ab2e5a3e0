"""What the README tells a user to type works, from an empty folder with the user's own trace in it."""

from __future__ import annotations

import gzip
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

PROJECT = Path(__file__).parent.parent
SHORTER = {**os.environ, "CLICKS_TRACE": "generator:steps:levels=50/200,hold_s=5"}  # for the command that is live


def commands() -> list[str]:
    """Every `springtide` command in an indented block, with continued lines joined and comments left out."""
    text = (PROJECT / "README.md").read_text().replace("\\\n", " ")
    found = re.findall(r"^    springtide (.+)$", text, flags=re.MULTILINE)
    return [command.split(" #")[0].strip() for command in found]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("user")
    lines = [f"2024-05-01 {m // 60:02d}:{m % 60:02d}:00,{1000 + 900 * (m % 120 > 80)}" for m in range(360)]
    (place / "requests.csv.gz").write_bytes(gzip.compress(("timestamp,count\n" + "\n".join(lines) + "\n").encode()))
    (place / "examples").symlink_to(PROJECT / "examples")
    return place


@contextmanager
def started(command: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A command that runs, and does not outlive the block."""
    words = [sys.executable, "-m", "springtide", *shlex.split(command)]
    process = subprocess.Popen(words, cwd=folder, env=SHORTER, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_for(condition: Callable[[], bool], within_s: float = 240.0) -> None:
    by_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < by_s, "it has not come in time"
        time.sleep(0.2)


def test_there_are_commands():
    assert len(commands()) >= 5


@pytest.mark.slow
@pytest.mark.xdist_group("commands")
def test_every_command_of_the_readme_runs(folder):
    steering = [command for command in commands() if command.startswith("control ")]
    watching = [command for command in commands() if command.startswith("dashboard ")]
    assert len(steering) == len(watching) == 1
    for command in commands():
        if command in steering or command in watching:
            continue
        with started(command, folder) as running:
            if "--journal live.jsonl" in command:  # a run is steered while it goes on
                wait_for(lambda: (folder / "live.jsonl").exists() and b"observation" in (folder / "live.jsonl").read_bytes())
                with started(steering[0], folder) as asking:
                    said, problem = asking.communicate()
                assert asking.returncode == 0, problem
                assert said.startswith("Asked for: pin per-page to 3 replicas.")
            out, problem = running.communicate()
        assert running.returncode == 0, f"springtide {command}\n{problem}"
        assert out.strip(), command
    assert b'"do":"pin"' in (folder / "live.jsonl").read_bytes()  # and did what it was told

    with started(f"{watching[0]} --port 0", folder) as running:
        assert running.stderr is not None
        address = next(word for line in running.stderr for word in line.split() if word.startswith("http://"))
        assert httpx.get(f"{address.partition('#')[0]}api/runs").json()["runs"][0]["file"] == "run.jsonl"
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 130

    check = [sys.executable, "examples/clicks.py"]  # is what the live one has counted right?
    checked = subprocess.run(check, cwd=folder, env=SHORTER, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert checked.stdout.startswith("1,250 clicks on "), checked.stdout


def test_every_page_that_is_linked_exists():
    pages = [PROJECT / "README.md", *(PROJECT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
