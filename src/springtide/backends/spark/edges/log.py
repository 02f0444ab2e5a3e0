"""An edge as a log of entries: one for each batch that gave rows, numbered without gaps, each a list of Parquet files.

    head.json                   the first and the last entry that may be read
    entries/17.json             entry 17: its upstream batch, its files, when their rows entered the application
    data/<batch>-<attempt>/     the files of one attempt to write a batch

An entry is there once the head names it. A batch that is repeated after a crash finds its entry and keeps it, or, when the head
had not reached it, writes it anew; either way readers see every batch once. The driver is the only writer, and knows how
far each reader has come, because readers are queries of the same application: what all of them have committed is deleted.

Rules: nothing here lists a folder, except `open_log`, once per start.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from springtide.backends.spark.files import Folder
from springtide.errors import SpringtideError
from springtide.monitor.ingest_times import IngestTimes, joined

HEAD = "head.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """One Parquet file of an entry; `path` is relative to the edge's folder `data`."""

    path: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """What one upstream batch sent."""

    number: int
    batch_id: int
    files: tuple[WrittenFile, ...]
    ingested: IngestTimes

    @property
    def rows(self) -> int:
        return sum(f.rows for f in self.files)


class EdgeLog:
    """The driver's end of an edge."""

    def __init__(self, folder: Folder, readers: Iterable[str]) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._entries: dict[int, Entry] = {}
        self._first, self._last, self._last_batch = 1, 0, -1
        self._committed = dict.fromkeys(readers, 0)
        self._attempt: str | None = None
        self._open()

    @property
    def last(self) -> int:
        return self._last

    def _open(self) -> None:
        self.folder.folder("entries").create()
        self.folder.folder("data").create()
        head = self.folder.read_json(HEAD)
        if head is not None:
            self._first, self._last, self._last_batch = head["first"], head["last"], head["batch_id"]
            for number in range(self._last, self._first - 1, -1):
                entry = read_entry(self.folder, number)
                if entry is None:  # deleted after the head was written
                    self._first = number + 1
                    break
                self._entries[number] = entry
        self._committed = dict.fromkeys(self._committed, self._first - 1)
        self._write_head(self._last, self._last_batch)
        referred = {f.path.partition("/")[0] for e in self._entries.values() for f in e.files}
        for name in self.folder.folder("data").names():
            if name not in referred:
                self.folder.folder(f"data/{name}").remove()

    def attempt_folder(self, batch_id: int) -> str:
        """A new folder for the files of one attempt at a batch, relative to `data`."""
        name = f"{batch_id}-{uuid.uuid4().hex[:8]}"
        self.folder.folder(f"data/{name}").create()
        self._attempt = name
        return name

    def has(self, batch_id: int) -> bool:
        """Whether this batch, or a later one, has been published already: a batch is repeated only when it was the last."""
        return batch_id <= self._last_batch

    def publish(self, batch_id: int, files: Sequence[WrittenFile], ingested: IngestTimes) -> None:
        """Let readers see a batch. One without rows takes no entry, so that nobody is woken for nothing."""
        if self.has(batch_id):
            raise SpringtideError(f"{self.folder.uri}: batch {batch_id} is published already")
        with self._lock:
            kept = tuple(f for f in files if f.rows)
            entry = Entry(number=self._last + 1, batch_id=batch_id, files=kept, ingested=ingested) if kept else None
            last = self._last if entry is None else entry.number
            if entry is not None:
                self.folder.write_json(f"entries/{last}.json", _as_json(entry))
            self._write_head(last, batch_id)  # from here on it is published
            if entry is not None:
                self._entries[last] = entry
            self._last, self._last_batch = last, batch_id
        if entry is None and self._attempt is not None:
            self.folder.folder(f"data/{self._attempt}").remove()

    def rows_between(self, after: int, upto: int) -> int:
        return sum(e.rows for e in self._between(after, upto))

    def ingested_between(self, after: int, upto: int) -> IngestTimes:
        return joined(e.ingested for e in self._between(after, upto))

    def _between(self, after: int, upto: int) -> list[Entry]:
        with self._lock:
            return [self._entries[n] for n in range(after + 1, upto + 1) if n in self._entries]

    def committed(self, reader: str, upto: int) -> None:
        """A reader has committed everything up to an entry; what all readers have committed is deleted."""
        if upto > self._last:
            raise SpringtideError(
                f"{self.folder.uri}: {reader} has read up to entry {upto}, but the edge ends with {self._last}:"
                " put back the edge that it has read from, or begin with an empty folder for the whole application"
            )
        with self._lock:
            self._committed[reader] = max(self._committed[reader], upto)
            until = min(self._committed.values())
            gone = [self._entries.pop(n) for n in range(self._first, until + 1) if n in self._entries]
            self._first = max(self._first, until + 1)
        for entry in gone:
            self.folder.delete(f"entries/{entry.number}.json")
            for name in {f.path.partition("/")[0] for f in entry.files}:
                self.folder.folder(f"data/{name}").remove()

    def _write_head(self, last: int, batch_id: int) -> None:
        self.folder.write_json(HEAD, {"first": self._first, "last": last, "batch_id": batch_id})


def read_head(folder: Folder) -> tuple[int, int]:
    """The first and the last entry that may be read."""
    head = folder.read_json(HEAD)
    return (1, 0) if head is None else (int(head["first"]), int(head["last"]))


def read_entry(folder: Folder, number: int) -> Entry | None:
    found = folder.read_json(f"entries/{number}.json")
    return None if found is None else _from_json(found)


def read_entries(folder: Folder, after: int, upto: int) -> Iterator[Entry]:
    """Entries that a reader asks for by number; one that is missing would be rows lost, and is an error."""
    for number in range(after + 1, upto + 1):
        entry = read_entry(folder, number)
        if entry is None:
            raise SpringtideError(f"{folder.uri}: entry {number} is missing, though its reader has not committed it")
        yield entry


def _as_json(entry: Entry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "batch_id": entry.batch_id,
        "files": [[f.path, f.rows, f.bytes] for f in entry.files],
        "ingested": [entry.ingested.times_s.tolist(), entry.ingested.rows.tolist()],
    }


def _from_json(value: dict[str, Any]) -> Entry:
    times_s, rows = value["ingested"]
    return Entry(
        number=value["number"],
        batch_id=value["batch_id"],
        files=tuple(WrittenFile(path=p, rows=r, bytes=b) for p, r, b in value["files"]),
        ingested=IngestTimes(np.array(times_s, dtype=np.float64), np.array(rows, dtype=np.float64)),
    )
