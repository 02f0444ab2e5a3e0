"""Time that a row costs: of a processor, really spent, or of waiting."""

from __future__ import annotations

import time


def spend(cost_s: float, *, waits: bool = False) -> None:
    """Keep this thread's processor busy for `cost_s` of its own time, or wait as long.

    What is measured is the processor's time for this thread, not the clock's: where threads share a core, or another
    process takes it, the same work is done, and it is done later.
    """
    if waits:
        time.sleep(cost_s)
        return
    until_s = time.thread_time() + cost_s
    while time.thread_time() < until_s:
        pass
