"""What the run would have cost at least: the oracle's way through what came.

Only what came is known, not the peaks within an interval. Hosts that start or go are paid for, as they are in the run itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from springtide.dashboard.index import Index
from springtide.dashboard.parts import PoolPart
from springtide.model.allocation import HostType, Pool
from springtide.model.application import SLO
from springtide.model.observation import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Came:
    """What came in each interval: cores' worth of work, and how long the interval was; and the hosts at the beginning."""

    demand_cores: FloatArray
    lasted_s: FloatArray
    hosts: int
    pool: Pool
    slo: SLO


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cheapest:
    """The oracle's core-hours up to the end of each interval, and the cores it would have now."""

    core_h: FloatArray
    cores: float

    def up_to(self, time_s: FloatArray) -> FloatArray:
        """Its core-hours at the end of each interval; those that came since it was worked out go on as the last did."""
        known = len(self.core_h)
        if len(time_s) <= known:
            return self.core_h[: len(time_s)]
        if not known:
            return np.full(len(time_s), np.nan)
        since = (time_s[known:] - time_s[known - 1]) * self.cores / 3600
        return np.concatenate([self.core_h, self.core_h[-1] + since])


def came(index: Index) -> Came | None:
    """A copy of what came, to be worked on elsewhere; none for a run whose pool is not known."""
    if index.run is None or index.run.pool is None or not len(index):
        return None
    rows = index.rows
    demand = rows["offered_per_s"] * np.nan_to_num(rows["core_s_per_row"])
    slo = index.run.application.slo
    return Came(
        demand_cores=demand,
        lasted_s=rows["time_s"] - rows["start_s"],
        hosts=int(rows["hosts"][0]),
        pool=_pool(index.run.pool),
        slo=SLO(latency_s=slo.latency_s, percentile=slo.percentile),
    )


def cheapest(came: Came) -> Cheapest:
    """The cheapest way through what came, and what it would have cost."""
    # It takes a moment to import, which somebody who opens a journal need not wait for.
    from springtide.plan.policies.oracle import Oracle  # noqa: PLC0415

    path = Oracle().way(came.demand_cores, came.pool, came.slo, came.lasted_s, came.hosts)
    steps = np.diff(path, prepend=min(max(came.hosts, came.pool.min_hosts), came.pool.max_hosts))
    host = came.pool.host
    moved_s = np.maximum(steps, 0) * host.start_s + np.maximum(-steps, 0) * host.release_s
    core_s = host.cores * (path * came.lasted_s + moved_s)
    return Cheapest(core_h=np.cumsum(core_s) / 3600, cores=float(path[-1]) * host.cores)


def _pool(pool: PoolPart) -> Pool:
    host = HostType(cores=pool.cores, start_s=pool.start_s, release_s=pool.release_s)
    return Pool(host=host, min_hosts=pool.min_hosts, max_hosts=pool.max_hosts)
