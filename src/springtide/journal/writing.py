"""Writing a journal: append-only, one record per line, one `write` per record, so that SIGKILL tears the last one at most.

What was written survives the death of the process at once. It survives the death of the machine once synced to disk:
at most every `sync_every_s`, when a record is written, and at close. A journal has one writer at a time (a lock sees to it).
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, get_args

import msgspec

from springtide.errors import SpringtideError, nearest, require
from springtide.journal.from_model import decision_record, end_record, observation_record, outcome_record
from springtide.journal.reading import TornTail, examine
from springtide.journal.records import ControlRecord, Record, RunRecord
from springtide.model.action import Action
from springtide.model.decision import Decision, Outcome
from springtide.model.observation import Observation
from springtide.model.protocols import Recorder

Detail = Literal["operators", "shards"]


class JournalWriter(Recorder):
    """The `Recorder` that keeps a run on disk.

    A journal that exists is refused, unless `append` is given and it is of the same run; `cut` then tells of the torn
    record that was cut off its end, if any. With `detail="shards"`, observations hold every shard's load too.
    `clock_s` is the time that syncing goes by: the machine's own, also when the run's time is virtual.

        with JournalWriter(path, run) as journal:
            ...
            journal.end(time_s, totals)
    """

    def __init__(
        self,
        path: str | Path,
        run: RunRecord,
        *,
        append: bool = False,
        detail: Detail = "operators",
        sync_every_s: float = 5.0,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        require(detail in get_args(Detail), f"a journal has no detail {detail!r}; {nearest(detail, get_args(Detail))}")
        self._path = Path(path)
        self._with_shards = detail == "shards"
        self._sync_every_s = sync_every_s
        self._clock_s = clock_s
        self._synced_at_s = clock_s()
        self._last_written: Observation | None = None
        self._fd = _open_alone(self._path)
        try:
            self.cut = self._begin(run, append)
        except BaseException:
            os.close(self._fd)
            raise

    def _begin(self, run: RunRecord, append: bool) -> TornTail | None:
        """Leave the file with a run record and nothing torn; the cut-off tail, if there was one."""
        self._whole_bytes = os.fstat(self._fd).st_size
        if self._whole_bytes and not append:
            raise SpringtideError(f"journal {self._path} already exists: remove it, or name another file")
        opening = examine(self._path)
        if opening.run is not None:
            _check_same_run(self._path, opening.run, run)
        self._whole_bytes = opening.whole_bytes
        os.ftruncate(self._fd, self._whole_bytes)
        if opening.run is None:
            self._write(run)
        return opening.torn

    def observation(self, observation: Observation) -> None:
        self._write(observation_record(observation, before=self._last_written, with_shards=self._with_shards))
        self._last_written = observation

    def decision(self, observation: Observation, decision: Decision, actions: Sequence[Action]) -> None:
        self._write(decision_record(observation, decision, actions))

    def outcome(self, outcome: Outcome, time_s: float) -> None:
        self._write(outcome_record(outcome, time_s))

    def control(self, control: ControlRecord) -> None:
        """What was asked for by hand; it belongs between the observation of its interval and the decision on it."""
        self._write(control)

    def end(self, time_s: float, summary: Mapping[str, Any]) -> None:
        """The run came to its end; `summary` is anything JSON can hold."""
        self._write(end_record(time_s, summary))

    def close(self) -> None:
        """Sync and close; closing twice is closing once."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            try:
                _sync(fd, self._path)
            finally:
                os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, record: Record) -> None:
        line = msgspec.json.encode(record) + b"\n"
        try:
            _write_whole(self._fd, line)
        except OSError as error:
            # Without this, the next record would follow a torn one on the same line: damage in the middle of the file.
            os.ftruncate(self._fd, self._whole_bytes)
            raise _cannot_write(self._path, f"{error.strerror}; the records before are kept") from error
        self._whole_bytes += len(line)
        self._sync_when_due()

    def _sync_when_due(self) -> None:
        now_s = self._clock_s()
        if now_s - self._synced_at_s >= self._sync_every_s:
            _sync(self._fd, self._path)
            self._synced_at_s = now_s


def _open_alone(path: Path) -> int:
    """Open for appending, as the only writer."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise _cannot_write(path, error.strerror) from error
    try:
        _lock(fd, path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _lock(fd: int, path: Path) -> None:
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        raise _cannot_write(path, "it is not a regular file")
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _cannot_write(path, "another run is writing it; wait for it to end, or name another file") from None
    except OSError as error:
        raise _cannot_write(path, f"it cannot be locked ({error.strerror})") from error


def is_being_written(path: Path) -> bool:
    """Whether the run that writes a journal goes on: its writer holds a lock on it. Where none can be taken, it may."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)  # and with it goes the lock
    return False


def _write_whole(fd: int, line: bytes) -> None:
    rest = memoryview(line)
    while rest:  # once, unless the disk is full: then the second attempt tells why
        rest = rest[os.write(fd, rest) :]


def _sync(fd: int, path: Path) -> None:
    try:
        os.fsync(fd)
    except OSError as error:
        raise _cannot_write(path, error.strerror) from error


def _cannot_write(path: Path, why: str | None) -> SpringtideError:
    return SpringtideError(f"cannot write journal {path}: {why}")


def _check_same_run(path: Path, written: RunRecord, run: RunRecord) -> None:
    """When and by which version a run is continued may differ; what runs may not."""
    same = msgspec.structs.replace(
        run, time_s=written.time_s, created_at=written.created_at, springtide_version=written.springtide_version
    )
    if same != written:
        raise SpringtideError(
            f"journal {path} is of another run (application {written.application.name!r}, policy {written.policy.name!r}, "
            "or settings that differ): name another file"
        )
