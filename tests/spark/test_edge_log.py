"""An edge's log: whoever crashes, and whenever, every reader sees every published row once, and nothing is kept for nobody."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from springtide.backends.spark.edges.log import (
    HEAD,
    EdgeLog,
    WrittenFile,
    read_entries,
    read_entry,
    read_head,
)
from springtide.backends.spark.files import Folder
from springtide.errors import SpringtideError
from springtide.monitor.ingest_times import IngestTimes, at_once, nobody


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(str(tmp_path / "edge"))


def send(log: EdgeLog, batch_id: int, *sizes: int, entered_s: float = 100.0) -> str:
    """Write one file of so many rows for each size, and publish them; the folder they were written into."""
    name = log.attempt_folder(batch_id)
    files = []
    for number, rows in enumerate(sizes):
        log.folder.folder(f"data/{name}").write_text(f"{number}.rows", "x" * rows)
        files.append(WrittenFile(path=f"{name}/{number}.rows", rows=rows, bytes=rows))
    log.publish(batch_id, files, at_once(entered_s, sum(sizes)))
    return name


def entry_files(folder: Folder) -> list[str]:
    return folder.folder("entries").names()


def data_folders(folder: Folder) -> list[str]:
    return folder.folder("data").names()


class TestPublishing:
    def test_a_new_edge_has_nothing_to_read(self, folder: Folder) -> None:
        assert read_head(folder) == (1, 0), "even before anybody has opened it"
        log = EdgeLog(folder, ["count"])

        assert log.last == 0
        assert read_head(folder) == (1, 0)
        assert not log.has(0)
        assert list(read_entries(folder, 0, 0)) == []

    def test_entries_are_numbered_without_gaps_though_batches_are_not(self, folder: Folder) -> None:
        log = EdgeLog(folder, ["count"])
        for batch_id in (0, 3, 4, 17):
            send(log, batch_id, 5)

        assert log.last == 4
        assert read_head(folder) == (1, 4)
        assert [(e.number, e.batch_id) for e in list(read_entries(folder, 0, 4))] == [(1, 0), (2, 3), (3, 4), (4, 17)]

    def test_an_entry_says_what_was_written_and_when_its_rows_entered(self, folder: Folder) -> None:
        log = EdgeLog(folder, ["count"])
        ingested = IngestTimes(np.array([10.25, 11.5]), np.array([3.0, 4.5]))
        files = [WrittenFile(path="0-a/x", rows=3, bytes=120), WrittenFile(path="0-a/y", rows=4, bytes=150)]
        log.publish(0, files, ingested)
        (entry,) = list(read_entries(folder, 0, 1))

        assert entry.files == tuple(files)
        assert entry.rows == 7
        assert entry.ingested.times_s.tolist() == [10.25, 11.5]
        assert entry.ingested.rows.tolist() == [3.0, 4.5]

    def test_a_batch_without_rows_takes_no_entry_and_is_known_all_the_same(self, folder: Folder) -> None:
        log = EdgeLog(folder, ["count"])
        send(log, 0, 5)
        log.publish(1, [], nobody())
        send(log, 2, 0, 0)

        assert log.last == 1
        assert read_head(folder) == (1, 1)
        assert entry_files(folder) == ["1.json"]
        assert log.has(2)
        assert EdgeLog(folder, ["count"]).has(2)
        send(log, 3, 5)
        assert [(e.number, e.batch_id) for e in list(read_entries(folder, 0, log.last))] == [(1, 0), (2, 3)]

    def test_files_without_rows_are_left_out(self, folder: Folder) -> None:
        log = EdgeLog(folder, ["count"])
        name = send(log, 0, 0, 5, 0)

        assert [f.path for f in next(read_entries(folder, 0, 1)).files] == [f"{name}/1.rows"]

    def test_every_attempt_has_a_folder_of_its_own(self, folder: Folder) -> None:
        log = EdgeLog(folder, ["count"])
        names = {log.attempt_folder(7) for _ in range(10)}

        assert len(names) == 10
        assert set(data_folders(folder)) == names
        assert all(name.startswith("7-") for name in names)

    def test_a_batch_is_published_once(self, folder: Folder) -> None:
        log = EdgeLog(folder, ["count"])
        send(log, 4, 5)

        assert [log.has(batch_id) for batch_id in (3, 4, 5)] == [True, True, False]
        for again in (log, EdgeLog(folder, ["count"])):
            with pytest.raises(SpringtideError, match=r"^[^\n]*/edge: batch 4 is published already$"):
                again.publish(4, [WrittenFile(path="4-b/x", rows=1, bytes=1)], nobody())
        assert read_head(folder) == (1, 1)
        assert next(read_entries(folder, 0, 1)).rows == 5

    def test_a_batch_without_rows_leaves_no_folder(self, folder: Folder) -> None:
        log = EdgeLog(folder, ["count"])
        for batch_id in range(100):
            send(log, batch_id)

        assert data_folders(folder) == []


class TestCounting:
    def test_rows_between_two_entries(self, folder: Folder) -> None:
        log = EdgeLog(folder, ["count"])
        for batch_id, rows in enumerate((1, 10, 100, 1000)):
            send(log, batch_id, rows)

        assert log.rows_between(0, 4) == 1111
        assert log.rows_between(1, 3) == 110
        assert log.rows_between(2, 2) == 0
        assert log.rows_between(3, 2) == 0
        assert log.rows_between(3, 99) == 1000

    def test_ingest_times_between_two_entries(self, folder: Folder) -> None:
        log = EdgeLog(folder, ["count"])
        for batch_id, rows in enumerate((1, 10, 100)):
            send(log, batch_id, rows, entered_s=50.0 + batch_id)
        found = log.ingested_between(1, 3)

        assert found.times_s.tolist() == [51.0, 52.0]
        assert found.rows.tolist() == [10.0, 100.0]
        assert log.ingested_between(3, 3).total_rows == 0

    def test_what_was_counted_before_a_restart_is_counted_after_it(self, folder: Folder) -> None:
        log = EdgeLog(folder, ["count"])
        for batch_id, rows in enumerate((1, 10, 100)):
            send(log, batch_id, rows, entered_s=50.0 + batch_id)
        again = EdgeLog(folder, ["count"])

        assert again.last == 3
        assert again.rows_between(0, 3) == 111
        assert again.ingested_between(0, 3).times_s.tolist() == [50.0, 51.0, 52.0]

    def test_what_was_deleted_counts_no_more(self, folder: Folder) -> None:
        log = EdgeLog(folder, ["count"])
        for batch_id, rows in enumerate((1, 10, 100)):
            send(log, batch_id, rows)
        log.committed("count", 2)

        assert log.rows_between(0, 3) == 100
        assert log.ingested_between(0, 3).total_rows == 100


class TestDeleting:
    def test_entries_are_kept_until_the_slowest_reader_has_committed_them(self, folder: Folder) -> None:
        log = EdgeLog(folder, ["fast", "slow"])
        names = [send(log, batch_id, 5, 5) for batch_id in range(3)]
        log.committed("fast", 3)
        assert entry_files(folder) == ["1.json", "2.json", "3.json"]
        assert data_folders(folder) == sorted(names)

        log.committed("slow", 1)
        assert entry_files(folder) == ["2.json", "3.json"]
        assert data_folders(folder) == sorted(names[1:])
        assert read_entry(folder, 1) is None

        log.committed("slow", 3)
        assert entry_files(folder) == []
        assert data_folders(folder) == []
        assert log.last == 3, "numbers are not used again"
        send(log, 3, 5)
        assert read_head(folder) == (4, 4)

    def test_a_reader_does_not_go_back(self, folder: Folder) -> None:
        """A query that is restarted says once more what it said before."""
        log = EdgeLog(folder, ["count", "store"])
        for batch_id in range(3):
            send(log, batch_id, 5)
        for upto in (2, 1, 0):
            log.committed("count", upto)
        log.committed("store", 3)

        assert entry_files(folder) == ["3.json"]

    def test_a_reader_that_has_not_begun_holds_everything_back(self, folder: Folder) -> None:
        log = EdgeLog(folder, ["count", "late"])
        for batch_id in range(3):
            send(log, batch_id, 5)
        log.committed("count", 3)
        log.committed("late", 0)

        assert [e.number for e in list(read_entries(folder, 0, 3))] == [1, 2, 3]

    def test_a_missing_entry_is_an_error_that_names_it(self, folder: Folder) -> None:
        log = EdgeLog(folder, ["count"])
        for batch_id in range(4):
            send(log, batch_id, 5)
        log.committed("count", 2)

        assert [e.number for e in list(read_entries(folder, 2, 4))] == [3, 4]
        with pytest.raises(SpringtideError, match=r"^[^\n]*/edge: entry 2 is missing, though its reader has not committed it$"):
            list(read_entries(folder, 1, 4))
        with pytest.raises(SpringtideError, match="entry 5 is missing"):
            list(read_entries(folder, 2, 5))

    def test_a_reader_that_is_ahead_of_its_edge_is_an_error(self, folder: Folder) -> None:
        """Somebody has emptied the edge's folder, and left the reader's checkpoint."""
        log = EdgeLog(folder, ["count"])

        with pytest.raises(SpringtideError, match=r"count.*7"):
            log.committed("count", 7)

    def test_nothing_is_listed_on_the_way_of_a_batch(self, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
        log = EdgeLog(folder, ["count"])

        def refuse(self: Folder) -> list[str]:
            raise AssertionError(f"{self.uri} was listed")

        monkeypatch.setattr(Folder, "names", refuse)
        for batch_id in range(3):
            send(log, batch_id, 5)
            list(read_entries(folder, batch_id, read_head(folder)[1]))
            log.committed("count", batch_id)
        with pytest.raises(AssertionError, match="was listed"):
            EdgeLog(folder, ["count"])


class TestReopening:
    def test_an_edge_goes_on_where_it_was(self, folder: Folder) -> None:
        names = [send(EdgeLog(folder, ["count"]), batch_id, 5) for batch_id in range(3)]

        assert read_head(folder) == (1, 3)
        assert [e.files[0].path for e in list(read_entries(folder, 0, 3))] == [f"{name}/0.rows" for name in names]
        assert data_folders(folder) == sorted(names)

    def test_after_deletions_the_head_is_put_right(self, folder: Folder) -> None:
        log = EdgeLog(folder, ["count"])
        for batch_id in range(4):
            send(log, batch_id, 5)
        log.committed("count", 2)
        again = EdgeLog(folder, ["count"])

        assert read_head(folder) == (3, 4)
        assert again.rows_between(0, 4) == 10
        again.committed("count", 4)
        assert entry_files(folder) == []

    def test_after_everything_was_deleted_numbers_go_on(self, folder: Folder) -> None:
        log = EdgeLog(folder, ["count"])
        for batch_id in range(3):
            send(log, batch_id, 5)
        log.committed("count", 3)
        again = EdgeLog(folder, ["count"])

        assert (again.last, read_head(folder)) == (3, (4, 3))
        send(again, 3, 5)
        assert [(e.number, e.batch_id) for e in list(read_entries(folder, 3, 4))] == [(4, 3)]

    def test_a_new_reader_begins_at_the_first_entry_that_is_left(self, folder: Folder) -> None:
        log = EdgeLog(folder, ["count"])
        for batch_id in range(4):
            send(log, batch_id, 5)
        log.committed("count", 2)
        log = EdgeLog(folder, ["count", "new"])
        first, last = read_head(folder)

        assert [e.number for e in list(read_entries(folder, first - 1, last))] == [3, 4]
        log.committed("count", 4)
        assert [e.number for e in list(read_entries(folder, first - 1, last))] == [3, 4], "they wait for the new reader"
        log.committed("new", 3)
        assert entry_files(folder) == ["4.json"]

    def test_a_reader_that_is_gone_holds_nothing_back(self, folder: Folder) -> None:
        log = EdgeLog(folder, ["count", "gone"])
        for batch_id in range(3):
            send(log, batch_id, 5)
        log.committed("count", 3)
        EdgeLog(folder, ["count"]).committed("count", 2)

        assert entry_files(folder) == ["3.json"]

    def test_what_failed_attempts_left_is_removed(self, folder: Folder) -> None:
        log = EdgeLog(folder, ["count"])
        kept = send(log, 0, 5)
        for _ in range(2):
            folder.folder(f"data/{log.attempt_folder(1)}").write_text("0.rows", "xxx")
        assert len(data_folders(folder)) == 3
        EdgeLog(folder, ["count"])

        assert data_folders(folder) == [kept]
        assert folder.folder(f"data/{kept}").names() == ["0.rows"]

    def test_an_entry_that_the_head_had_not_reached_is_published_anew_with_its_number(self, folder: Folder) -> None:
        """The entry is written, the power goes, the head is not: the batch is repeated, and its rows come once."""
        log = EdgeLog(folder, ["count"])
        send(log, 0, 5)
        head = folder.read_text(HEAD)
        assert head is not None
        lost = send(log, 1, 7)
        folder.write_text(HEAD, head)
        assert read_entry(folder, 2) is not None

        again = EdgeLog(folder, ["count"])
        assert again.last == 1
        assert not again.has(1)
        assert lost not in data_folders(folder), "nobody could read it any more"
        name = send(again, 1, 3, 4)

        assert read_head(folder) == (1, 2)
        (entry,) = list(read_entries(folder, 1, 2))
        assert [f.path for f in entry.files] == [f"{name}/0.rows", f"{name}/1.rows"]
        assert (entry.batch_id, again.rows_between(0, 2)) == (1, 12)

    def test_a_deletion_that_was_cut_short_is_finished(self, folder: Folder) -> None:
        """The entry is gone, its files are not."""
        log = EdgeLog(folder, ["count"])
        names = [send(log, batch_id, 5) for batch_id in range(3)]
        folder.delete("entries/1.json")
        EdgeLog(folder, ["count"])

        assert data_folders(folder) == sorted(names[1:])
        assert read_head(folder) == (2, 3)

    def test_a_batch_whose_head_could_not_be_written_is_not_published(self, folder: Folder) -> None:
        """A store that fails once: the batch fails, and Spark repeats it with the same log, which must publish it then."""
        power = Power()
        log = EdgeLog(FailingFolder(folder.uri, power), ["count"])
        name = log.attempt_folder(0)
        power.left = 1  # the entry is written, the head is not
        with pytest.raises(PowerCut):
            log.publish(0, [WrittenFile(path=f"{name}/0.rows", rows=5, bytes=5)], nobody())
        assert read_head(folder) == (1, 0)

        assert not log.has(0)


# --- a small world: a query that sends rows, and queries that read them, as Spark would run them --------------------------


class PowerCut(Exception):
    """The machine went down."""


@dataclass
class Power:
    """How many more changes to the disk there is power for."""

    left: float = math.inf

    def use(self) -> None:
        if self.left <= 0:
            raise PowerCut
        self.left -= 1


@dataclass(frozen=True)
class FailingFolder(Folder):
    """A folder on a machine whose power may go before any change to its disk."""

    power: Power = field(default_factory=Power, compare=False)

    def folder(self, name: str) -> Folder:
        return FailingFolder(f"{self.uri}/{name}", self.power)

    def create(self) -> None:
        self.power.use()
        super().create()

    def remove(self) -> None:
        self.power.use()
        super().remove()

    def write_text(self, name: str, text: str) -> None:
        self.power.use()
        super().write_text(name, text)

    def delete(self, name: str) -> None:
        self.power.use()
        super().delete(name)


@dataclass
class Reader:
    """A query that reads the edge: its checkpoint is the offsets of its batches, and its sink keeps one result per batch."""

    begun_after: int | None = None
    offsets: list[int] = field(default_factory=list)
    seen: list[list[int]] = field(default_factory=list)
    unfinished: bool = False
    committing: int = 0  # what it has ever begun to tell the log
    committed: int = 0  # what it has told the log since the last start

    @property
    def rows(self) -> list[int]:
        return sorted(row for rows in self.seen for row in rows)


class World:
    """One edge. `batches[b]` are the rows that upstream batch b gives, however often it is run."""

    def __init__(self, root: str, readers: Iterable[str], batches: list[list[int]] | None = None) -> None:
        self.power = Power()
        self.folder = FailingFolder(root, self.power)
        self.batches = batches or []
        self.readers = {name: Reader() for name in readers}
        self._log: EdgeLog | None = None

    @property
    def log(self) -> EdgeLog:
        if self._log is None:
            self._log = EdgeLog(self.folder, self.readers)
        return self._log

    def restart(self, power: float = math.inf) -> None:
        """What was only in memory is lost; there is power for so many changes from now on."""
        self._log = None
        self.power.left = power
        for reader in self.readers.values():
            reader.committed = 0

    def run_upstream(self, batch_id: int, split: int = 2) -> None:
        """Run a batch, or repeat it; its rows go to `split` files."""
        if self.log.has(batch_id):
            return
        name = self.log.attempt_folder(batch_id)
        files = []
        for part in range(split):
            rows = self.batches[batch_id][part::split]
            self.folder.folder(f"data/{name}").write_text(f"{part}.json", json.dumps(rows))
            files.append(WrittenFile(path=f"{name}/{part}.json", rows=len(rows), bytes=0))
        self.log.publish(batch_id, files, at_once(1.0, len(self.batches[batch_id])))

    def run_reader(self, name: str, *, finish: bool = True) -> None:
        """Run a reader's next batch, or the one that it had not finished; Spark notes where it ends before it runs it."""
        log, reader = self.log, self.readers[name]
        if reader.begun_after is None:
            reader.begun_after = read_head(self.folder)[0] - 1
        if not reader.unfinished:
            _, last = read_head(self.folder)
            if last == [reader.begun_after, *reader.offsets][-1]:
                return
            reader.offsets.append(last)
            reader.unfinished = True
        after, upto = [reader.begun_after, *reader.offsets][-2:]
        reader.committing = after
        log.committed(name, after)
        reader.committed = after
        reader.seen[len(reader.offsets) - 1 :] = [self._rows(after, upto)]
        reader.unfinished = not finish

    def _rows(self, after: int, upto: int) -> list[int]:
        found = []
        for entry in list(read_entries(self.folder, after, upto)):
            for file in entry.files:
                text = self.folder.read_text(f"data/{file.path}")
                assert text is not None, f"{file.path} was deleted though entry {entry.number} is there"
                found += json.loads(text)
        return found

    def check_rows(self) -> None:
        """Each reader has seen the rows from where it began to where it is, and none twice."""
        by_entry = [rows for rows in self.batches if rows]
        for reader in self.readers.values():
            if reader.begun_after is not None:
                upto = [reader.begun_after, *reader.offsets][len(reader.seen)]
                assert reader.rows == [row for rows in by_entry[reader.begun_after : upto] for row in rows]

    def check_entries(self) -> None:
        """What somebody has not committed is there, and nothing else, but for an entry that the head has not reached."""
        there = {int(name.removesuffix(".json")) for name in entry_files(self.folder)}
        needed = min(r.committing for r in self.readers.values())
        wanted = min(r.committed for r in self.readers.values())
        _, last = read_head(self.folder)
        assert set(range(needed + 1, last + 1)) <= there <= set(range(wanted + 1, last + 2))

    def check_end(self) -> None:
        """Let the readers come to the end; then everything was seen, and nothing lies about after a restart."""
        assert self.log.last == sum(bool(rows) for rows in self.batches)
        for name, reader in self.readers.items():
            self.run_reader(name)  # what it had not finished
            self.run_reader(name)
            assert [reader.begun_after, *reader.offsets][-1] == self.log.last
            assert not reader.unfinished
        self.check_rows()
        self.restart()
        assert self.log.last == read_head(self.folder)[1]
        kept = list(read_entries(self.folder, read_head(self.folder)[0] - 1, self.log.last))
        assert data_folders(self.folder) == sorted({f.path.partition("/")[0] for entry in kept for f in entry.files})


