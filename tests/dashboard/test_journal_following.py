"""A journal file as it grows, and as what should not happen to it happens."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from journals import append, end_line, observation_line, placed, run_line, small_run, write

from springtide.dashboard.following import FollowedJournal
from springtide.dashboard.index import Index
from springtide.dashboard.status import State, duration, status_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


def followed(path: Path) -> FollowedJournal:
    journal = FollowedJournal(path)
    journal.read_all()
    return journal


def state(journal: FollowedJournal, silent_s: float = 0.0) -> State:
    return status_of(journal.index, failure=journal.failure, silent_s=silent_s).state


def test_a_run_from_before_it_begins_to_its_end(path: Path) -> None:
    journal = followed(path)
    assert state(journal, silent_s=1e9) is State.EMPTY
    lines = small_run()
    append(path, lines[0])
    journal.read_all()
    assert state(journal) is State.STARTING
    append(path, *lines[1:3], lines[3][:100])
    journal.read_all()
    assert (state(journal), len(journal.index)) == (State.RUNNING, 1)
    append(path, lines[3][100:], *lines[4:], end_line())
    journal.read_all()
    assert (state(journal), len(journal.index)) == (State.ENDED, 3)
    assert journal.index.whole_bytes == path.stat().st_size


def test_only_what_is_new_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = small_run()
    journal = followed(write(path, lines[:3]))
    asked: list[tuple[int, int]] = []
    pread = os.pread

    def counting(fd: int, length: int, offset: int) -> bytes:
        block = pread(fd, length, offset)
        asked.append((offset, len(block)))
        return block

    monkeypatch.setattr(os, "pread", counting)
    journal.read_all()
    assert asked == []
    append(path, lines[3])
    journal.read_all()
    assert asked == [(sum(map(len, lines[:3])), len(lines[3]))]


def test_a_line_longer_than_a_block_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("springtide.dashboard.following.BLOCK_BYTES", 256)
    assert len(followed(write(path, small_run())).index) == 3


def test_a_torn_line_that_the_writer_takes_back_is_no_truncation(path: Path) -> None:
    lines = small_run()
    journal = followed(write(path, [*lines[:2], lines[2][:50]]))
    os.truncate(path, len(lines[0]) + len(lines[1]))
    append(path, lines[3])
    journal.read_all()
    assert (state(journal), len(journal.index)) == (State.RUNNING, 2)


@pytest.mark.parametrize("happens", ["truncated", "replaced", "vanished", "damaged"])
def test_what_a_journal_never_does_is_a_failure_that_says_what_to_do(path: Path, happens: str) -> None:
    journal = followed(write(path, small_run()))
    match happens:
        case "truncated":
            os.truncate(path, 100)
        case "replaced":
            os.replace(write(path.with_name("other"), small_run()), path)
        case "vanished":
            path.unlink()
        case "damaged":
            append(path, b"{]\n")
    journal.read_all()
    told = status_of(journal.index, failure=journal.failure, silent_s=0.0)
    assert told.state is State.FAILED
    assert told.text.startswith("run.jsonl: ")
    assert "start the dashboard again" in told.text
    assert len(journal.index) == 3


def test_a_file_that_is_no_journal_is_a_failure(path: Path) -> None:
    path.write_text("time,count\n1,2\n")
    assert "not a journal" in (followed(path).failure or "")


def test_records_are_read_again_with_their_allocations_filled_in(path: Path) -> None:
    journal = followed(write(path, small_run()))
    second = journal.observation(1)
    assert second.observed == journal.observation(0).observed
    assert second.requested is not None
    assert second.requested.hosts == ("host-0", "host-1")
    made, outcome = journal.decision(0)
    assert made.reason == "count is busy"
    assert outcome is not None
    assert outcome.interval == 1


def test_a_run_that_writes_nothing_for_three_intervals_is_stale(path: Path) -> None:
    journal = followed(write(path, small_run()))
    assert state(journal, silent_s=179.0) is State.RUNNING
    assert state(journal, silent_s=181.0) is State.STALE


def test_short_intervals_are_given_ten_seconds_and_a_start_two_minutes(path: Path) -> None:
    journal = followed(write(path, [run_line(interval_s=1.0)]))
    assert state(journal, silent_s=119.0) is State.STARTING
    assert state(journal, silent_s=121.0) is State.STALE
    append(path, observation_line(0, allocation=placed()))
    journal.read_all()
    assert state(journal, silent_s=9.0) is State.RUNNING
    assert state(journal, silent_s=11.0) is State.STALE


def test_an_ended_run_is_never_stale_and_a_failure_is_told_first() -> None:
    index = Index()
    index.feed(b"".join([*small_run(), end_line()]))
    assert status_of(index, failure=None, silent_s=1e9).state is State.ENDED
    assert status_of(index, failure="gone", silent_s=0.0).text == "gone"
    assert duration(3) == "3 s"
