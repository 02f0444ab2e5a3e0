"""How a run is doing, in one word for programs and one sentence for people."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from springtide.dashboard.index import Index

STALE_INTERVALS = 3
STALE_S = 10.0
STARTING_S = 120.0  # Spark takes a while to start, and more for an application whose state is large


class State(StrEnum):
    EMPTY = "empty"
    STARTING = "starting"
    RUNNING = "running"
    STALE = "stale"
    ENDED = "ended"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Status:
    state: State
    text: str


def status_of(index: Index, *, failure: str | None, silent_s: float) -> Status:
    """The status of a run whose file last grew `silent_s` ago."""
    if failure is not None:
        return Status(State.FAILED, failure)
    if index.run is None:
        return Status(State.EMPTY, "Nothing has been written yet: waiting for the run to begin.")
    if index.end is not None:
        return Status(State.ENDED, f"The run has ended after {duration(index.end.time_s)}.")
    patience_s = max(STALE_INTERVALS * index.run.interval_s, STALE_S if len(index) else STARTING_S)
    if silent_s > patience_s:
        return Status(
            State.STALE,
            f"Nothing has been written for {duration(silent_s)}: the run was killed, or it stands still. "
            "See whether its process is still there.",
        )
    if not len(index):
        return Status(State.STARTING, "The run is starting: its first interval is not over yet.")
    return Status(State.RUNNING, f"The run is going on, {duration(float(index.rows['time_s'][-1]))} after it began.")


def duration(seconds: float) -> str:
    """A time in the two largest units that it has.

    >>> duration(45), duration(754), duration(7320), duration(180000)
    ('45 s', '12 min 34 s', '2 h 2 min', '2 d 2 h')
    """
    left, words = round(max(0.0, seconds)), []
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            words.append(f"{count} {unit}")
    return " ".join(words[:2]) or "0 s"
