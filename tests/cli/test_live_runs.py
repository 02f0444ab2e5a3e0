"""Whole runs of `springtide run` on clusters of their own, with what goes wrong on them; each ends with the exact answer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from springtide.backends.spark.cluster.standalone import StandaloneCluster

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("commands")]

CLICKS = Path(__file__).parents[2] / "examples" / "clicks.py"


class Clicks:
    """The example application, with its state and results in a folder of its own."""

    def __init__(self, folder: Path, trace: str) -> None:
        self.folder = folder
        self._environment = {**os.environ, "CLICKS_TRACE": trace, "CLICKS_RESULTS": str(folder / "results")}

    def start(self, *options: object) -> subprocess.Popen[str]:
        command = ["run", CLICKS, "--folder", self.folder / "app", "--until-drained", "--json", *options]
        return subprocess.Popen(
            [sys.executable, "-m", "springtide", *map(str, command)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environment,
        )

    def committed(self) -> int:
        """Batches of the counting operator that are done."""
        return len(list((self.folder / "app" / "per-page" / "checkpoint" / "commits").glob("[0-9]*")))

    def check(self, clicks: str) -> None:
        """What was counted is what a batch counts."""
        done = subprocess.run(
            [sys.executable, CLICKS], env=self._environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.startswith(f"{clicks} clicks on "), done.stdout


def summary_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=400)
    assert process.returncode == 0, err
    (summary,) = json.loads(out)
    return dict(summary)


def wait_for(happened: Callable[[], bool], process: subprocess.Popen[str], patience_s: float = 240.0) -> None:
    deadline = time.monotonic() + patience_s
    while not happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
def test_a_driver_that_is_killed_goes_on_from_its_folder(tmp_path: Path) -> None:
    clicks = Clicks(tmp_path, "generator:steps:levels=200,hold_s=30")
    options = ("--policy", "static", "--hosts", "2:2", "--interval", 2)
    first = clicks.start(*options)
    wait_for(lambda: clicks.committed() >= 3, first)
    first.send_signal(signal.SIGKILL)
    first.communicate()

    assert summary_of(clicks.start(*options))["rows"]["backlog"] == 0
    clicks.check("6,000")


@pytest.mark.slow
def test_an_application_rides_a_trace_up_and_down(tmp_path: Path) -> None:
    """Executors, replicas and shards change under a policy, while the rows come."""
    clicks = Clicks(tmp_path, "generator:steps:levels=100/600/50,hold_s=40")
    quick = ("--set", "consecutive=2", "--set", "grace_s=6", "--guard", "balance", "--interval", 2)

    summary = summary_of(clicks.start("--policy", "local-thresholds", *quick, "--hosts", "1:4"))

    assert summary["max_hosts"] > 1
    changes = summary["reconfigurations"]
    assert changes["hosts_added"] >= 1
    assert changes["hosts_released"] >= 1
    assert changes["scale_outs"] >= 1
    assert changes["shards_moved"] >= 1
    assert summary["rows"]["dropped"] == summary["rows"]["backlog"] == 0
    clicks.check("30,000")


@pytest.mark.slow
def test_a_default_run_needs_no_parameters(tmp_path: Path) -> None:
    """`tide`: hosts come with the load, though nobody has told it anything but the bounds."""
    clicks = Clicks(tmp_path, "generator:steps:levels=100/600,hold_s=30")

    summary = summary_of(clicks.start("--interval", 2, "--hosts", "1:4"))

    assert summary["policy"] == "tide"
    assert summary["reconfigurations"]["hosts_added"] >= 1
    assert summary["rows"]["dropped"] == summary["rows"]["backlog"] == 0
    clicks.check("21,000")


@pytest.mark.full
def test_models_are_trained_from_the_journal_beside_the_run_and_it_says_whether_it_uses_them(tmp_path: Path) -> None:
    clicks = Clicks(tmp_path, "generator:steps:levels=60/120/60/120,hold_s=40")
    journal, models = tmp_path / "run.jsonl", tmp_path / "models"

    summary = summary_of(
        clicks.start("--interval", 2, "--hosts", "2:2", "--journal", journal, "--models", models, "--retrain", "40s")
    )

    assert summary["rows"]["dropped"] == summary["rows"]["backlog"] == 0
    assert (models / "manifest.json").is_file(), (tmp_path / "models.log").read_text()
    records = [json.loads(line) for line in journal.read_text().splitlines()]
    reasons = [record["reason"] for record in records if "reason" in record]
    assert "holds no models" in reasons[0]
    assert "holds no models" not in reasons[-1], "what was trained is looked at"
    clicks.check("14,400")


@pytest.mark.slow
def test_a_worker_of_a_real_cluster_is_killed_and_another_comes(tmp_path: Path) -> None:
    clicks = Clicks(tmp_path, "generator:steps:levels=100,hold_s=40")
    with StandaloneCluster(workers=2, memory_mb=900) as cluster:
        local = ("--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.ui.enabled=false")
        process = clicks.start(
            "--master", cluster.master_url, "--policy", "static", "--hosts", "2:2", "--memory", 512, "--interval", 2, *local
        )
        wait_for(lambda: clicks.committed() >= 3, process)
        cluster.kill_worker("worker-0")
        before = clicks.committed()
        wait_for(lambda: clicks.committed() >= before + 2, process)
        cluster.add_worker()
        summary = summary_of(process)

    assert summary["reconfigurations"]["hosts_failed"] >= 1
    clicks.check("4,000")


@pytest.mark.full
def test_sparks_own_dynamic_allocation_can_be_measured(tmp_path: Path) -> None:
    clicks = Clicks(tmp_path, "generator:steps:levels=500,hold_s=40")
    static = ("--policy", "static", "--set", "replicas=3", "--scaling", "dynamic-allocation")

    summary = summary_of(clicks.start(*static, "--hosts", "1:3", "--interval", 2))

    assert summary["max_hosts"] > 1, "tasks that wait make Spark ask for executors"
    clicks.check("20,000")
