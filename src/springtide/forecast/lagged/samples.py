"""What can be learnt from windows: at every interval, not only where a window ends.

Windows may leave origins out, always the same time of an hour for instance. The series they were cut from has the others.
Rules: no rate is learnt that was missing in the recording, and no past is used of which the windows do not show every rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from springtide.errors import require
from springtide.model.observation import FloatArray
from springtide.model.windows import Windows

IntArray = NDArray[np.int64]

_LEAST_ORIGINS = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """`targets` are the rates that may be learnt, NaN where there is none, and go on with NaN beyond the series. A past that
    ends at one of the `origins` is known in full."""

    series: FloatArray
    targets: FloatArray
    origins: IntArray
    steps: int

    def some(self, most: int, rng: np.random.Generator) -> IntArray:
        """At most so many of the origins."""
        if len(self.origins) <= most:
            return self.origins
        return np.sort(rng.choice(self.origins, most, replace=False))

    def distances(self, origins: int, each: int, rng: np.random.Generator) -> IntArray:
        """So many distances for each origin: 1, and others as often near as far, by their logarithm."""
        drawn = np.exp(rng.uniform(0.0, np.log(self.steps + 1.0), (origins, each))).astype(np.int64)
        drawn[:, 0] = 1
        return np.minimum(drawn, self.steps)

    def changes(self, origins: IntArray, distances: IntArray) -> FloatArray:
        """How far the rate is from that of the origin, at each one's distances; NaN where it is not known."""
        found: FloatArray = self.targets[origins[:, None] + distances] - self.series[origins][:, None]
        return found


def samples_of(windows: Windows) -> Samples:
    past, steps = windows.past.shape[1], windows.steps
    require(len(windows) > 0 and steps > 0, f"nothing can be learnt from {len(windows)} windows of {steps} future rates")
    series = windows.series()
    targets = np.full(len(series) + steps, np.nan)
    seen = np.zeros(len(series), bool)
    for origin, future in zip(windows.origins - windows.origins[0] + past - 1, windows.future, strict=True):
        known = np.isfinite(future)
        after = slice(origin + 1, origin + 1 + steps)
        targets[after][known] = future[known]
        seen[after] |= known
        seen[origin + 1 - past : origin + 1] = True
    whole = np.convolve(seen, np.ones(past), "valid") > past - 0.5
    origins = np.flatnonzero(whole) + past - 1
    origins = origins[np.isfinite(targets[origins + 1])]
    require(
        len(origins) >= _LEAST_ORIGINS,
        f"{len(origins)} pasts with a next rate are too few to learn from: at least {_LEAST_ORIGINS} are needed",
    )
    return Samples(series=series, targets=targets, origins=origins, steps=steps)
