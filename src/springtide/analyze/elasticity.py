"""How closely the supply of hosts followed the demand for them: the elasticity metrics of SPEC's research group.

Reference: N. R. Herbst et al.: "Quantifying Cloud Performance and Dependability: Taxonomy, Metric Design, and Emerging
Challenges", ACM TOMPECS 3(4), 2018. Demand is the fewest hosts that keep the objective at the load of the moment. Both are
sampled every `step_s` seconds.

| symbol | field | meaning |
|---|---|---|
| theta_U, theta_O | under_percent, over_percent | hosts that were missing, or too many, by the demand: mean over time |
| tau_U, tau_O | under_time_percent, over_time_percent | share of time with too few hosts, with too many |
| upsilon | instability_percent | share of time in which supply and demand did not change in the same direction |

Variant: theta_U and theta_O are both divided by the demand, of one host at least, so theta_O can be above 100 %.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from springtide.errors import require
from springtide.model.observation import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Elasticity:
    """The metrics of one run. `adaptations` is how often the supply changed."""

    under_percent: float
    over_percent: float
    under_time_percent: float
    over_time_percent: float
    instability_percent: float
    adaptations: int

    def speed_up(self, baseline: Elasticity, least_percent: float) -> float:
        """How many times as elastic as a baseline: the geometric mean of the four ratios; above 1 is better.

        No term counts as less than `least_percent`, which is one sample's worth: 100 times the step over the duration.
        """
        mine, other = (np.maximum(least_percent, one.accuracies) for one in (self, baseline))
        return float(np.prod(other / mine) ** 0.25)

    @property
    def accuracies(self) -> FloatArray:
        return np.array([self.under_percent, self.over_percent, self.under_time_percent, self.over_time_percent])


def measure_elasticity(demand: FloatArray, supply: FloatArray) -> Elasticity:
    """The metrics of a supply beside a demand, sampled at the same times.

    >>> found = measure_elasticity(np.array([1.0, 2.0, 2.0, 1.0]), np.array([1.0, 1.0, 2.0, 2.0]))
    >>> found.under_percent, found.over_percent, found.under_time_percent, found.over_time_percent
    (12.5, 25.0, 25.0, 25.0)
    >>> found.instability_percent, found.adaptations
    (100.0, 1)
    """
    require(len(demand) == len(supply) > 0, "demand and supply must be sampled at the same times, once at least")
    least = np.maximum(1.0, demand)
    missing, surplus = np.maximum(0.0, demand - supply), np.maximum(0.0, supply - demand)
    supplied, demanded = np.sign(np.diff(supply)), np.sign(np.diff(demand))
    return Elasticity(
        under_percent=100 * float(np.mean(missing / least)),
        over_percent=100 * float(np.mean(surplus / least)),
        under_time_percent=100 * float(np.mean(missing > 0)),
        over_time_percent=100 * float(np.mean(surplus > 0)),
        instability_percent=100 * float(np.mean(supplied != demanded)) if len(demand) > 1 else 0.0,
        adaptations=int(np.count_nonzero(supplied)),
    )
