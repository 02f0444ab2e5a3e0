"""How often the batches of a query start: the end of a batch is delayed, and Spark plans the next one after it.

Spark reads a trigger interval once, when a query starts. The function that it calls with each batch may return later, though:
rows have left by then, and the next batch takes what has come meanwhile. So the interval changes without a restart.

Where the user has set a trigger interval, Spark starts batches at its multiples only; so intervals are multiples of it, too.
"""

from __future__ import annotations

import math
import threading
import time


class Pacing:
    """Delays for one query. `bounds_s` are the shortest and the longest interval there may be: the shortest is the user's."""

    def __init__(self, least_s: float = 0.0) -> None:
        self.bounds_s = (least_s, math.inf)
        self._trigger_s = least_s
        self._changed = threading.Condition()
        self._ended = False
        self._returned_s = math.inf  # when the last batch was given back to Spark
        self._around_s = math.inf  # what Spark takes from there until it hands over the next batch, at the least

    @property
    def trigger_s(self) -> float:
        return self._trigger_s

    def limit_to(self, least_s: float, most_s: float) -> None:
        """Set the bounds, once they are known."""
        self.bounds_s = (least_s, most_s)
        self.set(self._trigger_s)

    def set(self, trigger_s: float) -> None:
        """Start batches every so many seconds at most; a batch that waits now follows it, too."""
        least_s, most_s = self.bounds_s
        with self._changed:
            self._trigger_s = min(max(trigger_s, least_s), most_s)
            self._changed.notify_all()

    def batch_begins(self, now_s: float) -> None:
        self._around_s = min(max(0.0, now_s - self._returned_s), 1.1 * self._around_s + 0.01)

    def delay_end(self, began_s: float) -> None:
        """Return once the next batch may be planned."""
        with self._changed:
            while not self._ended and (left_s := self._left_s(began_s)) > 0:
                self._changed.wait(left_s)
        self._returned_s = time.time()

    def end(self) -> None:
        """Delay nothing any more: the query is being stopped."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def begin(self) -> None:
        self._ended = False

    def _left_s(self, began_s: float) -> float:
        least_s = self.bounds_s[0]
        if self._trigger_s <= least_s:  # Spark's own trigger sees to it
            return 0.0
        if least_s > 0:  # Spark waits for the next multiple of its interval, and must not have missed the right one
            return began_s + self._trigger_s - least_s / 2 - time.time()
        around_s = self._around_s if math.isfinite(self._around_s) else 0.0
        return began_s + self._trigger_s - around_s - time.time()
