"""A journal survives its run: killed at any byte, it reads as far as it got and can be gone on with."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_journal import RUN, write_small_journal

from springtide.errors import SpringtideError
from springtide.journal.reading import TornTail, read_journal
from springtide.journal.records import EndRecord, ObservationRecord
from springtide.journal.writing import JournalWriter

END = EndRecord(time_s=180.0, summary={"resumed": True})


def test_cut_at_every_byte_it_reads_as_far_as_it_got(tmp_path: Path) -> None:
    whole = tmp_path / "whole.jsonl"
    records = write_small_journal(whole)
    content = whole.read_bytes()
    cut = tmp_path / "cut.jsonl"
    for size in range(len(content) + 1):
        prefix = content[:size]
        cut.write_bytes(prefix)
        lines = prefix.count(b"\n")
        torn = prefix[prefix.rfind(b"\n") + 1 :]
        if lines == 0:
            with pytest.raises(SpringtideError, match=f"torn last record of {size} bytes" if size else "the file is empty"):
                read_journal(cut)
            continue
        journal = read_journal(cut)
        assert (journal.run, tuple(journal)) == (RUN, records[: lines - 1])
        if torn:
            assert journal.torn is not None
            assert (journal.torn.offset_bytes, journal.torn.dropped_bytes) == (size - len(torn), len(torn))
            assert torn.decode().startswith(journal.torn.begins)
        else:
            assert journal.torn is None


def test_cut_at_every_byte_it_can_be_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)  # thousands of them would be most of the time, and prove nothing here
    whole = tmp_path / "whole.jsonl"
    records = write_small_journal(whole)
    content = whole.read_bytes()
    cut = tmp_path / "cut.jsonl"
    for size in range(len(content) + 1):
        prefix = content[:size]
        cut.write_bytes(prefix)
        torn_bytes = size - (prefix.rfind(b"\n") + 1)
        with JournalWriter(cut, RUN, append=True) as writer:
            assert (writer.cut.dropped_bytes if writer.cut else 0) == torn_bytes
            writer.end(END.time_s, END.summary)
        journal = read_journal(cut)
        assert journal.torn is None
        assert tuple(journal) == (*records[: max(0, prefix.count(b"\n") - 1)], END)


def test_what_was_dropped_is_said(tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl"
    write_small_journal(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:30])
    assert str(read_journal(path).torn) == 'dropped a torn last record of 30 bytes: {"kind":"end","time_s":120.0,"'

    path.write_bytes(lines[0] + lines[1][:500])
    assert str(read_journal(path).torn) == (
        'dropped a torn last record of 500 bytes: {"kind":"observation","time_s":60.0,"interval":0,"start_s":0...'
    )


def test_a_tail_longer_than_a_block_is_found_too(tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl"
    records = write_small_journal(path)
    with path.open("ab") as file:
        file.write(b'{"kind":"end","time_s":1.0,"summary":{"' + b"x" * 300_000)
    journal = read_journal(path)
    assert journal.torn is not None
    assert journal.torn.dropped_bytes == 300_039
    assert tuple(journal) == records


ENDLESS_RUN = """
import sys
import factories
from springtide.journal.writing import JournalWriter

path, interval = sys.argv[1], int(sys.argv[2])
long_event = "x" * 16_000_000  # makes a write last long enough to be killed in its middle
with JournalWriter(path, factories.run(), append=True) as journal:
    while True:
        journal.observation(factories.observation(index=interval, events=[long_event if interval % 5 == 4 else "short"]))
        interval += 1
"""


def _run_and_kill(path: Path, first_interval: int) -> None:
    """Start a run that goes on with the journal, and kill it in the middle of a long record, or as it cuts off a torn one."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    size = path.stat().st_size if path.exists() else 0
    deadline_s = time.monotonic() + 60
    with subprocess.Popen([sys.executable, "-c", ENDLESS_RUN, str(path), str(first_interval)], env=environment) as run:
        try:
            while not path.exists() or abs(path.stat().st_size - size) < 100_000:
                assert run.poll() is None, "the run ended by itself"
                assert time.monotonic() < deadline_s, "the journal does not change"
        finally:
            run.send_signal(signal.SIGKILL)


def test_killed_again_and_again_it_loses_the_last_record_at_most(tmp_path: Path) -> None:
    path = tmp_path / "killed.jsonl"
    intervals: list[int] = []
    torn: list[TornTail] = []
    for _ in range(20):
        _run_and_kill(path, first_interval=len(intervals))
        journal = read_journal(path)
        before, intervals = intervals, [record.interval for record in journal if isinstance(record, ObservationRecord)]
        assert intervals == list(range(len(intervals)))
        assert len(intervals) >= len(before)
        if journal.torn:
            torn.append(journal.torn)
            assert journal.whole_bytes + journal.torn.dropped_bytes == path.stat().st_size
        if len(torn) == 2:
            break
    assert torn, "no kill in twenty hit a write in its middle"

    with JournalWriter(path, journal.run, append=True) as writer:
        assert writer.cut == journal.torn
        writer.end(END.time_s, END.summary)
    journal = read_journal(path)
    assert journal.torn is None
    assert list(journal)[-1] == END
