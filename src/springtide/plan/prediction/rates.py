"""The rates of the sources: those of the interval just measured, the last few, and those that are to come.

A forecast in the view always comes first. Without one, a rate is taken to stay as it is, or to follow the straight line through
the last few (ordinary least squares). No rate is below 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from springtide.model.protocols import View

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class RecentRates:
    """The last rates of each source, in rows per second, oldest first."""

    of: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def then(self, view: View, keep: int) -> RecentRates:
        """With the interval just measured, and no more than `keep` of them."""
        return RecentRates({name: (*self.of.get(name, ()), rate)[-keep:] for name, rate in present_rates(view).items()})

    def ahead(self, intervals: int) -> dict[str, float]:
        """The rates so many intervals after the last, on the straight line through those that are kept."""
        return {name: on_line(rates, intervals) for name, rates in self.of.items()}


def present_rates(view: View) -> dict[str, float]:
    """Rows per second that each source offered in the interval just measured."""
    return {name: rows / view.observation.interval_s for name, rows in view.observation.source_rows.items()}


def forecast_rates(view: View, intervals: int) -> dict[str, float] | None:
    """The mean that is forecast for so many intervals ahead: the last one known if the forecast ends before.

    None without a forecast, and when it does not say a number for every source.
    """
    if view.forecast is None:
        return None
    step = max(0, math.ceil(intervals * view.observation.interval_s / view.forecast.interval_s - _ROUNDING) - 1)
    found = {}
    for source in view.observation.source_rows:
        rates = view.forecast.mean.get(source)
        if rates is None or not len(rates):
            return None
        rate = float(rates[min(step, len(rates) - 1)])
        if not math.isfinite(rate):
            return None
        found[source] = max(0.0, rate)
    return found


def on_line(rates: Sequence[float], intervals: int) -> float:
    """Where the straight line through the rates will be so many intervals after the last of them.

    >>> on_line([10.0, 12.0, 14.0], 1), on_line([10.0, 6.0, 2.0], 2), on_line([7.0], 3)
    (16.0, 0.0, 7.0)
    """
    count = len(rates)
    middle = (count - 1) / 2
    mean = sum(rates) / count
    spread = sum((i - middle) ** 2 for i in range(count))
    if not spread:
        return mean
    slope = sum((i - middle) * rate for i, rate in enumerate(rates)) / spread
    return max(0.0, mean + slope * (count - 1 + intervals - middle))
