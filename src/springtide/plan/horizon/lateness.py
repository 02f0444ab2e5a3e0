"""What too little capacity costs: the work that comes too late, as core-seconds, and what that is worth.

Rows come at D cores' worth of work a second, and C cores serve them. When D is above C the rows wait: after t seconds
(D - C) t core-seconds of work, for (D - C) t / C seconds. They are late once that is more than the objective's latency, which
it is after C latency / (D - C) seconds; every row that comes later is late. Work that waits already is gone after
backlog / (C - D) seconds, and whatever comes until then is late too.
"""

from __future__ import annotations

import numpy as np

from springtide.model.observation import FloatArray

SUSTAINED_S = 600.0  # demand that is likely, and not only possible, lasts: it is late even if it is a little too much
USUAL_PART = 0.1  # of the rows that the objective allows to be late: the rest is a reserve for what nobody foresees
_LEAST_CORES = 1e-3  # that work off a backlog


def late_core_s(demand_cores: FloatArray, capacity_cores: FloatArray, latency_s: float, window_s: float) -> FloatArray:
    """Core-seconds of work that come too late within a window of demand that is above the capacity.

    >>> late_core_s(np.array([8.0, 12.0]), np.array([10.0, 10.0]), latency_s=5.0, window_s=60.0)
    array([  0., 420.])

    Where nothing comes nothing is late, with no capacity either:

    >>> late_core_s(np.array([0.0, 2.0]), np.array([0.0, 0.0]), latency_s=5.0, window_s=60.0)
    array([  0., 120.])
    """
    excess = np.maximum(demand_cores - capacity_cores, 0.0)
    in_time_s = np.divide(capacity_cores * latency_s, excess, out=np.full(excess.shape, np.inf), where=excess > 0)
    late: FloatArray = demand_cores * np.maximum(0.0, window_s - in_time_s)
    return late


def late_while_draining_core_s(
    backlog_core_s: FloatArray | float, demand_cores: float, capacity_cores: FloatArray
) -> FloatArray:
    """Core-seconds of work that come too late while a backlog is worked off beside the demand.

    >>> late_while_draining_core_s(60.0, 10.0, np.array([12.0, 16.0]))
    array([300., 100.])
    """
    drained_s = backlog_core_s / np.maximum(capacity_cores - demand_cores, _LEAST_CORES)
    late: FloatArray = demand_cores * np.minimum(drained_s, SUSTAINED_S)
    return late


def price_of_late_work(late_share: float) -> float:
    """What one late core-second is worth, in core-seconds of work at what they cost, if no more than a share may be late.

    A share that is just used up is worth a quarter of what the work costs: 25 for one row in a hundred.

    >>> round(price_of_late_work(0.01))
    25
    """
    return 0.25 / late_share
