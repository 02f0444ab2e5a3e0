"""How much several sources have their bursts at the same time: a forecast is one source's, and capacity is for all of them.

The quantiles of a sum are the sum of the quantiles only if all sources are high at once. How far that is so is seen in the
errors of the forecasts: with e_s the error of source s in cores' worth of work,

    together = sqrt(mean (sum_s e_s)^2) / sum_s sqrt(mean e_s^2)

is 1 if all err alike, and 1 / sqrt(n) if n sources of one kind err each for itself. A single source is always together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from springtide.model.protocols import View
from springtide.plan.placement.counts import service_time_s

_LEARNING = 0.02  # the share of a new error in what is learned
_ALL_ALIKE = 50  # errors alike that are taken to have been seen before the first


@dataclass(frozen=True, slots=True, kw_only=True)
class Bursts:
    """Mean squares of the errors so far, of each source and of all together, and the rates that are held likely to come now."""

    of_each: Mapping[str, float] = field(default_factory=dict)
    of_all: float = 0.0
    seen: int = 0
    foreseen_per_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def together(self) -> float:
        apart = sum(math.sqrt(square) for square in self.of_each.values())
        if len(self.of_each) < 2 or apart <= 0:
            return 1.0
        known = self.seen / (self.seen + _ALL_ALIKE)
        return 1.0 - known * (1.0 - min(1.0, math.sqrt(self.of_all) / apart))

    def then(self, view: View) -> Bursts:
        """With what this interval has shown, and what is foreseen for the next."""
        errors = self._errors(view)
        learnt = self if not errors else self._learnt(errors)
        return replace(learnt, foreseen_per_s=_middle_per_s(view))

    def _errors(self, view: View) -> dict[str, float]:
        """In cores' worth of work."""
        if len(self.foreseen_per_s) < 2:
            return {}
        came_per_s = {source: rows / view.observation.interval_s for source, rows in view.observation.source_rows.items()}
        row_s = {
            source: sum(gain * service_time_s(view, view.application.operator(name)) for name, gain in gains.items())
            for source, gains in view.gains.items()
        }
        return {
            source: (came_per_s.get(source, 0.0) - foreseen) * row_s.get(source, 0.0)
            for source, foreseen in self.foreseen_per_s.items()
        }

    def _learnt(self, errors: Mapping[str, float]) -> Bursts:
        share = max(_LEARNING, 1 / (self.seen + 1))
        return replace(
            self,
            of_each={s: _closer(self.of_each.get(s, 0.0), error**2, share) for s, error in errors.items()},
            of_all=_closer(self.of_all, sum(errors.values()) ** 2, share),
            seen=self.seen + 1,
        )


def _closer(known: float, measured: float, share: float) -> float:
    return known + share * (measured - known)


def _middle_per_s(view: View) -> dict[str, float]:
    return {} if view.forecast is None else {source: float(rates[0]) for source, rates in view.forecast.mean.items()}
