"""`springtide bench dashboard`: what it makes of the times it has taken, and a quick run of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from springtide.benchmarks.dashboard.measuring import Report, measure, table
from springtide.benchmarks.dashboard.watching import Plan, Watching, figures
from springtide.benchmarks.figures import Figure
from springtide.errors import SpringtideError

PLAN = Plan(first=2, block=2, pairs=2, last=3)


def found(took_s: list[float]) -> dict[str, Figure]:
    watched = Watching(Path("none.jsonl"), PLAN, lambda _: None)
    watched.cpu_share, watched.delays_s = 0.02, [0.1, 0.3]
    return {f.what: f for f in figures(PLAN, took_s, watched)}


def test_blocks_take_turns_and_so_does_which_is_first() -> None:
    assert [PLAN.watched(turn) for turn in range(13)] == [False] * 2 + [True] * 2 + [False] * 4 + [True] * 2 + [True] * 3


def test_turns_with_viewers_are_compared_with_those_without() -> None:
    # Everything is twice as slow in the second pair; turns before and after do not count.
    took_s = [0.9, 0.9, 0.003, 0.003, 0.002, 0.002, 0.004, 0.004, 0.007, 0.005, 0.9, 0.9, 0.9]
    told = found(took_s)
    assert told["a turn, 50 viewers / nobody"].value == pytest.approx((3 + 6) / (2 + 4))
    assert told["a turn, 50 viewers / nobody"].met is False
    assert told["a turn of the loop, nobody watches"].value == pytest.approx(3.0)
    assert told["the dashboard's share of one core"].value == pytest.approx(2.0)
    assert told["from writing to the last viewer"].value == pytest.approx(0.2)
    assert told["standard error of that"].value == pytest.approx(0.0, abs=1e-9)  # both pairs say the same


def test_a_loop_that_is_not_slowed_meets_the_bar() -> None:
    assert found([0.003] * 13)["a turn, 50 viewers / nobody"].met is True


def test_a_report_is_a_table_with_bars() -> None:
    told = list(found([0.003] * 13).values())
    report = Report(machine="here", python="3", quick=True, load={}, figures=told, within_bars=True)
    console = Console(width=100)
    with console.capture() as printed:
        console.print(table(report))
    assert "<= 1.01 met" in printed.get()


def test_an_unknown_case_is_named() -> None:
    with pytest.raises(SpringtideError, match="did you mean 'viewers'"):
        measure(["viewer"], say=lambda _: None)


@pytest.mark.full
def test_a_quick_run_opens_a_journal_and_has_fifty_viewers() -> None:
    command = [sys.executable, "-m", "springtide", "bench", "dashboard", "--quick", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    cases = {case: {f["what"]: f for f in report["figures"] if f["case"] == case} for case in report["load"]}
    assert list(cases) == ["opening", "viewers"]
    assert 0 < cases["opening"]["0.25 days / an hour"]["value"] < 10
    told = cases["viewers"]
    turns = [told[f"a turn of the loop, {who}"]["value"] for who in ("nobody watches", "50 viewers")]
    assert all(0 < turn_ms < 1000 for turn_ms in turns)
    assert told["a turn, 50 viewers / nobody"]["value"] == pytest.approx(turns[1] / turns[0])
    assert 0 < told["from writing to the last viewer"]["value"] < 5
