"""Interrupts that wait for a good moment.

An exception in the middle of a call to Spark's driver spoils the connection for the calls that would stop Spark. So while a
run goes on Ctrl-C and a polite kill are only noted, and raised when it has stopped; a second one does not wait.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(slots=True)
class Interrupts:
    """`stop` is called when the first one comes."""

    stop: Callable[[], None] = field(default=lambda: None)
    number: int = 0

    def note(self, number: int, _: FrameType | None) -> None:
        if self.number:
            raise KeyboardInterrupt
        self.number = number
        self.stop()

    def raise_noted(self) -> None:
        if self.number == signal.SIGINT:
            raise KeyboardInterrupt
        if self.number:
            raise SystemExit(128 + self.number)


@contextmanager
def noted() -> Iterator[Interrupts]:
    """Note interrupts within the block, and raise one at its end, whatever else was raised in it."""
    interrupts = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = {number: signal.signal(number, interrupts.note) for number in _SIGNALS}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        interrupts.raise_noted()
