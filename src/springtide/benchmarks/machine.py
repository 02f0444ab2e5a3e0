"""The machine that figures were measured on, and a benchmark that is told to end on it."""

from __future__ import annotations

import os
import platform
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


def machine() -> str:
    """Its processor and cores, as a table's title says them."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            model = next((line.split(":", 1)[1].strip() for line in info if line.startswith("model name")), model)
    except OSError:
        pass  # not Linux: the architecture's name has to do
    return f"{model}, {os.cpu_count()} cores"


@contextmanager
def ended_politely() -> Iterator[None]:
    """A polite kill ends what was started and removes the folders, as Ctrl-C does."""

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
