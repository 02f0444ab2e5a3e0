"""What people ask of a run that goes on: an append-only file beside its journal, one JSON object per line.

Whoever asks appends a line (`append_control`) with one `write`; the run reads what is new at the end of every interval
(`ControlsReader`), does it or refuses it (`refusal`), and journals it as a `control`. Nothing in the file can end the run: a
line that makes no sense is a request that is refused. What was in the file before the run began is not meant for it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec

from springtide.errors import SpringtideError, nearest
from springtide.journal.records import ControlRecord
from springtide.model.steering import Steering

# What can be asked for, and what each request must say.
NEEDED: Mapping[str, tuple[str, ...]] = {
    "pause": (),
    "resume": (),
    "pin": ("operator", "replicas"),
    "unpin": ("operator",),
    "drain": ("host",),
    "undrain": ("host",),
}
_IN_WORDS = {"operator": "an operator", "host": "a host", "replicas": "a number of replicas"}
_NONSENSE = "refused"
_LONGEST_LINE_BYTES = 4096
_MOST_NEW_BYTES = 256 * 1024  # in one interval; what is beyond waits for the next
_SHOWN_CHARACTERS = 60


class SteeredOperator(Protocol):
    """What a request is checked against: an operator, however much of its record was read."""

    @property
    def name(self) -> str: ...
    @property
    def shards(self) -> int: ...
    @property
    def max_replicas(self) -> int: ...


class SteeredApplication(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def operators(self) -> Sequence[SteeredOperator]: ...


class ControlRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Something that somebody wants done: `do` is one of `NEEDED`, `said_at` is real time, as ISO 8601 writes it.

    `note` is empty but for a line that could not be read, whose `do` is "refused".
    """

    do: str
    operator: str | None = None
    host: str | None = None
    replicas: int | None = None
    who: str = "somebody"
    said_at: str = ""
    note: str = ""

    def __str__(self) -> str:
        match self.do:
            case "pin":
                return f"pin {self.operator} to {self.replicas} replica{'' if self.replicas == 1 else 's'}"
            case "unpin":
                return f"unpin {self.operator}"
            case "drain" | "undrain":
                return f"{self.do} {self.host}"
            case _:
                return self.do


def controls_path(journal: str | Path) -> Path:
    """
    >>> controls_path("run.jsonl").name
    'run.jsonl.controls'
    """
    path = Path(journal)
    return path.with_name(path.name + ".controls")


def now_text() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def append_control(journal: str | Path, request: ControlRequest) -> None:
    """Ask the run that writes `journal`; without `said_at`, it is said now."""
    path = controls_path(journal)
    said = request if request.said_at else msgspec.structs.replace(request, said_at=now_text())
    line = msgspec.json.encode(said) + b"\n"
    try:
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        try:
            size_bytes = os.fstat(fd).st_size
            torn = size_bytes > 0 and os.pread(fd, 1, size_bytes - 1) != b"\n"
            os.write(fd, b"\n" + line if torn else line)  # somebody was killed while asking: what they said stays apart
        finally:
            os.close(fd)
    except OSError as error:
        raise SpringtideError(f"cannot write {path}: {error.strerror}") from error


class ControlsReader:
    """Reads what is asked of one run, from now on."""

    def __init__(self, journal: str | Path) -> None:
        self._path = controls_path(journal)
        self._problem = ""
        self._offset_bytes = 0
        with suppress(OSError):  # nobody has asked for anything yet
            self._offset_bytes = self._path.stat().st_size

    def new(self) -> list[ControlRequest]:
        """The requests since the last call. A file that cannot be read is one refused request, once."""
        try:
            lines = self._new_lines()
        except FileNotFoundError:
            self._offset_bytes = 0
            return []
        except OSError as error:
            return self._once(f"cannot read {self._path.name}: {error.strerror}")
        self._problem = ""
        return [_request(line) for line in lines if line.strip()]

    def _new_lines(self) -> list[bytes]:
        # Not blocking: what is no file but a pipe would keep the loop waiting for somebody to write.
        fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise OSError(0, "it is not a regular file")
            if found.st_size < self._offset_bytes:  # somebody has begun it anew
                self._offset_bytes = 0
            block = os.pread(fd, _MOST_NEW_BYTES, self._offset_bytes)
        finally:
            os.close(fd)
        whole, newline, torn = block.rpartition(b"\n")
        if not newline and len(torn) < _MOST_NEW_BYTES:
            return []  # whoever asks is not done yet
        taken = whole if newline else torn
        self._offset_bytes += len(taken) + len(newline)
        return taken.split(b"\n")

    def _once(self, problem: str) -> list[ControlRequest]:
        said = self._problem == problem
        self._problem = problem
        return [] if said else [ControlRequest(do=_NONSENSE, note=problem, said_at=now_text())]


