"""`springtide bench dashboard`: what it makes of the times it has taken, and a quick run of it."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise

import pytest
from rich.console import Console

from springtide.benchmarks.dashboard.measuring import Report, measure, table
from springtide.benchmarks.dashboard.watching import BUSY, Watch, Window, figures
from springtide.benchmarks.figures import Figure
from springtide.errors import SpringtideError

WINDOWS = [
    Window(watched=True, first=2, last=5),
    Window(watched=False, first=7, last=10),
    Window(watched=False, first=12, last=15),
    Window(watched=True, first=17, last=20),
]


def found(took_s: list[float]) -> dict[str, Figure]:
    watches = [Watch(delays_s=[delay_s] * 3, cpu_share=0.02) for delay_s in (0.1, 0.3)]
    return {f.what: f for f in figures("busy", WINDOWS, took_s, watches)}


def test_a_turn_with_viewers_is_compared_with_one_without_in_the_same_pair_of_windows() -> None:
    # Everything becomes twice as slow between the pairs; a turn that was held up, and those between windows, do not count.
    took_s = [0.9, 0.9, 0.003, 0.5, 0.003, 0.9, 0.9, *[0.002] * 3, 0.9, 0.9, *[0.004] * 3, 0.9, 0.9, *[0.006] * 3]
    told = found(took_s)
    assert told["a turn, 50 viewers / nobody"].samples == pytest.approx([1.5, 1.5])
    assert told["a turn, 50 viewers / nobody"].met is False
    assert told["a turn of the loop, nobody watches"].samples == pytest.approx([2.0, 4.0])
    assert told["the dashboard's share of one core"].value == pytest.approx(2.0)
    assert told["from writing to the last viewer"].value == pytest.approx(0.2)


def test_windows_take_turns_and_so_does_which_is_first() -> None:
    windows = BUSY.windows(quick=False)
    assert [window.watched for window in windows[:4]] == [True, False, False, True]
    assert len(windows) == 2 * BUSY.pairs
    for before, after in pairwise(windows):
        assert before.last == after.first - BUSY.settling


def test_a_loop_that_is_not_slowed_meets_the_bar() -> None:
    assert found([0.003] * 20)["a turn, 50 viewers / nobody"].met is True


def test_a_report_is_a_table_with_bars() -> None:
    told = list(found([0.003] * 20).values())
    report = Report(machine="here", python="3", quick=True, load={}, figures=told, within_bars=True)
    console = Console(width=100)
    with console.capture() as printed:
        console.print(table(report))
    assert "<= 1.01 met" in printed.get()


def test_an_unknown_case_is_named() -> None:
    with pytest.raises(SpringtideError, match="did you mean 'busy'"):
        measure(["bussy"], say=lambda _: None)


@pytest.mark.slow
def test_a_quick_run_opens_a_journal_and_has_fifty_viewers() -> None:
    command = [sys.executable, "-m", "springtide", "bench", "dashboard", "--quick", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    cases = {case: {f["what"]: f for f in report["figures"] if f["case"] == case} for case in report["load"]}
    assert list(cases) == ["opening", "busy", "resting"]
    assert 0 < cases["opening"]["0.25 days / an hour"]["value"] < 10
    for told in (cases["busy"], cases["resting"]):
        turns = [told[f"a turn of the loop, {who}"]["value"] for who in ("nobody watches", "50 viewers")]
        assert all(0 < turn_ms < 1000 for turn_ms in turns)
        assert told["a turn, 50 viewers / nobody"]["value"] == pytest.approx(turns[1] / turns[0])
        assert 0 < told["from writing to the last viewer"]["value"] < 5
