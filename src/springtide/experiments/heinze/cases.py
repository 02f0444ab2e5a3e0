"""The runs of the study, and what came of each, averaged over the draws.

A case is a technique with its parameters on a day; it is run once for every draw of the queries (a seed). Cases that
several figures share are run once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from springtide.errors import require
from springtide.experiments.heinze.paper import DEFAULT, DEFAULT_LEARNING, Configuration, Learning
from springtide.experiments.heinze.world import DAYS, INTERVAL_S, RUN_S, TARGET
from springtide.experiments.study import Finding, Values

LOCAL, GLOBAL, SARSA, TIDE = "local-thresholds", "global-thresholds", "sarsa", "tide"

CONSECUTIVE = 3  # measurements
DEFAULT_GRACE_S = 60.0
POINTS = RUN_S / INTERVAL_S

# tide's defaults, 10 changes an hour of 120 s each, for a day that passes 8.5 times as fast. It may use half of the ticks that
# its objective allows to be late: thresholds keep no reserve at all.
_REPLAYED = {"changes_per_hour": 85.0, "change_s": 14.0, "spend": 0.5}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is run. `tide` has neither thresholds nor a table that learns: it is told the objective."""

    technique: str
    configuration: Configuration = DEFAULT
    learning: Learning = DEFAULT_LEARNING
    day: str = DAYS[0]
    grace_s: float = DEFAULT_GRACE_S
    consecutive: int = CONSECUTIVE

    @property
    def parameters(self) -> Values:
        return {"technique": self.technique, "day": self.day, "with": self._with()}

    def _with(self) -> dict[str, float]:
        if self.technique == TIDE:
            return dict(_REPLAYED)
        thresholds = {
            "lower": self.configuration.lower,
            "upper": self.configuration.upper,
            "target": TARGET,
            "consecutive": self.consecutive,
            "grace_s": self.grace_s,
        }
        if self.technique != SARSA:
            return thresholds
        return {**thresholds, "impact": self.learning.impact, "duration_visits": self.learning.duration_visits}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """A run's figures, or the means of several runs': loads as shares of a host, latencies in ms, the rest in numbers."""

    load_min: float
    load_mean: float
    load_max: float
    latency_p10_ms: float
    latency_p50_ms: float
    latency_p90_ms: float
    latency_mean_ms: float
    hosts: float
    moves: float
    hosts_added: float

    @property
    def host_life_points(self) -> float:
        """For how many measurements a host lasts, on average."""
        return self.hosts * POINTS / max(1.0, self.hosts_added)


class Results:
    """What was found, by case."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self._findings = findings

    def has(self, case: Case) -> bool:
        return any(f.run.parameters == case.parameters for f in self._findings)

    def draws(self, case: Case) -> list[Figures]:
        """One for each seed, in their order."""
        mine = sorted((f for f in self._findings if f.run.parameters == case.parameters), key=lambda f: f.run.seed)
        require(bool(mine), f"nothing was found of {case}")
        return [Figures(**{name: float(f.found[name]) for name in Figures.__slots__}) for f in mine]

    def mean(self, case: Case) -> Figures:
        draws = self.draws(case)
        return Figures(**{name: float(np.mean([getattr(draw, name) for draw in draws])) for name in Figures.__slots__})
