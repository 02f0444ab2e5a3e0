"""Many who watch one run, in a process of their own: each has its stream of events, as an open page has.

    python -m springtide.benchmarks.dashboard.viewers http://127.0.0.1:8765 50

says `ready` once everybody has seen an interval, reads the number of the last one that they shall see, and when they have,
writes who has seen what, and when, as JSON.
"""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import msgspec

_PATIENCE_S = 30.0
_ID = b"id: "


@dataclass(slots=True, kw_only=True)
class Seen:
    """By interval: how many viewers saw it, and when the last of them did, in the machine's own time."""

    viewers: dict[int, int] = field(default_factory=dict)
    last_at_s: dict[int, float] = field(default_factory=dict)

    def note(self, interval: int) -> None:
        self.viewers[interval] = self.viewers.get(interval, 0) + 1
        self.last_at_s[interval] = time.time()


class _Crowd:
    """All viewers of one run."""

    def __init__(self, base: str, count: int) -> None:
        place = urlsplit(base)
        assert place.hostname is not None
        assert place.port is not None
        self._host, self._port = place.hostname, place.port
        self._count = count
        self._latest = [-1] * count
        self._one_more = asyncio.Condition()
        self.seen = Seen()

    async def watch(self) -> None:
        await asyncio.gather(*(self._view(number) for number in range(self._count)))

    async def until(self, interval: int) -> None:
        """Wait until everybody has seen this interval, or a later one."""
        async with self._one_more:
            await asyncio.wait_for(self._one_more.wait_for(lambda: min(self._latest) >= interval), _PATIENCE_S)

    async def _view(self, number: int) -> None:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            asked = f"GET /api/runs/0/events HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nAccept: text/event-stream\r\n\r\n"
            writer.write(asked.encode())
            async for line in reader:
                if line.startswith(_ID):
                    await self._saw(number, int(line[len(_ID) :]))
        finally:
            writer.close()

    async def _saw(self, number: int, interval: int) -> None:
        self.seen.note(interval)
        async with self._one_more:
            self._latest[number] = interval
            self._one_more.notify_all()


async def _watch(base: str, count: int) -> Seen:
    crowd = _Crowd(base, count)
    watching = asyncio.create_task(crowd.watch())
    try:
        await crowd.until(0)
        print("ready", flush=True)
        last = await asyncio.to_thread(sys.stdin.readline)
        if last:
            await crowd.until(int(last))
    finally:
        watching.cancel()
    return crowd.seen


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(asyncio.run(_watch(sys.argv[1], int(sys.argv[2])))) + b"\n")
