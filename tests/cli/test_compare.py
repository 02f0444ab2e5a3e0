"""`springtide compare` as a user meets it: what it prints, where, and with which exit code."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from ran import assert_refused

SHORT = ("generator:steps:levels=100/600/100,hold_s=300", "generator:spikes:duration_s=900")
QUICK = ("--no-spark", "--policies", "static,local-thresholds")


@pytest.fixture
def compare(springtide, monkeypatch: pytest.MonkeyPatch):
    """Run the command in this process, in an empty folder without recordings."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("SPRINGTIDE_DATA", raising=False)
    return lambda *arguments: springtide("compare", *arguments)


def test_two_policies_on_two_traces(compare):
    ran = compare(*SHORT, *QUICK)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert max(map(len, lines)) <= 80
    titles = [line.partition(",")[0].strip() for line in lines if line.startswith(("steps:", "spikes:", "All:"))]
    assert titles == ["steps: 15.0 min", "spikes: 15.0 min", "All: means over 2 traces"]
    assert "20.0 cores at its peak" in ran.out
    assert len([line for line in lines if "local-thresholds" in line]) == 3
    assert "regret" not in " ".join(lines[:6])  # no oracle has run
    assert ran.err.splitlines()[-1].startswith("Comparing: 4 of 4 done after ")


def test_json_has_what_the_documentation_says(compare):
    ran = compare(*SHORT, *QUICK, "--json", "--seed", 1, "--seed", 2)
    assert ran.code == 0
    found = json.loads(ran.out)
    page = (Path(__file__).parents[2] / "docs" / "comparing.md").read_text()
    for part in (found, found["traces"][0], found["overall"][0], found["runs"][0]):
        undocumented = [key for key in part if f"`{key}`" not in page]
        assert not undocumented
    assert [t["trace"] for t in found["traces"]] == ["steps", "spikes"]
    assert len(found["runs"]) == 2 * 2 * 2
    assert found["failures"] == []
    for trace in found["traces"]:
        assert trace["peak_cores"] == pytest.approx(0.5 * found["max_hosts"] * found["cores_per_host"])
        assert {p["policy"] for p in trace["policies"]} == {"static", "local-thresholds"}
        costs = [p["cost_core_hours"] for p in trace["policies"]]
        assert costs == sorted(costs)
    static = next(s for s in found["traces"][0]["policies"] if s["policy"] == "static")
    assert static["core_hours"] == pytest.approx(40 * 0.25, rel=0.05)  # the whole pool
    assert static["regret"] is None


def test_the_same_seed_gives_the_same_figures(compare):
    def figures() -> dict[str, Any]:
        ran = compare("generator:bursty-day", *QUICK, "--json", "--longest", "30m", "--seed", 3)
        return without_times(json.loads(ran.out))

    assert figures() == figures()


