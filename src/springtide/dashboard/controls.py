"""What may be asked of a run by hand, checked against the run, and put where it reads it (`journal.controls`).

What is shown as paused or pinned is what the journal says, never what was only asked for.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from springtide.dashboard.index import Index
from springtide.dashboard.parts import RunPart
from springtide.errors import SpringtideError
from springtide.journal.controls import NEEDED, ControlRequest, append_control, refusal


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


def checked(wish: Wish, run: RunPart, hosts: list[str]) -> ControlRequest:
    """What is asked for, once it is known to make sense for the run as it is now; an error otherwise."""
    request = ControlRequest(do=wish.do, operator=wish.operator, host=wish.host, replicas=wish.replicas)
    if why := refusal(request, run.application, hosts):
        raise SpringtideError(why)
    _only_what_belongs(wish)
    return request


def ask(journal: Path, request: ControlRequest, who: str) -> None:
    try:
        append_control(journal, msgspec.structs.replace(request, who=who))
    except SpringtideError as error:
        raise NotNow(str(error)) from error


def _only_what_belongs(wish: Wish) -> None:
    for name in ("operator", "host", "replicas"):
        if getattr(wish, name) is not None and name not in NEEDED[wish.do]:
            raise SpringtideError(f"{wish.do} takes no {name}")