def _request(line: bytes) -> ControlRequest:
    if len(line) > _LONGEST_LINE_BYTES:
        return _nonsense(line, f"a request has at most {_LONGEST_LINE_BYTES} bytes")
    try:
        request = msgspec.json.decode(line, type=ControlRequest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _nonsense(line, str(error))
    return msgspec.structs.replace(request, note="")


def _nonsense(line: bytes, why: str) -> ControlRequest:
    shown = line[:_SHOWN_CHARACTERS].decode("utf-8", errors="replace")
    return ControlRequest(do=_NONSENSE, note=f"{why}: {shown}", said_at=now_text())


def refusal(
    request: ControlRequest, application: SteeredApplication, hosts: Collection[str], steering: Steering | None = None
) -> str:
    """Why a request cannot be done; empty if it can. `hosts` are those there are; how the run is steered need not be known."""
    if request.note:
        return request.note
    if request.do not in NEEDED:
        return f"there is no control {request.do!r}; {nearest(request.do, NEEDED)}"
    for field in NEEDED[request.do]:
        if getattr(request, field) is None:
            return f"{request.do} needs {_IN_WORDS[field]}"
    if "operator" in NEEDED[request.do]:
        return _operator_problem(request, application, steering)
    return _host_problem(request, hosts, steering)


def _operator_problem(request: ControlRequest, application: SteeredApplication, steering: Steering | None) -> str:
    limits = {o.name: min(o.max_replicas, o.shards) if o.shards else o.max_replicas for o in application.operators}
    if request.operator not in limits:
        return (
            f"application {application.name!r} has no operator {request.operator!r}; {nearest(str(request.operator), limits)}"
        )
    if request.do == "unpin" and steering is not None and request.operator not in steering.pins:
        return f"{request.operator} is not pinned"
    most = limits[request.operator]
    if request.do == "pin" and not 1 <= (request.replicas or 0) <= most:
        return f"{request.operator} can have 1 to {most} replicas, not {request.replicas}"
    return ""


def _host_problem(request: ControlRequest, hosts: Collection[str], steering: Steering | None) -> str:
    if request.do == "drain" and request.host not in hosts:
        return f"there is no host {request.host!r}; {nearest(str(request.host), hosts)}"
    if request.do == "undrain" and steering is not None and request.host not in steering.draining:
        return f"{request.host} is not being drained"
    return ""


def in_words(control: ControlRecord) -> str:
    """What was done, or refused, and who asked for it: `pin count to 4 replicas (ada)`."""
    asked = ControlRequest(do=control.do, operator=control.operator, host=control.host, replicas=control.replicas)
    return f"{asked}{f': {control.note}' if control.note else ''} ({control.who})"


def followed(steering: Steering, request: ControlRequest) -> Steering:
    """How the run is steered once a request that is not refused is done."""
    pins, draining = dict(steering.pins), set(steering.draining)
    operator, host = request.operator or "", request.host or ""
    match request.do:
        case "pin":
            pins[operator] = request.replicas or 1
        case "unpin":
            pins.pop(operator, None)
        case "drain":
            draining.add(host)
        case "undrain":
            draining.discard(host)
    paused = {"pause": True, "resume": False}.get(request.do, steering.paused)
    return Steering(paused=paused, pins=pins, draining=frozenset(draining))