def test_the_plot_is_a_picture_and_nothing_else_is_left(compare, tmp_path):
    for name in ("out.png", "out.svg"):
        assert compare(*SHORT, *QUICK, "--plot", name).code == 0
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    picture = (tmp_path / "out.svg").read_text()
    assert all(text in picture for text in ("local-thresholds", "static", "steps", "spikes"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.png", "out.svg"]


def test_all_is_every_policy_there_is(compare):
    from springtide.plan.registry import policies  # noqa: PLC0415

    ran = compare("generator:constant:duration_s=60", "--no-spark", "--json")
    assert ran.code == 0, ran.err
    assert {p["policy"] for p in json.loads(ran.out)["overall"]} == set(policies())


def test_an_application_of_ones_own(compare, tmp_path):
    (tmp_path / "app.toml").write_text(
        'name = "mine"\n[slo]\nlatency_s = 1.5\n[[operator]]\nname = "x"\nservice_time_s = 0.01\n'
        "[hosts]\ncores = 2\nmax_hosts = 4\n[simulator]\ninterval_s = 10\n"
    )
    found = json.loads(compare("generator:constant:duration_s=120", *QUICK, "-a", "app.toml", "--json").out)
    assert (found["application"], found["slo_latency_s"], found["interval_s"], found["max_hosts"]) == ("mine", 1.5, 10.0, 4)
    assert found["traces"][0]["peak_cores"] == pytest.approx(0.5 * 8)
    assert found["service"] == "micro_batch"


def test_rows_are_processed_in_batches_unless_it_is_said_otherwise(compare, tmp_path):
    def found(*options: object) -> tuple[str, float, float]:
        ran = json.loads(compare("generator:constant:duration_s=120", *QUICK, *options, "--json").out)
        return ran["service"], ran["slo_latency_s"], ran["traces"][0]["peak_cores"]

    assert found() == ("micro_batch", 20.0, pytest.approx(20.0))
    assert found("--service", "tuple") == ("tuple", 5.0, pytest.approx(28.0))
    operator = 'name = "mine"\n[[operator]]\nname = "x"\nservice_time_s = 0.01\n[hosts]\ncores = 2\nmax_hosts = 4\n'
    (tmp_path / "app.toml").write_text(f'{operator}[simulator]\nservice = "tuple"\n')
    assert found("-a", "app.toml") == ("tuple", 5.0, pytest.approx(0.7 * 8))


@pytest.mark.parametrize(("options", "rows"), [
    (["--no-scale"], 60_000),
    (["--scale", "2"], 120_000),
    (["--peak", "50"], 30_000),
    (["--no-scale", "--longest", "5m"], 30_000),
])  # fmt: skip
def test_traces_are_scaled_and_cut_as_asked(compare, options, rows):
    found = json.loads(compare("generator:constant:rate_per_s=100,duration_s=600", *QUICK, "--json", *options).out)
    assert found["traces"][0]["rows"] == pytest.approx(rows)


def test_parameters_and_guards_reach_policies(compare):
    arguments = ("generator:steps:levels=100/600/100,hold_s=300", "--no-spark", "--json", "--policies")
    free, held, small = (
        json.loads(compare(*arguments, *more).out)["runs"][0]
        for more in (["local-thresholds"], ["local-thresholds", "-g", "dry-run"], ["static", "-s", "static.hosts=2"])
    )
    assert free["reconfigurations_per_day"] > held["reconfigurations_per_day"] == 0
    assert small["max_hosts"] == 2


def test_traces_of_the_same_name_are_told_apart(compare):
    specs = ("generator:constant:duration_s=60", "generator:constant:duration_s=120")
    found = json.loads(compare(*specs, *QUICK, "--json").out)
    assert [t["trace"] for t in found["traces"]] == ["constant", "generator:constant:duration_s=120"]


def test_a_folder_and_data_are_their_recordings(compare, monkeypatch, tmp_path):
    lines = ["timestamp,count", *(f"2019-03-08 0{m // 60}:{m % 60:02d}:00,{100 + m}" for m in range(0, 30, 5))]
    folder = tmp_path / "recordings"
    folder.mkdir()
    (folder / "bgelasor_periodic.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    (folder / "notes.txt").write_text("not a recording")
    monkeypatch.setenv("SPRINGTIDE_DATA", str(folder))
    for spec in (folder, f"{folder}/", "data", "data:bgelasor-periodic"):
        ran = compare(spec, *QUICK, "--json")
        assert ran.code == 0, ran.err
        assert [t["trace"] for t in json.loads(ran.out)["traces"]] == ["bgelasor-periodic"]
    assert_refused(compare("data", "data:bgelasor-periodic", *QUICK), "twice")


@pytest.mark.parametrize(("arguments", "hint"), [
    (["data"], "SPRINGTIDE_DATA"),
    (["data:twitter"], "SPRINGTIDE_DATA"),
    (["data:twiter"], "'twitter'"),
    (["."], "has no recording"),
    (["missing.csv"], "missing.csv"),
    (["generator:bursty"], "bursty-day"),
    ([], "TRACE"),
    (["generator:constant", "generator:constant"], "twice"),
    (["generator:constant:rate_per_s=0"], "no rows"),
    (["generator:constant", "--policies", "local-treshold"], "local-thresholds"),
    (["generator:constant", "--policies", ""], "--policies"),
    (["generator:constant", "--policies", "static,"], "--policies"),
    (["generator:constant", "--policies", "static,static"], "twice"),
    (["generator:constant", "--policies", "static", "-s", "local-thresholds.upper=0.9"], "among"),
    (["generator:constant", "--policies", "static", "-s", "host=3"], "hosts"),
    (["generator:constant", "--guard", "cooldwn"], "cooldown"),
    (["generator:constant", "--longest", "soon"], "7d"),
    (["generator:constant", "--longest", "0d"], "above 0"),
    (["generator:constant", "--peak-load", "0"], "above 0"),
    (["generator:constant", "--peak-load", "0.5", "--peak", "10"], "--peak-load and --peak"),
    (["generator:constant", "--scale", "2", "--no-scale"], "--scale and --no-scale"),
    (["generator:constant", "--late-cost", "-1"], "-1"),
    (["generator:constant", "--workers", "0"], "--workers"),
    (["generator:constant", "--seed", "1", "--seed", "1"], "twice"),
    (["generator:constant", "--interval", "0"], "interval_s"),
    (["generator:constant", "--step", "7"], "whole number of steps"),
    (["generator:constant", "-a", "nothing.toml"], "nothing.toml"),
    (["generator:constant", "--plot", "out.gif"], ".png"),
    (["generator:constant", "--plot", "no/such/folder/out.png"], "folder"),
])  # fmt: skip
def test_a_mistake_is_one_line_and_exit_code_2(compare, arguments, hint):
    assert_refused(compare(*arguments), hint)


def test_without_java_the_way_out_is_said(compare, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    ran = compare("generator:constant:duration_s=60")
    assert ran.code == 2
    assert "--no-spark" in ran.err.splitlines()[-1]


def test_a_policy_with_a_defect_is_one_line_and_the_others_are_shown(compare, monkeypatch):
    from springtide.plan.policies.local_thresholds import LocalThresholds  # noqa: PLC0415

    def decide(*_: object) -> None:
        raise ZeroDivisionError("by chance")

    monkeypatch.setattr(LocalThresholds, "decide", decide)
    ran = compare("generator:constant:duration_s=60", *QUICK)
    assert ran.code == 1
    assert "* static" in ran.out
    assert ran.err.splitlines()[-1] == "springtide: local-thresholds on constant failed: ZeroDivisionError: by chance"


LONG = "generator:day-cycle:days=400,step_s=60"


def test_ctrl_c_ends_it_without_a_picture(tmp_path):
    with started(tmp_path, LONG, "--longest", "400d", *QUICK, "--plot", "out.png") as running:
        wait_for_line(running, "Runs: 2")
        assert_interruptible(running, tmp_path)


@pytest.mark.spark
def test_ctrl_c_ends_spark_too(tmp_path):
    traces = ("generator:constant:duration_s=60", LONG)
    options = ("--longest", "400d", "--policies", "static", "--workers", "2", "--plot", "out.png")
    with started(tmp_path, *traces, *options) as running:
        wait_for_line(running, "1 of 2 done")  # the other goes on for minutes
        assert_interruptible(running, tmp_path)
        patient_until_s = time.monotonic() + 60.0
        while processes_of_session(running.pid):
            assert time.monotonic() < patient_until_s, processes_of_session(running.pid)
            time.sleep(0.2)


@pytest.mark.spark
def test_spark_is_the_default_and_gives_the_same(tmp_path, compare):
    with started(tmp_path, *SHORT, "--policies", "static,local-thresholds", "--json") as running:
        out, err = running.communicate(timeout=240)
    assert running.returncode == 0, err
    assert "Starting Spark" in err
    assert "4 of 4 done" in err
    assert without_times(json.loads(out)) == without_times(json.loads(compare(*SHORT, *QUICK, "--json").out))


def without_times(found: dict[str, Any]) -> dict[str, Any]:
    return {**found, "runs": [{name: value for name, value in run.items() if name != "wall_s"} for run in found["runs"]]}


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command in a process and session of its own, of which nothing is left."""
    command = [sys.executable, "-m", "springtide", "compare", *arguments]
    running = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield running
    finally:
        for process in processes_of_session(running.pid):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        running.wait()


def wait_for_line(running: subprocess.Popen[str], text: str) -> None:
    assert running.stderr is not None
    seen = []
    for line in running.stderr:
        seen.append(line)
        if text in line:
            return
    raise AssertionError("".join(seen))


def assert_interruptible(running: subprocess.Popen[str], folder: Path) -> None:
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert out == ""
    assert err.strip().splitlines()[-1] == "springtide: interrupted"
    assert "Traceback" not in err
    assert list(folder.iterdir()) == []


def processes_of_session(leader: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, session = stat.read_text().rpartition(") ")[2].split()[:4]
            if int(session) == leader and state != "Z":
                found.append(int(stat.parent.name))
    return found
