"""What could be reached at most: knows the future of the trace, and goes the cheapest way through it.

The cost of a run is what it is for `tide` (see `horizon`): core-seconds of hosts, what hosts cost while they start and go, a
price for every change because shards are re-routed, and the work that comes too late at the price that the objective sets. The
way through all intervals of the trace is found once, exactly, by dynamic programming over the number of hosts.

Replicas need no dimension of their own: inside a host they cost nothing (PSPS's pool: a free slot is an inactive replica), so
for any number of hosts the best there is are replicas that use all of its cores. A test compares it with every combination of
hosts and replicas.

Where rows are processed in batches, a number of hosts can do what the model of batches says (`sizing.batches`), with the costs
that were learned so far: the way is worked out anew whenever twice as many batches have been learned from.

Rules: hosts are asked for so early that they run when they are needed. Without foresight, as on a live application, it goes the
cheapest way through whatever forecast there is, again in each interval; without any forecast it follows the present demand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from springtide.errors import require
from springtide.model.allocation import Pool
from springtide.model.application import SLO
from springtide.model.decision import Decision
from springtide.model.observation import FloatArray
from springtide.model.protocols import FORESIGHT, View
from springtide.plan.horizon.lateness import SUSTAINED_S, USUAL_PART, late_core_s, price_of_late_work
from springtide.plan.horizon.path import Moves, cheapest_path
from springtide.plan.placement.counts import allocate, demand_cores, service_time_s
from springtide.plan.placement.sharing import sharing_replicas, short_of_replicas, uneven_operators
from springtide.plan.sizing.batches import BatchModel
from springtide.plan.tide.capacity import BatchCapacity


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleMemory:
    """The number of hosts in each interval from `first` on, once it has been worked out, and from how many batches."""

    first: int = 0
    hosts: tuple[int, ...] = ()
    batches: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle:
    """The cheapest way through what will come, with cores that are busy up to `utilisation`."""

    name: ClassVar[str] = "oracle"
    summary: ClassVar[str] = "knows the future of a trace and solves the cost model exactly: the limit for all others"
    reference: ClassVar[str] = (
        "Springtide: exact dynamic programming over the whole trace, the lower bound of every comparison."
    )
    looks_ahead: ClassVar[bool] = True
    foresees: ClassVar[bool] = True

    utilisation: float = 0.95
    change_s: float = 120.0

    def __post_init__(self) -> None:
        require(0 < self.utilisation <= 1, f"{self.name}: utilisation must be above 0 and at most 1, not {self.utilisation}")
        require(self.change_s >= 0, f"{self.name}: change_s must be 0 or more, not {self.change_s}")

    def start(self) -> OracleMemory:
        return OracleMemory()

    def decide(self, view: View, memory: OracleMemory) -> tuple[Decision, OracleMemory]:
        ahead = view.observation.index + 1 - memory.first
        foresees = view.forecast is not None and view.forecast.model == FORESIGHT
        batches = min((seen.costs.batches for seen in view.observation.operators.values() if seen.costs), default=0.0)
        if not foresees or not 0 <= ahead < len(memory.hosts) or batches > max(1.0, 2 * memory.batches):
            memory = OracleMemory(first=view.observation.index + 1, hosts=self._way(view), batches=batches)
            ahead = 0
        delay = math.ceil(view.pool.host.start_s / view.observation.interval_s - 1e-9)
        hosts = max(memory.hosts[ahead : ahead + delay + 1])
        planned = view.requested
        if hosts != len(view.requested.hosts) or short_of_replicas(view, hosts) or uneven_operators(view):
            planned = allocate(view, sharing_replicas(view, hosts), hosts)
        known = "the future" if foresees else "a forecast" if view.forecast is not None else "the present"
        size = f"{hosts} host{'s' if hosts != 1 else ''}"
        return Decision(planned=planned, reason=f"the cheapest way through {known} has {size} now"), memory

    def _way(self, view: View) -> tuple[int, ...]:
        pool, now = view.pool, len(view.requested.hosts)
        model = BatchModel.of(view)
        capacity = None
        if model is not None:
            slo = view.application.slo
            late_share = USUAL_PART * (1 - slo.percentile)
            batches = BatchCapacity(model=model, cores=pool.host.cores, late_share=late_share, latency_s=slo.latency_s)
            capacity = batches.within_objective(np.arange(pool.min_hosts, pool.max_hosts + 1))
        return tuple(
            self.way(_demand_cores(view), pool, view.application.slo, view.observation.interval_s, now, capacity).tolist()
        )

    def way(
        self,
        demand_cores: FloatArray,
        pool: Pool,
        slo: SLO,
        interval_s: float | FloatArray,
        now: int,
        capacity_cores: FloatArray | None = None,
    ) -> NDArray[np.int64]:
        """The number of hosts in each interval that costs least in all, from `now` of them; intervals may differ in length.

        `capacity_cores` is the work that each size of the pool can do within the objective; without it, cores may be busy up
        to `utilisation`.
        """
        sizes = np.arange(pool.min_hosts, pool.max_hosts + 1)
        cores = sizes.astype(np.float64) * pool.host.cores
        capacity = cores * self.utilisation if capacity_cores is None else capacity_cores
        stages = stage_costs(demand_cores, cores, capacity, slo, np.asarray(interval_s, dtype=np.float64))
        moves = Moves(
            up=pool.host.cores * pool.host.start_s,
            down=pool.host.cores * pool.host.release_s,
            change=pool.host.cores * self.change_s,
        )
        return cheapest_path(stages, sizes, min(max(now, pool.min_hosts), pool.max_hosts), moves)


def stage_costs(demand: FloatArray, cores: FloatArray, capacity: FloatArray, slo: SLO, interval_s: FloatArray) -> FloatArray:
    """Core-seconds that each interval costs with each number of cores and what they can do, late work included."""
    late = late_core_s(demand[:, np.newaxis], capacity, latency_s=slo.latency_s, window_s=SUSTAINED_S)
    price = price_of_late_work(USUAL_PART * (1 - slo.percentile))
    lasts_s = interval_s[..., np.newaxis]  # of each interval, or of all of them
    costs: FloatArray = cores * lasts_s + price * late * (lasts_s / SUSTAINED_S)
    return costs


def _demand_cores(view: View) -> FloatArray:
    """The work of each interval to come; the present one's if nothing is foreseen."""
    if view.forecast is None:
        return np.array([sum(demand_cores(view).values())])
    per_row = {
        source: sum(gain * service_time_s(view, view.application.operator(name)) for name, gain in gains.items())
        for source, gains in view.gains.items()
    }
    # Foresight knows the peaks within an interval, which wait for as long as its mean allows; of a mere forecast, the mean.
    known = view.forecast.upper if view.forecast.model == FORESIGHT else view.forecast.mean
    total: FloatArray = sum((rates * per_row.get(source, 0.0) for source, rates in known.items()), start=np.zeros(1))
    return total
