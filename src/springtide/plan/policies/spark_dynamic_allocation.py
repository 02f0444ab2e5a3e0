"""Spark's own dynamic allocation: executors for tasks that wait for a slot, until there are none; idle executors go.

Spark documentation, "Job Scheduling", sections "Request Policy" and "Remove Policy"; source:
`core/src/main/scala/org/apache/spark/ExecutorAllocationManager.scala` (`updateAndSyncNumExecutorsTarget`, `addExecutors`,
`removeExecutors`, `maxNumExecutorsNeededPerResourceProfile`) and `scheduler/dynalloc/ExecutorMonitor.scala`. An executor is a
host here.

| Spark, spark.dynamicAllocation.* | here | default | unit |
|---|---|---|---|
| schedulerBacklogTimeout | `scheduler_backlog_timeout_s` | 1 | s |
| sustainedSchedulerBacklogTimeout | `sustained_scheduler_backlog_timeout_s` | 1 (as the one above) | s |
| executorIdleTimeout | `executor_idle_timeout_s` | 60 | s |
| executorAllocationRatio | `executor_allocation_ratio` | 1 | hosts per host that all tasks would fill |
| minExecutors, maxExecutors | the pool's `min_hosts`, `max_hosts` | | hosts |
| numExecutorsTarget, numExecutorsToAdd, addTime | `target`, `to_add`, `add_at_s` of the memory | | |

Which tasks there are is not observed but follows from the backlog:

* A batch of an operator has one task per shard; without shards, as many as may run at once (`max_replicas`).
* The rows that wait for an operator are its next batch. If its slots need `scheduler_backlog_timeout_s` or more for them, the
  tasks that have no slot are pending. An operator with a slot for every task has none that is.
* Any free core takes a task: as long as all work fits into the cores there are, once their slots are dealt anew, none is
  pending.
* Of an operator without pending tasks, as many run as it keeps cores busy.
* A backlog is taken to have begun with the interval at whose end it was first seen.

A host is idle when nothing ran on it for a whole interval. Every batch of a stream has tasks for every executor, so a host is
idle only if there are more slots than tasks, or no rows at all: an application that once needed many hosts keeps them. That is
Spark's behaviour (SPARK-24815 was to change it), not this model's.

Departures:

* It decides once per control interval: all rounds of requests that fall into the interval are made at its end.
* A request is one for hosts, not for tasks' resource profiles; there are no speculative tasks, no cached or shuffled blocks.
* Any free slot takes any task of Spark. Here operators share the slots by demand (see `placement.filling`), and they share them
  anew when that serves more.
* Hosts that go are the idlest (see `placement.counts`), which are the idle ones when there are enough of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from springtide.errors import require
from springtide.model.allocation import Pool
from springtide.model.application import Operator
from springtide.model.decision import Decision, Expectation, WhyNot
from springtide.model.observation import HostState
from springtide.model.protocols import View
from springtide.plan.placement.counts import allocate
from springtide.plan.placement.filling import busiest_utilisation, fill, refill, work_cores
from springtide.plan.thresholds.wording import plural

_ROUNDING = 1e-9  # s, or tasks: what sums of intervals and of shares may be off by
_NAMED_OPERATORS = 3  # a reason that lists more than these is not read
_NO_TASK = 1e-6  # a host less busy than this share of its cores ran nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkMemory:
    """What the allocation manager remembers.

    `target` is how many hosts it wants (None before the first decision: those there are), `to_add` how many the next round
    asks for, `add_at_s` when that is (None while no task is pending). `idle_since_s` has every host that runs nothing;
    `running` are the hosts that ran when the last interval ended (None before the first).
    """

    target: int | None = None
    to_add: int = 1
    add_at_s: float | None = None
    idle_since_s: Mapping[str, float] = field(default_factory=dict)
    running: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """How many tasks run or wait for a slot, and how many of each operator wait."""

    unfinished: int
    pending: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkDynamicAllocation:
    """One host more after tasks were pending for `scheduler_backlog_timeout_s`, then 2, 4, 8, ... more in each further
    `sustained_scheduler_backlog_timeout_s`, up to a slot for every task; hosts without a task for
    `executor_idle_timeout_s` go.
    """

    name: ClassVar[str] = "spark-dynamic-allocation"
    summary: ClassVar[str] = "adds hosts in doubling steps while tasks wait, releases idle ones, as Spark does"
    reference: ClassVar[str] = (
        "Apache Spark. Job Scheduling: Dynamic Resource Allocation. Spark documentation, "
        "https://spark.apache.org/docs/latest/job-scheduling.html. Sections Request Policy and Remove Policy."
    )

    scheduler_backlog_timeout_s: float = 1.0
    sustained_scheduler_backlog_timeout_s: float = 1.0
    executor_idle_timeout_s: float = 60.0
    executor_allocation_ratio: float = 1.0

    def __post_init__(self) -> None:
        for what in ("scheduler_backlog_timeout_s", "sustained_scheduler_backlog_timeout_s", "executor_idle_timeout_s"):
            value = getattr(self, what)
            require(math.isfinite(value) and value > 0, f"{self.name}: {what} must be above 0, not {value}")
        require(
            0 < self.executor_allocation_ratio <= 1,
            f"{self.name}: executor_allocation_ratio must be above 0 and at most 1, not {self.executor_allocation_ratio}",
        )

    def start(self) -> SparkMemory:
        return SparkMemory()

    def decide(self, view: View, memory: SparkMemory) -> tuple[Decision, SparkMemory]:
        tasks = self.tasks(view)
        needed = math.ceil(self.executor_allocation_ratio * tasks.unfinished / view.pool.host.cores - _ROUNDING)
        memory = self._timed(view, memory, tasks)
        before = _within(view.pool, len(view.requested.hosts) if memory.target is None else memory.target)
        memory = self._retargeted(view, replace(memory, target=before), needed)
        assert memory.target is not None
        expired = [h for h, since_s in memory.idle_since_s.items() if view.now_s - since_s >= self.executor_idle_timeout_s]
        running = [h for h in view.requested.hosts if _runs(view, h)]
        # Requests for hosts that are not there yet are withdrawn with the target; those there go when they are idle.
        hosts = _within(view.pool, max(memory.target, len(running) - len(expired)))
        why_not = self._why_not(view, needed, expired, len(running) - hosts)
        return self._decision(view, hosts, self._finding(tasks, expired), why_not), memory

    def tasks(self, view: View) -> Tasks:
        """Running and pending tasks, as the backlog tells."""
        work = work_cores(view)
        if sum(work.values()) <= _cores(view) and refill(view) is not None:
            return Tasks(unfinished=math.ceil(sum(work.values()) - _ROUNDING), pending={})
        pending: dict[str, int] = {}
        busy = 0.0
        for operator in view.application.operators:
            seen = view.observation.operators.get(operator.name)
            slots = view.observation.observed.operators[operator.name].replicas
            if seen is None:
                continue
            if seen.backlog_s >= self.scheduler_backlog_timeout_s and _tasks_of(operator) > slots:
                pending[operator.name] = _tasks_of(operator) - slots
                busy += slots
            else:
                busy += min(seen.busy_share, 1.0) * slots
        return Tasks(unfinished=math.ceil(busy - _ROUNDING) + sum(pending.values()), pending=pending)

    def _timed(self, view: View, memory: SparkMemory, tasks: Tasks) -> SparkMemory:
        """With the timers as they stand: for the next round of requests, and of each idle host."""
        start_s = view.observation.start_s
        idle = [h for h in view.requested.hosts if _runs(view, h) and view.observation.hosts[h].busy_share < _NO_TASK]
        new = frozenset() if memory.running is None else frozenset(idle) - memory.running
        return replace(
            memory,
            to_add=memory.to_add if tasks.pending else 1,
            add_at_s=_started(memory.add_at_s, start_s + self.scheduler_backlog_timeout_s) if tasks.pending else None,
            idle_since_s={h: view.now_s if h in new else memory.idle_since_s.get(h, start_s) for h in idle},
            running=frozenset(h.name for h in view.observation.running_hosts),
        )

    def _retargeted(self, view: View, memory: SparkMemory, needed: int) -> SparkMemory:
        """With the target lowered to what is needed, or raised by the rounds that were due by now."""
        assert memory.target is not None
        if needed < memory.target:
            return replace(memory, target=max(needed, view.pool.min_hosts), to_add=1)
        present = sum(_runs(view, h) for h in view.requested.hosts)
        while memory.add_at_s is not None and memory.add_at_s <= view.now_s + _ROUNDING:
            assert memory.target is not None
            grown = _within(view.pool, min(max(memory.target, present) + memory.to_add, needed))
            delta = max(0, grown - memory.target)
            if not delta:
                # Nothing to ask for: it is tried again all the time, with one host.
                return replace(memory, to_add=1, add_at_s=max(memory.add_at_s, view.now_s))
            memory = replace(
                memory,
                target=memory.target + delta,
                to_add=2 * memory.to_add if delta == memory.to_add else 1,
                add_at_s=memory.add_at_s + self.sustained_scheduler_backlog_timeout_s,
            )
        return memory

    def _finding(self, tasks: Tasks, expired: list[str]) -> str:
        if tasks.pending:
            named = [f"{count} of {name}" for name, count in tasks.pending.items()][:_NAMED_OPERATORS]
            more = ["..."] if len(tasks.pending) > _NAMED_OPERATORS else []
            return f"{plural(sum(tasks.pending.values()), 'task')} pending ({', '.join(named + more)})"
        if expired:
            return f"{', '.join(expired)} idle for {self.executor_idle_timeout_s:.0f} s"
        return f"no task pending, {plural(tasks.unfinished, 'task')} running"

    def _decision(self, view: View, hosts: int, finding: str, why_not: tuple[WhyNot, ...]) -> Decision:
        present = len(view.requested.hosts)
        replicas = refill(view) if hosts == present else fill(view, hosts)
        planned = view.requested if replicas is None else allocate(view, replicas, hosts)
        kept = f"keep {plural(hosts, 'host')}" + ("" if replicas is None else ", deal their slots anew")
        return Decision(
            planned=planned,
            reason=f"{finding}: {kept if hosts == present else f'{present} -> {hosts} hosts'}",
            expected=Expectation(utilisation=busiest_utilisation(view, planned)),
            why_not=why_not,
        )

    def _why_not(self, view: View, needed: int, expired: list[str], released: int) -> tuple[WhyNot, ...]:
        vetoes = []
        if needed > view.pool.max_hosts:
            vetoes.append(WhyNot(self.name, plural(needed, "host"), f"the pool has no more than {view.pool.max_hosts}"))
        if len(expired) > max(0, released):
            least = max(needed, view.pool.min_hosts)
            why = f"no fewer than {plural(least, 'host')} may remain"
            vetoes.append(WhyNot(self.name, f"release all of {', '.join(expired)}", why))
        return tuple(vetoes)


def _tasks_of(operator: Operator) -> int:
    return operator.shards if operator.keyed else operator.max_replicas


def _cores(view: View) -> int:
    return len(view.requested.hosts) * view.pool.host.cores


def _runs(view: View, host: str) -> bool:
    seen = view.observation.hosts.get(host)
    return seen is not None and seen.state is HostState.RUNNING


def _started(timer_s: float | None, otherwise_s: float) -> float:
    return otherwise_s if timer_s is None else timer_s


def _within(pool: Pool, hosts: int) -> int:
    return min(max(hosts, pool.min_hosts), pool.max_hosts)
