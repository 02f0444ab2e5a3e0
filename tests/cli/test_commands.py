"""The commands as a user meets them: what they print, where, and with which exit code."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ran import assert_refused


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "rates.csv"
    lines = [f"2024-01-01 00:{m:02d}:00,{6000 if 20 <= m < 30 else 1200}" for m in range(60)]
    path.write_text("timestamp,count\n" + "\n".join(lines) + "\n")
    return path


def test_help_starts_in_under_half_a_second_of_cpu_time():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-m", "springtide", "--help"], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "simulate" in done.stdout
    assert after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime < 0.5


def test_simulate_prints_json_that_adds_up(springtide, trace):
    ran = springtide("simulate", trace, "--policy", "local-thresholds", "--json")
    assert ran.code == 0
    (run_,) = json.loads(ran.out)
    rows = run_["rows"]
    assert rows["source"] == pytest.approx(50 * 1200 + 10 * 6000)
    assert rows["arrived"] == pytest.approx(rows["processed"] + rows["dropped"] + rows["backlog"])
    assert run_["core_hours"] > 0
    assert run_["latency"]["p10_s"] <= run_["latency"]["p50_s"] <= run_["latency"]["p90_s"] <= run_["latency"]["p99_s"]
    assert 0 <= run_["slo_violation_share"] <= 1
    load = run_["host_utilisation"]
    assert load["min"] <= load["mean"] <= load["max"]
    assert set(run_["reconfigurations"]) <= {
        "scale_outs",
        "scale_ins",
        "shards_moved",
        "regroupings",
        "hosts_added",
        "hosts_released",
    }
    assert {"mean_replicas", "mean_hosts", "wall_s", "downtime_s"} <= run_.keys()


def test_the_same_seed_gives_the_same_figures(springtide, trace):
    def figures() -> dict[str, object]:
        (run_,) = json.loads(springtide("simulate", trace, "-p", "global-thresholds", "--json", "--seed", "3").out)
        return {name: value for name, value in run_.items() if name != "wall_s"}

    assert figures() == figures()


def test_policies_are_compared_side_by_side_with_parameters_of_their_own(springtide, trace):
    ran = springtide("simulate", trace, "-p", "static", "-p", "local-thresholds", "-s", "local-thresholds.upper=0.7")
    assert ran.code == 0
    assert "static" in ran.out
    assert "local-thresholds" in ran.out
    assert "core-hours" in ran.out


def test_more_than_one_trace_is_more_than_one_run(springtide, trace):
    ran = springtide("simulate", trace, "generator:constant:duration_s=600", "--json")
    assert [r["trace"] for r in json.loads(ran.out)] == ["rates", "constant"]


def test_a_trace_is_cut_and_scaled(springtide, trace):
    ran = springtide("simulate", trace, "--json", "--from", 1200, "--to", 1800, "--scale", 2)
    assert json.loads(ran.out)[0]["rows"]["source"] == pytest.approx(2 * 10 * 6000)
    ran = springtide("simulate", trace, "--json", "--peak", 50)
    assert json.loads(ran.out)[0]["rows"]["source"] == pytest.approx((50 * 1200 + 10 * 6000) / 2)


def test_the_plot_is_a_picture_and_nothing_else_is_left(springtide, trace, tmp_path):
    assert springtide("simulate", trace, "--plot", "out.png").code == 0
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.png", "rates.csv"]


def test_a_journal_is_kept_and_explained(springtide, trace):
    assert springtide("simulate", trace, "-p", "local-thresholds", "--journal", "j.jsonl").code == 0
    told = springtide("explain", "j.jsonl", "--changes")
    assert told.code == 0
    assert "because" in told.out
    explained = json.loads(springtide("explain", "j.jsonl", "--json").out)
    assert explained
    again = springtide("simulate", trace, "--journal", "j.jsonl")
    assert again.code == 2
    assert "already exists" in again.err


def test_a_torn_journal_is_explained_and_the_loss_is_said(springtide, trace, tmp_path):
    springtide("simulate", trace, "--journal", "j.jsonl")
    whole = (tmp_path / "j.jsonl").read_bytes()
    (tmp_path / "j.jsonl").write_bytes(whole[:-20])
    told = springtide("explain", "j.jsonl")
    assert told.code == 0
    assert "dropped" in told.err


def test_a_guard_leaves_its_why_not(springtide, trace):
    springtide("simulate", trace, "-p", "local-thresholds", "-g", "dry-run", "--journal", "j.jsonl")
    told = springtide("explain", "j.jsonl")
    assert "dry-run: not" in " ".join(told.out.split())


def test_policies_are_listed_and_cited(springtide):
    listed = springtide("policies")
    for name in ("static", "local-thresholds", "global-thresholds", "cooldown", "token-bucket", "dry-run"):
        assert name in listed.out
    assert {p["name"] for p in json.loads(springtide("policies", "--json").out)["policies"]} >= {"static"}
    assert "Heinze" in springtide("cite", "local-thresholds").out


BAD_FILES = {
    "empty.csv": "",
    "header.csv": "timestamp,count\n",
    "columns.csv": "when,howmany\n0,1\n1,2\n",
    "nan.csv": "time,count\n0,1\n1,NaN\n2,3\n",
    "negative.csv": "time,count\n0,1\n1,-5\n2,3\n",
    "unsorted.csv": "time,count\n0,1\n2,5\n1,3\n",
    "duplicate.csv": "time,count\n0,1\n1,5\n1,3\n",
    "words.csv": "time,count\n0,one\n1,two\n",
}


@pytest.mark.parametrize(("name", "hint"), [
    ("empty.csv", "empty"), ("header.csv", "row"), ("columns.csv", "--time-column"), ("nan.csv", "row 2"),
    ("negative.csv", "-5"), ("unsorted.csv", "row 3"), ("duplicate.csv", "row 3"), ("words.csv", "one"),
    ("missing.csv", "missing.csv"),
])  # fmt: skip
def test_a_bad_trace_is_one_line_and_exit_code_2(springtide, tmp_path, name, hint):
    for file, text in BAD_FILES.items():
        (tmp_path / file).write_text(text)
    assert_refused(springtide("simulate", name), hint)


@pytest.mark.parametrize(("arguments", "hint"), [
    (["simulate", "generator:constant", "-p", "local-treshold"], "local-thresholds"),
    (["simulate", "generator:constant", "-p", "local-thresholds", "-s", "uper=0.9"], "upper"),
    (["simulate", "generator:constant", "-p", "local-thresholds", "-s", "upper=high"], "high"),
    (["simulate", "generator:constant", "-p", "local-thresholds", "-s", "upper=2"], "upper"),
    (["simulate", "generator:constant", "-s", "upper"], "NAME=VALUE"),
    (["simulate", "generator:constant", "-g", "cooldwn"], "cooldown"),
    (["simulate", "generator:constant", "-g", "cooldown:grace=3"], "grace_s"),
    (["simulate", "generator:bursty"], "bursty-day"),
    (["simulate", "generator:constant", "--interval", "0"], "interval_s"),
    (["simulate", "generator:constant", "--step", "-1"], "step_s"),
    (["simulate", "generator:constant", "--from", "99999"], "99999"),
    (["simulate", "generator:constant", "--scale", "-1"], "-1"),
    (["simulate", "generator:constant", "-a", "nothing.toml"], "nothing.toml"),
    (["simulate", "generator:constant", "--plot", "out.gif"], ".png"),
    (["simulate", "generator:constant", "--plot", "no/such/folder/out.png"], "folder"),
    (["simulate", "generator:constant", "generator:steps", "--journal", "j.jsonl"], "one"),
    (["simulate", "generator:constant", "--sed", "3"], "--seed"),
    (["simulate"], "TRACE"),
    (["explain", "nothing.jsonl"], "nothing.jsonl"),
    (["cite", "locl-thresholds"], "local-thresholds"),
    (["simulte"], "simulate"),
])  # fmt: skip
def test_a_mistake_is_one_line_and_exit_code_2(springtide, arguments, hint):
    assert_refused(springtide(*arguments), hint)


@pytest.mark.parametrize(("text", "hint"), [
    ('name = "a"\n[[operator]]\nname = "x"\nservice_time = 1', "service_time_s"),
    ('name = "a"\n[[operator]]\nname = "x"\nservice_time_s = -1', "-1"),
    ('name = "a"\n[[operator]]\nname = "x"\nservice_time_s = 1\n[[edge]]\nfrom = "y"\nto = "x"', "'y'"),
    ('name = "a"\n[[operator]]\nname = "x"\nservice_time_s = 1\n[simulator]\nstep = 1', "step_s"),
    ('name = "a"\n[[operator]]\nname = "x"\nservice_time_s = 1\n[[operator]]\nname = "y"\nservice_time_s = 1\n'
     '[[edge]]\nfrom = "y"\nto = "x"\n[[edge]]\nfrom = "x"\nto = "y"', "cycle"),
    ('name = "a"\n[[operator]]\nname = "source"\nservice_time_s = 1', "[[source]]"),
    ('name = "a"\n[[source]]\nname = "s"\n[[source]]\nname = "t"\n[[operator]]\nname = "x"\nservice_time_s = 1\n'
     '[[edge]]\nfrom = "s"\nto = "x"', "'t' feeds nobody"),
    ('name = "a"\n[[operator]]\nname = "x"\nservice_time_s = 1\n[simulator]\nstep_s = 7', "whole number of steps"),
    ('name = "a"\n[[operator]]\nname = "x"\nservice_time_s = 1\n[simulator]\ninitial_hosts = 99', "max_hosts"),
    ("name = ", "line 1"),
])  # fmt: skip
def test_a_bad_application_file_is_one_line_and_exit_code_2(springtide, tmp_path, text, hint):
    (tmp_path / "app.toml").write_text(text)
    assert_refused(springtide("simulate", "generator:constant", "-a", "app.toml"), hint)


def test_debug_shows_the_traceback(monkeypatch, tmp_path):
    command = [sys.executable, "-m", "springtide", "simulate", "missing.csv", "--debug"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "Traceback" in done.stderr


def test_ctrl_c_leaves_a_whole_journal_and_no_picture(tmp_path):
    command = [sys.executable, "-m", "springtide", "simulate", "generator:day-cycle:days=400,step_s=60"]
    options = ["--interval", "60", "--journal", "j.jsonl", "--plot", "out.png"]
    running = subprocess.Popen([*command, *options], cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    journal = tmp_path / "j.jsonl"
    while not (journal.exists() and journal.stat().st_size > 20_000):
        assert running.poll() is None, running.stderr.read()
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert out == b""
    assert err.decode().strip().splitlines()[-1] == "springtide: interrupted"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["j.jsonl"]
    told = subprocess.run(
        [sys.executable, "-m", "springtide", "explain", "j.jsonl"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "ends early" in told.stdout


def test_a_reader_that_stops_reading_is_no_error(tmp_path):
    command = f"{sys.executable} -m springtide policies | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert "Traceback" not in done.stderr
