"""From a service-level objective to the mean that a model of means can keep."""

from __future__ import annotations

import math

from springtide.model.application import SLO


def mean_within(slo: SLO) -> float:
    """The mean latency whose percentile is the SLO's, if latencies are exponential, as they are of M/M/1.

    >>> round(mean_within(SLO(latency_s=5.0, percentile=0.9)), 3)
    2.171
    """
    return slo.latency_s / -math.log1p(-slo.percentile)
