"""What the README tells a user to type works, from an empty folder with the user's own trace in it."""

from __future__ import annotations

import gzip
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

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


def test_there_are_commands():
    assert len(commands()) >= 5


@pytest.mark.slow
def test_every_command_of_the_readme_runs(folder):
    for command in commands():
        done = subprocess.run(
            [sys.executable, "-m", "springtide", *shlex.split(command)],
            cwd=folder,
            env=SHORTER,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"springtide {command}\n{done.stderr}"
        assert done.stdout.strip(), command

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
