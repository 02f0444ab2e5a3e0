"""How often a policy took back what it had just done with hosts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from springtide.report.summary import Point

WINDOW_S = 600.0


def oscillations(points: Sequence[Point], window_s: float = WINDOW_S) -> int:
    """How often the number of hosts went up and, within `window_s`, down again, or down and up again.

    Each change is compared with the change before it, so that three hosts, four, three, four are two oscillations.
    """
    found, last_s, last_direction = 0, 0.0, 0
    for before, after in pairwise(points):
        direction = (after.hosts > before.hosts) - (after.hosts < before.hosts)
        if direction == 0:
            continue
        found += direction == -last_direction and after.time_s - last_s <= window_s
        last_s, last_direction = after.time_s, direction
    return found
