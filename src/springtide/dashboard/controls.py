"""What may be asked of a run by hand, checked against the run, and written beside its journal.

The file `<journal>.controls` has one JSON object per line. The run reads it at the end of every interval, does what it says,
and keeps that in the journal: what is shown as paused or pinned is what the journal says, never what was only asked for.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from springtide.dashboard.index import Index
from springtide.dashboard.parts import OperatorPart, RunPart
from springtide.errors import SpringtideError, nearest

DOINGS = ("pause", "resume", "pin", "unpin", "drain", "undrain")
MOST_REPLICAS = 10_000


class Wish(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The body of a request."""

    do: str
    operator: str | None = None
    host: str | None = None
    replicas: int | None = None


class NotNow(SpringtideError):
    """It is understood, and this run cannot do it."""


def read_wish(body: bytes) -> Wish:
    try:
        return msgspec.json.decode(body, type=Wish)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SpringtideError(f"the body is not a control: {error}") from error


def why_unavailable(index: Index, *, allowed: bool, failed: bool) -> str:
    """Why nothing can be asked of a run; empty if it can."""
    if not allowed:
        return "the dashboard was started with --no-controls"
    if failed:
        return "the journal cannot be read any more"
    if index.run is None:
        return "the run has not begun yet"
    if index.end is not None:
        return "the run has ended"
    if not index.run.live:
        return "the run is not live: it was simulated, or nothing reads its controls"
    return ""


def checked(wish: Wish, run: RunPart, hosts: list[str]) -> str:
    """What was asked for, in words, once it is known to make sense for the run as it is now; an error otherwise."""
    if wish.do not in DOINGS:
        raise SpringtideError(f"there is no control {wish.do!r}; {nearest(wish.do, DOINGS)}")
    _only_what_belongs(wish)
    match wish.do:
        case "pin":
            operator = _operator(wish, run)
            if wish.replicas is None:
                raise SpringtideError("pin needs a number of replicas")
            most = min(operator.max_replicas, operator.shards or operator.max_replicas, MOST_REPLICAS)
            if not 1 <= wish.replicas <= most:
                raise SpringtideError(f"{operator.name} can have 1 to {most} replicas, not {wish.replicas}")
            return f"pin {operator.name} to {wish.replicas} replica{'s' if wish.replicas != 1 else ''}"
        case "unpin":
            return f"unpin {_operator(wish, run).name}"
        case "drain" | "undrain":
            if wish.host is None:
                raise SpringtideError(f"{wish.do} needs a host")
            if wish.do == "drain" and wish.host not in hosts:
                raise SpringtideError(f"there is no host {wish.host!r} now; {nearest(wish.host, hosts)}")
            return f"{wish.do} {wish.host}"
        case _:
            return f"{wish.do} the policy's decisions"


def append(journal: Path, wish: Wish, who: str) -> None:
    """One line, in one write: two that write at once do not mix."""
    said = {**msgspec.structs.asdict(wish), "who": who, "said_at": datetime.now(UTC).isoformat(timespec="seconds")}
    line = msgspec.json.encode(said) + b"\n"
    path = journal.with_name(journal.name + ".controls")
    try:
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        try:
            size_bytes = os.fstat(fd).st_size
            torn = size_bytes > 0 and os.pread(fd, 1, size_bytes - 1) != b"\n"
            os.write(fd, b"\n" + line if torn else line)  # somebody was killed while asking: what they said stays apart
        finally:
            os.close(fd)
    except OSError as error:
        raise NotNow(f"cannot write {path.name}: {error.strerror}") from error


def _operator(wish: Wish, run: RunPart) -> OperatorPart:
    names: dict[str, Any] = {operator.name: operator for operator in run.application.operators}
    if wish.operator is None:
        raise SpringtideError(f"{wish.do} needs an operator")
    if wish.operator not in names:
        raise SpringtideError(f"there is no operator {wish.operator!r}; {nearest(wish.operator, names)}")
    operator: OperatorPart = names[wish.operator]
    return operator


def _only_what_belongs(wish: Wish) -> None:
    takes = {"pin": {"operator", "replicas"}, "unpin": {"operator"}, "drain": {"host"}, "undrain": {"host"}}.get(wish.do, set())
    for name in ("operator", "host", "replicas"):
        if getattr(wish, name) is not None and name not in takes:
            raise SpringtideError(f"{wish.do} takes no {name}")
