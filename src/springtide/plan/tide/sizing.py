"""How many hosts are cheapest, late work included: the first step of the cheapest way through the horizon.

The time between a decision and the moment its hosts run is the delay. Hosts that are added now help from then on; a host that
goes is missed at once. So the first stage of the way is the interval after the delay, and to it is added what the intervals
before cost with the hosts there are, or with the fewer there would be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from springtide.model.observation import FloatArray
from springtide.model.protocols import View
from springtide.plan.horizon.lateness import SUSTAINED_S, late_core_s, late_while_draining_core_s, price_of_late_work
from springtide.plan.horizon.path import Moves, first_step
from springtide.plan.horizon.work import Work, overdue_core_s
from springtide.plan.tide.capacity import Capacity
from springtide.plan.tide.learning import TideMemory

_DOUBTS = (
    5.0  # intervals in which likely demand is exceeded, for each in which all rows may be late: most are not exceeded by much
)
_MOST_SIZES = 48  # that are compared: beyond, a size more or less is a small part


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """What a number of hosts costs, and what a change of it does: `change_s` is a change's worth in seconds of a host, and
    `late_share` is how much of the work may be late."""

    view: View
    memory: TideMemory
    work: Work
    capacity: Capacity
    change_s: float
    late_share: float

    @property
    def interval_s(self) -> float:
        return self.view.observation.interval_s

    @property
    def start_s(self) -> float:
        return self.memory.starts.takes_s(self.view.pool.host.start_s)

    @property
    def delay(self) -> int:
        """Intervals from a decision until its hosts run."""
        return math.ceil(self.start_s / self.interval_s - 1e-9)

    def hosts(self) -> int:
        """The number of hosts that is cheapest to have now, over the horizon."""
        pool = self.view.pool
        sizes = self._sizes()
        late = self._expected_late(sizes)
        now = int(np.searchsorted(sizes, self._now()))
        stages = late[self.delay :] + sizes * (pool.host.cores * self.interval_s)
        stages[0] += self._draining(sizes)
        stages[0] += np.where(sizes < sizes[now], late[: self.delay].sum(axis=0), late[: self.delay, now].sum())
        moves = Moves(
            up=pool.host.cores * self.start_s,
            down=pool.host.cores * pool.host.release_s,
            change=pool.host.cores * self.change_s + self._standstill(int(sizes[now])),
        )
        found = first_step(stages, sizes, int(sizes[now]), moves)
        return max(found, min(int(sizes[now]), self._recently_needed(sizes)))

    def _recently_needed(self, sizes: NDArray[np.int64]) -> int:
        """The fewest hosts for what came of late: an interval that was measured too low releases none."""
        recent = self.memory.most_recent_cores(self.capacity.recent_s, self.interval_s)
        enough = self.capacity.within_objective(sizes) >= recent
        return int(sizes[int(enough.argmax())]) if enough.any() else int(sizes[-1])

    def _now(self) -> int:
        pool = self.view.pool
        return min(max(len(self.view.requested.hosts), pool.min_hosts), pool.max_hosts)

    def _sizes(self) -> NDArray[np.int64]:
        """The numbers of hosts to choose from: all, or some of very many, the present one among them."""
        pool = self.view.pool
        if pool.max_hosts - pool.min_hosts < _MOST_SIZES:
            return np.arange(pool.min_hosts, pool.max_hosts + 1)
        a_host = float(self.capacity.within_objective(np.array([self._now()]))[0]) / self._now()
        low, high = float(self.work.cores.min()) / a_host, float(self.work.cores.max()) / a_host
        wanted = np.linspace(min(low, self._now()), max(2 * high, self._now()), _MOST_SIZES)
        return np.unique(np.clip(np.append(np.rint(wanted), self._now()), pool.min_hosts, pool.max_hosts)).astype(np.int64)

    def _price(self) -> float:
        return price_of_late_work(self.late_share) * self.memory.late.dearness * self.memory.upkeep

    def _standstill(self, hosts: int) -> float:
        """What the work costs that a change makes late by stopping the application, where changes have been seen to."""
        late_s = self.memory.stops.each_s - self.view.application.slo.latency_s
        if late_s <= 0:
            return 0.0
        demand = self.work.now
        throughput = self.capacity.at_most(np.array([hosts]))
        waits = late_while_draining_core_s(demand * self.memory.stops.each_s, demand, throughput)
        return self._price() * (demand * late_s + float(waits[0]))

    def _expected_late(self, sizes: NDArray[np.int64]) -> FloatArray:
        """What late work costs in each interval: what may come lasts until it is answered, what is likely stays."""
        work = self.work.no_wilder_than_at(self.delay)
        capacity = self.capacity.within_objective(sizes)
        latency_s = self.view.application.slo.latency_s
        window_s = self.interval_s + self.start_s
        possible = late_core_s(work.cores[:, :, np.newaxis], capacity, latency_s=latency_s, window_s=window_s)
        lasting = late_core_s(self._lasting()[:, np.newaxis], capacity, latency_s=latency_s, window_s=SUSTAINED_S)
        per_s = np.tensordot(work.weights, possible, axes=1) / window_s + lasting / SUSTAINED_S
        costs: FloatArray = self._price() * self.interval_s * per_s
        return costs

    def _lasting(self) -> FloatArray:
        """What is as likely as may be late, with no more doubt than there is some minutes ahead."""
        likely, middle = self.work.at(1 - self._doubt()), self.work.middle
        step = min(max(self.delay, round(self.capacity.doubt_s / self.interval_s)), len(likely) - 1)
        if middle[step] <= 0 or len(likely) <= self.delay:
            return self.work.no_wilder_than_at(self.delay).at(1 - self._doubt())
        lasting = likely.copy()
        lasting[step + 1 :] = np.minimum(likely[step + 1 :], likely[step] / middle[step] * middle[step + 1 :])
        return lasting

    def _doubt(self) -> float:
        """How often demand that lasts may be more than was planned for: one interval in twenty, if one row in a hundred may be
        late, and one in two at most."""
        return min(0.5, _DOUBTS * self.late_share / self.memory.late.dearness)

    def _draining(self, sizes: NDArray[np.int64]) -> FloatArray:
        """What work that waits costs until it is gone, with each size: hosts that run work on it until those that are added
        do; fewer hosts do so at once."""
        overdue = overdue_core_s(self.view, self.capacity.steady)
        if overdue <= 0:
            return np.zeros(len(sizes))
        demand = float(self.work.no_wilder_than_at(self.delay).likely[self.delay])
        throughput = self.capacity.at_most(sizes)
        running = min(len(self.view.observation.running_hosts), len(self.view.requested.hosts))
        until_then = np.minimum(throughput, float(self.capacity.at_most(np.array([running]))[0]))
        waiting = np.maximum(0.0, overdue + (demand - until_then) * self.start_s)
        late = late_while_draining_core_s(np.where(sizes < running, overdue, waiting), demand, throughput)
        costs: FloatArray = self._price() * late
        return costs
