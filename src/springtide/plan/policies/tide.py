"""Springtide's own policy: as few hosts as the service-level objective allows, over the intervals that can be foreseen.

Nothing needs to be tuned: the objective and the pool's bounds are enough. Each decision goes from left to right:

    forecast -> work -> what each number of hosts costs -> cheapest way through the horizon -> replicas and shards

* Work (`horizon.work`): what the sources may bring, at many quantiles, times what their rows make of every operator's demand,
  times what a row takes; never more than an operator can use. While the forecast has been wrong, never less than there is now.
* Cost of a number of hosts in an interval (`tide.sizing`): its core-seconds, and the expected work that comes too late
  (`horizon.lateness`), at a price that the objective sets; a backlog that will not be gone in time costs until it is gone. What
  hosts can do within the objective (`tide.capacity`) follows from what batches cost, or, where rows are processed one by one,
  from how busy cores may be and how uneven hosts are (`tide.learning`).
* The way through the horizon is exact (`horizon.path`): a host more is paid for while it starts, one less while it goes, and
  each change costs something in itself, so short dips are sat through and few changes are made.
* Cores that are there cost the same whether they are used or not, so operators share all of them (`placement.sharing`);
  between changes shards move only if a replica is saturated while cores are idle (`placement.counts`).

* Batches start as seldom as the objective allows on the hosts there are (`sizing.triggers`): what a batch costs beside its rows
  is paid less often.

* An objective that is missed for some intervals in which nothing changed leads to an action whatever the model says: hosts are
  evened out, then one more is added. The model learns from what it was off by. One that is kept with a wide margin leads to a
  trial with one host fewer, if what is not known yet of the costs allows for it: the model learns from that, too.

Limits: releases have a budget, and wait until hosts that were added have run for a moment. When those let no more rows through,
no more are added for a while.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from springtide.errors import require
from springtide.model.allocation import Allocation
from springtide.model.decision import Decision, Expectation, WhyNot
from springtide.model.protocols import View
from springtide.plan.horizon.lateness import USUAL_PART
from springtide.plan.horizon.work import Work, coming_work, overdue_core_s, rising_cores
from springtide.plan.placement.counts import allocate
from springtide.plan.placement.sharing import held_up_operators, sharing_replicas, short_of_replicas
from springtide.plan.sizing.triggers import choose_pace
from springtide.plan.tide.capacity import BatchCapacity, Capacity
from springtide.plan.tide.learning import FLOOR_S, LONG_MISSED, Floor, TideMemory, grown, learned
from springtide.plan.tide.sizing import Sizing
from springtide.plan.tide.trials import begin_trial, coming_rows_per_s, judge_trial

_WORTH_TELLING = 0.05  # cores of fixed cost that are saved


@dataclass(frozen=True, slots=True, kw_only=True)
class Tide:
    """Sizes by forecast, cost and objective.

    `change_s` is what a change is worth, as seconds of one host; `changes_per_hour` is the budget of releases (hosts that
    are needed are always added); `horizon_s` is how far ahead is planned, as far as there is a forecast; `spend` is the part of
    the rows that the objective allows to be late which may be, where that is cheaper: the rest is a reserve. If it `paces`
    batches, they start as seldom as the objective allows; else they follow one another at once.
    """

    name: ClassVar[str] = "tide"
    summary: ClassVar[str] = "fewest hosts that keep the objective: forecast, queueing, exact planning over the horizon"
    reference: ClassVar[str] = (
        "Springtide: forecast quantiles, demand through the DAG, expected lateness, exact dynamic programming over the horizon."
    )
    looks_ahead: ClassVar[bool] = True
    decides_early: ClassVar[bool] = True

    change_s: float = 120.0
    changes_per_hour: float = 10.0
    horizon_s: float = 1200.0
    spend: float = USUAL_PART
    paces: bool = True

    def __post_init__(self) -> None:
        require(self.change_s >= 0, f"{self.name}: change_s must be 0 or more, not {self.change_s}")
        require(self.changes_per_hour >= 1, f"{self.name}: changes_per_hour must be at least 1, not {self.changes_per_hour}")
        require(self.horizon_s > 0, f"{self.name}: horizon_s must be above 0, not {self.horizon_s}")
        require(0 < self.spend <= 1, f"{self.name}: spend must be above 0 and at most 1, not {self.spend}")

    def start(self) -> TideMemory:
        return TideMemory()

    def decide(self, view: View, memory: TideMemory) -> tuple[Decision, TideMemory]:
        work = coming_work(view, max(1, round(self.horizon_s / view.observation.interval_s)))
        late_share = self.spend * (1 - view.application.slo.percentile)
        memory = learned(view, self._refilled(view, memory), work, late_share)
        work = work.with_bursts_apart(memory.bursts.together)
        if memory.distrusts:
            work = work.at_least(work.now)
        capacity = memory.capacity(view, late_share)
        if isinstance(capacity, BatchCapacity):
            # At a rate that was not seen before, rows may cost more than was learned at the usual one.
            work = work.at_least(memory.surge_cores(rising_cores(view)) * capacity.model.cost_doubt)
        sizing = Sizing(view=view, memory=memory, work=work, capacity=capacity, change_s=self.change_s, late_share=late_share)
        wanted = max(sizing.hosts(), min(memory.floor.at(view.now_s, work.now), view.pool.max_hosts))
        memory = begin_trial(sizing, judge_trial(sizing, memory), wanted)
        tried = memory.trial.at(coming_rows_per_s(sizing), view.pool.max_hosts)
        hosts, why_not = self._allowed(view, memory, min(wanted, tried))
        planned, why = _planned(view, hosts, _load(capacity, work, hosts, sizing.delay))
        if hosts == tried < wanted:
            why += f"; {hosts} may be enough, because the objective has been kept with a wide margin"
        if memory.missed >= LONG_MISSED and planned is view.requested and not why_not:
            planned, why = _acting(view, memory.missed)
            # The rows that left late came a latency ago, and perhaps at another rate than those that come now.
            came = memory.most_recent_cores(view.observation.latency.slo_s, view.observation.interval_s)
            floor = Floor(hosts=len(planned.hosts), cores=max(came, work.now), until_s=view.now_s + FLOOR_S)
            memory = replace(memory, floor=floor)
        changed = planned is not view.requested
        if len(planned.hosts) > len(view.requested.hosts):
            memory = grown(view, memory, len(planned.hosts))
        decision = Decision(
            planned=planned,
            reason=why,
            expected=_expected(view, planned, capacity, work),
            why_not=why_not,
        )
        if self.paces and isinstance(capacity, BatchCapacity):
            decision = _paced(view, decision, capacity, work)
        stops = replace(memory.stops, changes=memory.stops.changes + changed)
        return decision, replace(memory, allowance=max(0.0, memory.allowance - changed), stops=stops)

    def _refilled(self, view: View, memory: TideMemory) -> TideMemory:
        if math.isnan(memory.allowance):
            return replace(memory, allowance=self.changes_per_hour, last_s=view.now_s)
        earned = (view.now_s - memory.last_s) / 3600 * self.changes_per_hour
        return replace(memory, allowance=min(self.changes_per_hour, memory.allowance + earned), last_s=view.now_s)

    def _allowed(self, view: View, memory: TideMemory, wanted: int) -> tuple[int, tuple[WhyNot, ...]]:
        """The number of hosts, unless it is one that would not help, or a release too many."""
        now = len(view.requested.hosts)
        if wanted > now >= view.pool.min_hosts and memory.is_new_to(view):
            why = "too few batches have been seen to tell what rows cost, and the objective is kept"
        elif wanted > now >= view.pool.min_hosts and view.now_s < memory.no_more_until_s:
            why = "the hosts added last let no more rows through; what holds them up is not the number of hosts"
        elif wanted < now <= view.pool.max_hosts and memory.growth is not None:
            why = "hosts that were added have not shown yet what they do"
        elif wanted < now <= view.pool.max_hosts and memory.allowance < 1:
            why = f"{self.changes_per_hour:g} changes an hour are used up; hosts that are needed are still added"
        else:
            return wanted, ()
        return now, (WhyNot(self.name, f"{wanted} host{'s' * (wanted != 1)}", why),)


def _paced(view: View, decision: Decision, capacity: BatchCapacity, work: Work) -> Decision:
    """The decision, with batches that start as seldom as the objective allows on the hosts that run and stay."""
    model = capacity.model
    staying = sum(host.name in decision.planned.hosts for host in view.observation.running_hosts)
    if staying == 0:
        return replace(decision, trigger_s=view.observation.trigger_s)
    waits = overdue_core_s(view, capacity.steady) > 0
    pace = choose_pace(
        model,
        view.application.slo,
        slots=float(staying * capacity.cores),
        factor=max(1.0, float(work.likely[0]) / model.work_cores) if model.work_cores > 0 else 1.0,
        bias=capacity.bias,
        most_s=0.0 if waits else view.observation.interval_s,
    )
    decision = replace(decision, trigger_s=dict.fromkeys(model.heads, pace.trigger_s))
    if pace.trigger_s == model.trigger_s or pace.saved_cores < _WORTH_TELLING:
        return decision
    return decision.noting(
        f"a batch every {pace.trigger_s:.2g} s keeps the objective and takes {pace.saved_cores:.2f} cores less than more would"
    )


def _planned(view: View, hosts: int, load: str) -> tuple[Allocation, str]:
    """The allocation on so many hosts, and why."""
    if hosts != len(view.requested.hosts):
        return allocate(view, sharing_replicas(view, hosts), hosts), load
    held_up = short_of_replicas(view, hosts) or held_up_operators(view)
    planned = allocate(view, sharing_replicas(view, hosts), hosts) if held_up else view.requested
    return planned, load if planned is view.requested else f"{', '.join(held_up)} held up while cores are idle"


def _acting(view: View, missed: int) -> tuple[Allocation, str]:
    """What is done about an objective that is missed for reasons that the model does not know: first even hosts, then more."""
    now = len(view.requested.hosts)
    slo = view.application.slo
    measured_s = view.observation.latency.slo_s
    why = f"{slo.percentile:.0%} within {slo.latency_s:g} s is missed for {missed} intervals ({measured_s:.1f} s)"
    even = allocate(view, sharing_replicas(view, now), now, theta=1.0)
    if even is not view.requested and missed == LONG_MISSED:
        return even, f"{why}: shards are spread evenly"
    if now >= view.pool.max_hosts:
        return view.requested, f"{why}, with all {now} hosts that there may be"
    return allocate(view, sharing_replicas(view, now + 1), now + 1), f"{why}: one host more"


def _load(capacity: Capacity, work: Work, hosts: int, delay: int) -> str:
    carries = float(capacity.within_objective(np.array([hosts]))[0])
    foreseen = float(work.likely[: delay + 1].max())  # that which hardly anybody believes in is weighed, but not told
    some = f"{hosts} host{'s carry' if hosts != 1 else ' carries'} {carries:.1f}"
    return f"{work.now:.1f} cores of work now, perhaps {foreseen:.1f} soon; {some}"


def _expected(view: View, planned: Allocation, capacity: Capacity, work: Work) -> Expectation:
    """How utilised the busiest host will be in the next interval: what waits is worked off too, by hosts that run, stay, or
    start within it. While nothing changes, the latency too, where it is predicted."""
    interval_s, host = view.observation.interval_s, view.pool.host
    staying = sum(seen.name in planned.hosts for seen in view.observation.running_hosts)
    started = (len(planned.hosts) - staying) * max(0.0, 1.0 - host.start_s / interval_s)
    hosts = staying + started
    if hosts <= 0:
        return Expectation()
    if isinstance(capacity, BatchCapacity):
        return _expected_of_batches(view, planned, capacity, hosts)
    asked = float(work.middle[0]) + overdue_core_s(view, 0.0) / interval_s
    return Expectation(utilisation=min(1.0, asked / float(capacity.at_most(np.array([hosts]))[0])))


def _expected_of_batches(view: View, planned: Allocation, capacity: BatchCapacity, hosts: float) -> Expectation:
    slo, model = view.application.slo, capacity.model
    if overdue_core_s(view, capacity.steady) > 0 or model.work_cores <= 0:
        return Expectation()
    kept = float(model.capacity_cores(slo.percentile, slo.latency_s, np.array([hosts * capacity.cores]))[0])
    latency_s = capacity.latency_at(len(planned.hosts), slo.percentile) if planned is view.requested else None
    return Expectation(utilisation=min(1.0, model.work_cores / kept) if kept > 0 else 1.0, latency_s=latency_s)
