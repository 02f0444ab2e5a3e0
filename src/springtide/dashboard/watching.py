"""One journal and everybody who watches it: a single task follows the file, and all get the same bytes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import msgspec

from springtide.dashboard.cheapest import Cheapest, came, cheapest
from springtide.dashboard.decisions import control_entry
from springtide.dashboard.following import FollowedJournal
from springtide.dashboard.frames import RECENT_S, frame
from springtide.dashboard.series import newest_row
from springtide.dashboard.status import Status, status_of
from springtide.journal.records import ObservationRecord

POLL_S = 0.3
ORACLE_FIRST_S = 2.0  # after the beginning: who has just opened a page is answered first
ORACLE_S = 10.0  # between two looks at what the oracle would have paid
_ORACLE_SHARE = 0.02  # of the time, at most, that is spent on the oracle
_MOST_WAITING = 200  # events that a viewer may be behind, before the oldest are dropped
_MOST_FRAMES = 50  # of one look at the file: whoever is further behind reads the series again
_KEPT_FRAMES = 64


class Watched:
    """A followed journal, its status, and its viewers."""

    def __init__(
        self,
        number: int,
        journal: FollowedJournal,
        clock_s: Callable[[], float] = time.time,
        oracle_after_s: float = ORACLE_FIRST_S,
    ) -> None:
        self.number = number
        self.journal = journal
        self.best: Cheapest | None = None
        self._clock_s = clock_s
        self._viewers: set[asyncio.Queue[bytes | None]] = set()
        self._told: Status | None = None
        self._frames: dict[int, bytes] = {}
        self._oracle: asyncio.Task[None] | None = None
        self._oracle_due_s = time.monotonic() + oracle_after_s

    @property
    def viewers(self) -> int:
        return len(self._viewers)

    def status(self) -> Status:
        silent_s = max(0.0, self._clock_s() - self.journal.grew_at_s)
        return status_of(self.journal.index, failure=self.journal.failure, silent_s=silent_s)

    def frame(self, row: int) -> bytes:
        """The picture of a row, encoded; the last few are kept, because all viewers look at the same."""
        found = self._frames.get(row)
        if found is None:
            before = self.journal.observed(row - 1) if row > 0 else None
            found = self._frames[row] = msgspec.json.encode(frame(self._recent(row), before))
            if len(self._frames) > _KEPT_FRAMES:
                del self._frames[next(iter(self._frames))]
        return found

    def _recent(self, row: int) -> list[ObservationRecord]:
        """The observation of a row, after those of the rows before it that rates are told over."""
        rows, first = self.journal.index.rows, row
        while first > 0 and rows["time_s"][row] - rows["start_s"][first - 1] <= RECENT_S:
            first -= 1
        return [self.journal.observation(one) for one in range(first, row + 1)]

    async def follow(self) -> None:
        """Look at the file again and again, and tell the viewers what is new. Ends when it is cancelled."""
        try:
            while True:
                await self.look()
                await asyncio.sleep(POLL_S)
        finally:
            if self._oracle is not None:
                self._oracle.cancel()

    async def look(self) -> None:
        """Read what is new and tell it; let others have their turn between two blocks."""
        index = self.journal.index
        more = True
        while more:
            rows, controls = len(index), len(index.controls)
            more = self.journal.read_more()
            status = self.status()
            if self._viewers:
                for row in range(max(rows, len(index) - _MOST_FRAMES), len(index)):
                    self._tell(self._frame_event(row, status))
                for control in index.controls[controls:]:
                    self._tell(event("control", control_entry(control), control.interval))
            self._tell_status(status)
            await asyncio.sleep(0)
        self._refresh_oracle()

    async def events(self) -> AsyncIterator[bytes]:
        """What is so now, and then all that is new, as server-sent events."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(_MOST_WAITING)
        self._viewers.add(queue)
        try:
            status = self.status()
            yield event("status", _said(status))
            if len(self.journal.index):
                yield self._frame_event(len(self.journal.index) - 1, status)
            goes_on = True
            while goes_on:
                waiting = [await queue.get()]
                while not queue.empty():
                    waiting.append(queue.get_nowait())
                goes_on = waiting[-1] is not None
                if told := b"".join(one for one in waiting if one is not None):  # in one piece: sending is what costs
                    yield told
        finally:
            self._viewers.discard(queue)

    def dismiss(self) -> None:
        """End everybody's events: the server stops."""
        self._tell(None)

    def _tell(self, said: bytes | None) -> None:
        for queue in self._viewers:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(said)

    def _tell_status(self, status: Status) -> None:
        if self._told is None or status.state is not self._told.state:
            self._tell(event("status", _said(status)))
        self._told = status

    def _frame_event(self, row: int, status: Status) -> bytes:
        interval = int(self.journal.index.places["interval"][row])
        figures = newest_row(self.journal.index, self.best, row)
        return event("frame", {**figures, "interval": interval, "status": status.state}, interval)

    def _refresh_oracle(self) -> None:
        """Work it out in a thread, if something came since, and not too often."""
        index = self.journal.index
        known = 0 if self.best is None else len(self.best.core_h)
        if known == len(index) or time.monotonic() < self._oracle_due_s or (self._oracle and not self._oracle.done()):
            return
        what_came = came(index)
        if what_came is None:
            return

        async def work_out() -> None:
            began_s = time.monotonic()
            self.best = await asyncio.to_thread(cheapest, what_came)
            self._tell(event("oracle", {"intervals": len(self.best.core_h)}))
            now_s = time.monotonic()
            self._oracle_due_s = now_s + max(ORACLE_S, (now_s - began_s) / _ORACLE_SHARE)

        self._oracle = asyncio.create_task(work_out())


async def follow_all(runs: list[Watched]) -> None:
    """Follow all journals, until cancelled."""
    with suppress(asyncio.CancelledError):
        await asyncio.gather(*(run.follow() for run in runs))


def event(name: str, data: dict[str, Any], number: int | None = None) -> bytes:
    """A server-sent event: JSON has no line ends of its own, so that it is one line of data."""
    identity = b"" if number is None else b"id: %d\r\n" % number
    return b"event: " + name.encode() + b"\r\n" + identity + b"data: " + msgspec.json.encode(data) + b"\r\n\r\n"


def _said(status: Status) -> dict[str, str]:
    return {"status": status.state.value, "status_text": status.text}