# What happens, one thing after the other; after a power cut everything is started again and goes on from what was cut.
STORY = (
    "send 0", "send 1", "fast", "send 2", "slow", "fast", "send 3", "send 4", "slow",
    "restart", "fast", "send 5", "slow", "fast",
)  # fmt: skip
BATCHES = [[0, 1, 2], [3], [], [4, 5, 6, 7], [8, 9], [10, 11, 12, 13, 14]]


def lived_through(root: Path, power_cuts: Sequence[int]) -> tuple[World, int]:
    """The world after the story, in which the power goes after so many changes to the disk, and again after so many more;
    and how often it went."""
    world = World(str(root), ["fast", "slow"], BATCHES)
    power = iter(power_cuts)
    world.restart(next(power, math.inf))
    went = 0
    for step in STORY:
        done = False
        while not done:
            try:
                _take(step, world)
                done = True
            except PowerCut:
                world.restart(next(power, math.inf))
                went += 1
    return world, went


def _take(step: str, world: World) -> None:
    match step.split():
        case ["send", batch_id]:
            world.run_upstream(int(batch_id))
        case ["restart"]:
            world.restart(world.power.left)
        case [reader]:
            world.run_reader(reader)


def test_the_power_may_go_before_any_change_to_the_disk_and_once_more_during_the_repair(tmp_path: Path) -> None:
    plenty = 1000
    quiet, _ = lived_through(tmp_path / "quiet", [plenty])
    changes = plenty - int(quiet.power.left)
    assert changes > 40
    for first in range(changes):
        for again in ([], [2], [4]):
            root = tmp_path / f"{first}-{again}"
            world, went = lived_through(root, [first, *again])
            assert went >= 1
            world.power.left = math.inf
            world.check_entries()
            world.check_end()
            assert [reader.rows for reader in world.readers.values()] == [list(range(15))] * 2
            shutil.rmtree(root)


