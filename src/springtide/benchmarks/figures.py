"""What a case reports: figures with their unit, their spread, and a bar where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from springtide.errors import require


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What a figure has to be: at most `limit`, or at least."""

    limit: float
    at_least: bool = False

    def met(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.limit:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """The median of what was measured again and again; half of the samples lie between `low` and `high`."""

    case: str
    what: str
    unit: str
    value: float
    low: float
    high: float
    samples: list[float]
    bar: Bar | None
    met: bool | None


def figure(case: str, what: str, unit: str, samples: Sequence[float], bar: Bar | None = None) -> Figure:
    """A figure from its samples.

    >>> figure("pauses", "one shard", "s", [1.0, 5.0, 2.0], Bar(limit=2.0)).met
    True
    """
    require(bool(samples), f"{case}: {what} was never measured")
    value = float(median(samples))
    low, high = np.percentile(samples, [25, 75]).tolist()
    return Figure(
        case=case,
        what=what,
        unit=unit,
        value=value,
        low=low,
        high=high,
        samples=[float(s) for s in samples],
        bar=bar,
        met=None if bar is None else bar.met(value),
    )
