"""How often batches start: as seldom as the objective allows, because what a batch costs beside its rows is paid once for each.

Operators that read a source follow a trigger interval; the others start a batch when rows reach them (`sizing.batches`).
T. Das, Y. Zhong, I. Stoica, S. Shenker ("Adaptive Stream Processing using Dynamic Batch Sizing", SoCC 2014) adapt the interval
of a fixed cluster to its load; here it follows the objective, too, and the number of hosts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from springtide.model.application import SLO
from springtide.model.observation import FloatArray
from springtide.plan.sizing.batches import BatchModel

_RESERVE = 0.5  # of the objective's latency: rows are to leave within it, and the rest is for what comes unforeseen
_WORTH = 1.25  # times as long as the shortest: a smaller difference is not worth a change
_STILL_WORTH = 1.05  # the same for an interval that is in force
_STEADY = (0.7, 1.15)  # of the interval that would be best: one in between stays as it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often batches start, what they take beside their rows then, and what they would take at their shortest."""

    trigger_s: float
    fixed_cores: float = 0.0
    shortest_fixed_cores: float = 0.0

    @property
    def saved_cores(self) -> float:
        return max(0.0, self.shortest_fixed_cores - self.fixed_cores)


def choose_pace(
    model: BatchModel, slo: SLO, *, slots: float, factor: float = 1.0, bias: float = 1.0, most_s: float = np.inf
) -> Pace:
    """The pace that keeps the objective with some reserve, at a multiple of the present demand.

    `bias` is what measured latencies are of predicted ones. Nobody waits longer than `most_s` for a batch without need. Where
    the objective leaves no time for batches that are kept apart, they follow one another at once.
    """
    on: FloatArray = np.array([slots])
    shortest_s = float(model.shortest_s(on, factor)[0])
    longest_s = min(float(model.longest_s(slo.percentile, _RESERVE * slo.latency_s / bias, on, factor)[0]), most_s)
    worth = _STILL_WORTH if model.trigger_s > shortest_s else _WORTH
    wanted_s = longest_s if longest_s >= worth * shortest_s else 0.0
    stays = wanted_s > 0 and _STEADY[0] * wanted_s <= model.trigger_s <= _STEADY[1] * wanted_s
    least_s, most_s = model.bounds_s
    if least_s > 0:  # batches start at its multiples only
        wanted_s = least_s * (wanted_s // least_s)
    trigger_s = min(max(model.trigger_s if stays else wanted_s, least_s), most_s)
    if trigger_s <= shortest_s:
        return Pace(trigger_s=trigger_s)
    return Pace(
        trigger_s=trigger_s,
        fixed_cores=float(model.fixed_cores(on, trigger_s)[0]),
        shortest_fixed_cores=float(model.fixed_cores(on)[0]),
    )
