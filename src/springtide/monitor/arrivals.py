"""How fast rows arrive at a source that tells its offsets only when a batch is planned.

Two readings alone mislead: many sources hand rows out in steps of a second (the `rate` source, a producer that sends once a
second), and a batch may be planned just before a step or just after it. So the rate is the slope of a line through the readings
of the last seconds. A reading that lies further from the line than a step begins a new one: the load has changed.

When it changed, between that reading and the one before, is not known. A rate that rises is one that began to in the last third
of that time at the latest, as it does in two of three cases: it may be three times as far above the old one as it looks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_WINDOW_S = 12.0
_STEP_S = 1.0  # in which a source hands rows out
_LASTING = 3  # readings of a line, the first of them from before it began
_LATEST_RISE = 1 / 3  # of the time between two readings, before the second of them


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Readings of when a source had offered how many rows since it began, along a line.

    `changes` is how many readings in a row have begun a new line, 0 once one has lasted; `steady_rows_per_s` is the slope
    before the first of them.

    >>> arrivals = Arrivals().then(offered=100.0, at_s=10.0).then(offered=160.0, at_s=12.0)
    >>> arrivals.rows_per_s, arrivals.offered_by(now_s=15.0)
    (30.0, 250.0)

    A step more or less is no other rate, and two are:

    >>> round(arrivals.then(offered=190.0, at_s=14.0).rows_per_s, 1)
    22.5
    >>> arrivals.then(offered=560.0, at_s=14.0).rows_per_s
    200.0
    >>> arrivals.then(offered=560.0, at_s=14.0).rising_rows_per_s
    540.0
    """

    readings: tuple[tuple[float, float], ...] = ()
    steady_rows_per_s: float = 0.0
    changes: int = 0

    def then(self, offered: float, at_s: float) -> Arrivals:
        """With one more reading; the first one of a source that began anew."""
        if self.readings and at_s <= self.readings[-1][0]:
            return self
        if not self.readings or offered < self.readings[-1][1]:
            return Arrivals(((at_s, offered),))
        last_s, last = self.readings[-1]
        expected = self.rows_per_s * (at_s - last_s)
        usual = _STEP_S * self.rows_per_s + math.sqrt(max(1.0, expected))
        if len(self.readings) > 1 and abs(offered - self._on_line(at_s)) > usual:
            steady_rows_per_s = self.steady_rows_per_s if self.changes else self.rows_per_s
            return Arrivals(((last_s, last), (at_s, offered)), steady_rows_per_s, self.changes + 1)
        kept = tuple(reading for reading in self.readings[:-1] if reading[0] >= at_s - _WINDOW_S)
        lasts = len(kept) + 2 > _LASTING
        return Arrivals((*kept, self.readings[-1], (at_s, offered)), self.steady_rows_per_s, 0 if lasts else self.changes)

    def began_anew(self, before: Arrivals) -> bool:
        """Whether the source counts from another row than before."""
        return not before.readings or self.readings[-1][1] < before.readings[-1][1]

    @property
    def rows_per_s(self) -> float:
        """The slope of the line with the least squares; 0 with a single reading."""
        if len(self.readings) < 2:
            return 0.0
        mean_s, mean = self._centre()
        spread = sum((at_s - mean_s) ** 2 for at_s, _ in self.readings)
        return max(0.0, sum((at_s - mean_s) * (rows - mean) for at_s, rows in self.readings) / spread)

    @property
    def has_just_changed(self) -> bool:
        """Whether the last reading is the first with another rate."""
        return self.changes == 1 and len(self.readings) == 2

    @property
    def rising_rows_per_s(self) -> float | None:
        """What comes by now, as high as it may be, if the last readings showed a higher rate; else None."""
        if self.changes == 0:
            return None
        (earlier_s, earlier), (last_s, last) = self.readings[-2:]
        more_per_s = (last - earlier) / (last_s - earlier_s) - self.steady_rows_per_s
        if more_per_s <= 0:
            return None
        return self.steady_rows_per_s + more_per_s / (_LATEST_RISE if self.has_just_changed else 1.0)

    def offered_by(self, now_s: float) -> float:
        """Rows offered by now if the source goes on as before: never fewer than it said."""
        last_s, last = self.readings[-1]
        return max(last, self._on_line(max(now_s, last_s)))

    def _on_line(self, now_s: float) -> float:
        mean_s, mean = self._centre()
        return mean + self.rows_per_s * (now_s - mean_s)

    def _centre(self) -> tuple[float, float]:
        count = len(self.readings)
        return sum(at_s for at_s, _ in self.readings) / count, sum(rows for _, rows in self.readings) / count
