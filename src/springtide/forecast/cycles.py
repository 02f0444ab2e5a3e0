"""What was at the same time a cycle ago."""

from __future__ import annotations

import numpy as np

from springtide.errors import require
from springtide.model.observation import FloatArray
from springtide.model.windows import Windows, steps_per_day


def repeated(past: FloatArray, cycle: int, steps: int) -> FloatArray:
    """The last cycle of each row, over and over.

    >>> repeated(np.array([[1.0, 2.0, 3.0]]), 2, 3)
    array([[2., 3., 2.]])
    """
    found: FloatArray = past[:, past.shape[1] - cycle + np.arange(steps) % cycle]
    return found


def cycle_in(windows: Windows, days: int) -> int:
    """How many intervals so many days have, which the past of the windows must hold."""
    cycle = days * steps_per_day(windows.interval_s)
    past = windows.past.shape[1]
    require(cycle <= past, f"{days} d of past rates are needed, {cycle:,} of them, and the windows have {past:,}")
    return cycle