class AnyInterleaving(RuleBasedStateMachine):
    """Queries run in any order; everything may go down before any change to the disk."""

    def __init__(self) -> None:
        super().__init__()
        self.root = tempfile.mkdtemp(prefix="edge-")
        self.rows = 0
        self.cut_short = False  # the last batch of the query that sends

    @initialize(readers=st.integers(1, 3))
    def begin(self, readers: int) -> None:
        self.world = World(f"{self.root}/edge", [f"reader-{i}" for i in range(readers)])

    @rule(rows=st.integers(0, 4), split=st.integers(1, 3), power=st.just(math.inf) | st.integers(0, 7))
    def send(self, rows: int, split: int, power: float) -> None:
        """The next batch, or the one that was cut short, which Spark repeats before it goes on."""
        if not self.cut_short:
            self.world.batches.append(list(range(self.rows, self.rows + rows)))
            self.rows += rows
        self.world.power.left = power
        try:
            self.world.run_upstream(len(self.world.batches) - 1, split)
            self.cut_short = False
        except PowerCut:
            self.cut_short = True
            self.world.restart()
        self.world.power.left = math.inf

    @rule(reader=st.integers(0, 3), finish=st.booleans(), power=st.just(math.inf) | st.integers(0, 5))
    def read(self, reader: int, finish: bool, power: float) -> None:
        names = list(self.world.readers)
        self.world.power.left = power
        try:
            self.world.run_reader(names[reader % len(names)], finish=finish)
        except PowerCut:
            self.world.restart()
        self.world.power.left = math.inf

    @rule()
    def restart(self) -> None:
        self.world.restart()

    @precondition(lambda self: self.world.batches and not self.cut_short)
    @rule()
    def restart_and_repeat_the_last_batch(self) -> None:
        """It was published, but Spark had not noted that it was done."""
        self.world.restart()
        assert self.world.log.has(len(self.world.batches) - 1)
        self.world.run_upstream(len(self.world.batches) - 1)

    @precondition(lambda self: len(self.world.readers) < 4)
    @rule()
    def restart_with_a_new_reader(self) -> None:
        name = f"reader-{len(self.world.readers)}"
        self.world.readers[name] = Reader()
        self.world.restart()
        assert self.world.log.last >= 0
        self.world.readers[name].committing = read_head(self.world.folder)[0] - 1

    @invariant()
    def every_reader_has_seen_every_row_once(self) -> None:
        self.world.check_rows()

    @invariant()
    def entries_are_kept_for_those_who_need_them_and_for_nobody_else(self) -> None:
        self.world.check_entries()

    def teardown(self) -> None:
        try:
            if self.cut_short:
                self.world.run_upstream(len(self.world.batches) - 1)
            self.world.check_end()
        finally:
            shutil.rmtree(self.root)


TestAnyInterleaving = AnyInterleaving.TestCase
TestAnyInterleaving.settings = settings(max_examples=60, stateful_step_count=40)
