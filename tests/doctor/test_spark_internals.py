"""This Spark is one whose internals behave as needed, and one whose do not is found out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("commands")]

COMMAND = "import typer; from springtide.cli.doctor import doctor; app = typer.Typer(); app.command()(doctor); app()"

# A Spark whose executors ignore where tasks are wanted, and that cannot partition state anew.
BROKEN = """
from springtide.doctor import internals
internals.place_of = lambda host, executor: "executor_nowhere_9"
def refuse(*_): raise NotImplementedError("no such method")
internals.repartition = refuse
"""

TRIED = {
    "Spark", "checkpoint files", "state store", "plans", "tasks", "counts", "offsets", "shuffles", "replicas", "places",
    "shards", "releasing", "executors", "warming", "state", "changelogs", "resharding",
}  # fmt: skip


def doctor(folder: Path, before: str = "") -> tuple[int, dict[str, dict[str, str]]]:
    """Run it in a process of its own: one has only one Spark session."""
    command = [sys.executable, "-c", before + COMMAND, "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout, done.stderr
    return done.returncode, {finding["check"]: finding for finding in json.loads(done.stdout)["findings"]}


@pytest.mark.slow
def test_every_internal_of_this_spark_behaves_as_needed(tmp_path: Path) -> None:
    code, findings = doctor(tmp_path)
    found = {check: findings[check] for check in TRIED}
    assert {finding["level"] for finding in found.values()} == {"ok"}, found
    assert all(finding["needed_for"] for finding in found.values())
    assert "sums are exact" in found["state"]["found"]
    assert code == 0
    assert not any(tmp_path.iterdir()), "nothing is left behind"


@pytest.mark.full
def test_what_behaves_differently_is_named_and_the_rest_is_still_tried(tmp_path: Path) -> None:
    code, findings = doctor(tmp_path, BROKEN)
    assert code == 1
    bad = {check: findings[check]["level"] for check in TRIED if findings[check]["level"] != "ok"}
    assert bad == {"places": "problem", "resharding": "warning"}
    assert "running replicas on chosen hosts" in findings["places"]["needed_for"]
    assert findings["state"]["level"] == "ok", "the batch whose places were wrong was still run, and once"
