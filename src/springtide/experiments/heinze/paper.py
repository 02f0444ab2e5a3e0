"""What the paper's text says of its results, in section V. Its bars are in figures only, and their heights are not in the
text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

REFERENCE = (
    "T. Heinze, V. Pappalardo, Z. Jerzak, C. Fetzer. Auto-scaling Techniques for Elastic Data Stream Processing. IEEE "
    "30th International Conference on Data Engineering Workshops (ICDEW), 2014, pp. 296-302."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The two thresholds of section V.A, as shares of a host."""

    name: str
    lower: float
    upper: float


DEFAULT = Configuration(name="default", lower=0.3, upper=0.8)
LOWER_DOWN = Configuration(name="lower threshold 0.2", lower=0.2, upper=0.8)
LOWER_UP = Configuration(name="lower threshold 0.4", lower=0.4, upper=0.8)
UPPER_DOWN = Configuration(name="upper threshold 0.7", lower=0.3, upper=0.7)
UPPER_UP = Configuration(name="upper threshold 0.9", lower=0.3, upper=0.9)
CONFIGURATIONS = (DEFAULT, LOWER_DOWN, LOWER_UP, UPPER_DOWN, UPPER_UP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """The learning of section V.C: imp and dur."""

    name: str
    impact: float
    duration_visits: float


DEFAULT_LEARNING = Learning(name="default learning", impact=0.2, duration_visits=80)
NO_LEARNING = Learning(name="no learning", impact=0.0, duration_visits=80)
INTENSIVE_LEARNING = Learning(name="more intensive learning", impact=0.5, duration_visits=80)
LONGER_LEARNING = Learning(name="longer learning", impact=0.2, duration_visits=160)
LEARNINGS = (NO_LEARNING, DEFAULT_LEARNING, INTENSIVE_LEARNING, LONGER_LEARNING)

# Default configuration, Day1: mean load of a host, and the 90th percentile of latency in ms. Those of reinforcement learning
# are section V.C's, which does not say which latency it means.
LOAD_MEAN: Mapping[str, float] = {"local-thresholds": 0.52, "global-thresholds": 0.49, "sarsa": 0.58}
LATENCY_P90_MS: Mapping[str, float] = {"local-thresholds": 1850, "global-thresholds": 2340, "sarsa": 1700}
LEARNING_LOAD_MEAN: Mapping[str, float] = {NO_LEARNING.name: 0.55, DEFAULT_LEARNING.name: 0.58}
LEARNING_LATENCY_MS: Mapping[str, float] = {NO_LEARNING.name: 2100, DEFAULT_LEARNING.name: 1700}
