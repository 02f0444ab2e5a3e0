"""A journal of a week is open in under two seconds, and costs little to follow."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from journals import append, observation_line, write_week
from served import ask, dashboard

from springtide.dashboard.following import FollowedJournal
from springtide.dashboard.series import series

OPEN_S = 2.0
INTERVALS = 20_000


def cpu_s(work: Callable[[], object]) -> float:
    """Of this process: what others on the machine do does not count."""
    before = time.process_time()
    work()
    return time.process_time() - before


@pytest.mark.slow
def test_a_week_is_read_and_answered_in_under_two_seconds(tmp_path: Path) -> None:
    path = write_week(tmp_path / "week.jsonl", INTERVALS)
    assert path.stat().st_size > 60e6
    journal = FollowedJournal(path)
    opened_s = cpu_s(journal.read_all)
    answered_s = cpu_s(lambda: msgspec.json.encode(series(journal.index, None)))
    print(f"{path.stat().st_size / 1e6:.0f} MB read in {opened_s:.2f} s, series in {1e3 * answered_s:.1f} ms")
    assert len(journal.index) == INTERVALS
    assert opened_s + answered_s < OPEN_S
    shown = dashboard(path)
    assert len(ask(shown, "/api/runs/0/series?points=800").json()["time_s"]) == 800
    assert cpu_s(lambda: ask(shown, "/api/runs/0/frames/10000")) < 0.5


@pytest.mark.slow
def test_one_more_interval_costs_a_thousandth_of_the_week(tmp_path: Path) -> None:
    path = write_week(tmp_path / "week.jsonl", 5000)
    journal = FollowedJournal(path)
    opened_s = cpu_s(journal.read_all)

    def grow() -> None:
        for i in range(20):
            append(path, observation_line(5000 + i))
            journal.read_all()

    # Written and read: an interval of 5,000 is allowed ten times its part.
    assert cpu_s(grow) / 20 < 10 * opened_s / 5000 + 2e-3
    assert len(journal.index) == 5020
