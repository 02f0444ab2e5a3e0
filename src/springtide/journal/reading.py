"""Reading a journal, whole or killed in the middle of a write.

A record is whole when its newline is there. Bytes after the last newline are a torn tail: they are dropped, and said.
A record before it that cannot be read is no torn tail but damage, and an error that names the line.
Iterating reads one record at a time, so that memory does not grow with the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from springtide.errors import SpringtideError
from springtide.journal.records import FORMAT, AllocationRecord, ObservationRecord, Record, RunRecord

_FIRST_BYTES = b'{"kind":"run",'
_BLOCK_BYTES = 64 * 1024
_SHOWN_BYTES = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class TornTail:
    """The beginning of a record whose end was never written: where it starts, and what was dropped."""

    offset_bytes: int
    dropped_bytes: int
    begins: str

    def __str__(self) -> str:
        more = "..." if self.dropped_bytes > _SHOWN_BYTES else ""
        return f"dropped a torn last record of {self.dropped_bytes} bytes: {self.begins}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What can be told of a journal without reading through it; `run` is absent when not even that record is whole."""

    run: RunRecord | None
    torn: TornTail | None
    whole_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """A journal on disk as it was when opened. Iterating gives the records after `run`, allocations filled in."""

    path: Path
    run: RunRecord
    torn: TornTail | None
    whole_bytes: int

    def __iter__(self) -> Iterator[Record]:
        observed: AllocationRecord | None = None
        requested: AllocationRecord | None = None
        for line_number, line in self._lines():
            record = _decode(line, self.path, line_number)
            if isinstance(record, ObservationRecord):
                observed = record.observed or observed
                requested = record.requested or requested
                if observed is None or requested is None:
                    raise _damaged(self.path, line_number, "it leaves out an allocation that no earlier record has")
                record = msgspec.structs.replace(record, observed=observed, requested=requested)
            yield record

    def newest_first(self) -> Iterator[Record]:
        """The records after `run` from the last one backwards, as they were written: allocations are not filled in."""
        with self.path.open("rb") as file:
            begun, block_end, cut = len(file.readline()), self.whole_bytes, b""
            while block_end > begun:
                block_start = max(begun, block_end - _BLOCK_BYTES)
                file.seek(block_start)
                cut, *lines = (file.read(block_end - block_start) + cut).split(b"\n")
                yield from (_decode_near_end(line, self.path) for line in reversed(lines) if line)
                block_end = block_start
            if cut:
                yield _decode_near_end(cut, self.path)

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        with self.path.open("rb") as file:
            position = len(file.readline())
            line_number = 1
            while position < self.whole_bytes:
                line = file.readline()
                position += len(line)
                line_number += 1
                yield line_number, line


def read_journal(path: str | Path) -> Journal:
    """Open a journal and read its first record; iterate over the result for the others."""
    path = Path(path)
    opening = examine(path)
    if opening.run is None:
        raise SpringtideError(
            f"journal {path} holds no whole record: "
            + (f"{opening.torn}; the run was killed as it began" if opening.torn else "the file is empty")
        )
    return Journal(path=path, run=opening.run, torn=opening.torn, whole_bytes=opening.whole_bytes)


def examine(path: Path) -> Opening:
    """Where the whole records end, and the first of them. A file that is not a journal is an error."""
    try:
        if path.exists() and not path.is_file():
            raise SpringtideError(f"{path} is not a file: give the path of a journal")
        with path.open("rb") as file:
            return _examine(file, path)
    except FileNotFoundError:
        raise SpringtideError(f"there is no journal {path}") from None
    except OSError as error:
        raise SpringtideError(f"cannot read journal {path}: {error.strerror}") from error


def _examine(file: BinaryIO, path: Path) -> Opening:
    file_bytes = os.fstat(file.fileno()).st_size
    first_bytes = file.read(len(_FIRST_BYTES))
    if not _FIRST_BYTES.startswith(first_bytes):
        raise SpringtideError(f"{path} is not a journal: its first line is not a 'run' record")
    whole_bytes = _end_of_last_line(file, file_bytes)
    torn = _torn_tail(file, whole_bytes, file_bytes) if whole_bytes < file_bytes else None
    file.seek(0)
    run = _decode_run(file.readline(), path) if whole_bytes else None
    return Opening(run=run, torn=torn, whole_bytes=whole_bytes)


def _end_of_last_line(file: BinaryIO, file_bytes: int) -> int:
    """The offset after the last newline, looked for from the end backwards; 0 when there is none."""
    block_end = file_bytes
    while block_end > 0:
        block_start = max(0, block_end - _BLOCK_BYTES)
        file.seek(block_start)
        newline = file.read(block_end - block_start).rfind(b"\n")
        if newline >= 0:
            return block_start + newline + 1
        block_end = block_start
    return 0


def _torn_tail(file: BinaryIO, whole_bytes: int, file_bytes: int) -> TornTail:
    file.seek(whole_bytes)
    begins = file.read(min(_SHOWN_BYTES, file_bytes - whole_bytes)).decode("utf-8", errors="replace")
    return TornTail(offset_bytes=whole_bytes, dropped_bytes=file_bytes - whole_bytes, begins=begins)


class _Head(msgspec.Struct):
    """The part of a run record that every format has."""

    format: int


def _decode_run(line: bytes, path: Path) -> RunRecord:
    # The format comes first: a newer run record may hold what this version would call damaged.
    try:
        written_format = msgspec.json.decode(line, type=_Head).format
        if written_format > FORMAT:
            raise SpringtideError(
                f"journal {path} has format {written_format}, and this Springtide reads up to {FORMAT}: upgrade springtide"
            )
        return msgspec.json.decode(line, type=RunRecord)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _damaged(path, 1, str(error)) from error


_record_decoder: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)


def _decode(line: bytes, path: Path, line_number: int) -> Record:
    try:
        record = _record_decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _damaged(path, line_number, str(error)) from error
    if isinstance(record, RunRecord):
        raise _damaged(path, line_number, "a second run begins there, and a journal holds one")
    return record


def _decode_near_end(line: bytes, path: Path) -> Record:
    """Whoever reads backwards does not know the number of a line."""
    try:
        return _record_decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SpringtideError(f"journal {path} is damaged near its end: {error}") from error


def _damaged(path: Path, line_number: int, why: str) -> SpringtideError:
    return SpringtideError(f"journal {path} is damaged at line {line_number}: {why}; remove the line to read the rest")
