"""Fewer hosts than the model asks for, where measurements allow it.

Batches that are all alike do not tell what a row costs from what a batch costs. So the model may take rows for dearer than they
are, most of all after a cold start. An objective that is met with a wide margin therefore leads to a trial with one host fewer,
if that would do were rows as cheap as they may be. The trial stands for as long as the objective is met and the rate stays
about the same, whatever the model says; where it fails, the next one begins later each time.
"""

from __future__ import annotations

from dataclasses import replace

from springtide.plan.horizon.work import overdue_core_s
from springtide.plan.tide.capacity import BatchCapacity
from springtide.plan.tide.learning import FLOOR_S, TideMemory, Trial
from springtide.plan.tide.sizing import Sizing

_LONG_EASED = 5  # intervals with a wide margin, after which one host fewer is tried
_LONG_MISSED = 2  # intervals in which the objective is missed, after which a trial has failed


def judge_trial(sizing: Sizing, memory: TideMemory) -> TideMemory:
    """End a trial that makes rows late."""
    trial, capacity = memory.trial, sizing.capacity
    waits = isinstance(capacity, BatchCapacity) and overdue_core_s(sizing.view, capacity.steady) > 0
    if not trial.hosts or not (waits or memory.missed >= _LONG_MISSED):
        return memory
    ended = Trial(next_s=sizing.view.now_s + FLOOR_S * 2**trial.failures, failures=trial.failures + 1)
    return replace(memory, trial=ended)


def begin_trial(sizing: Sizing, memory: TideMemory, wanted: int) -> TideMemory:
    """Try one host fewer where the objective is met with a wide margin, and fewer would do if rows are cheap."""
    view = sizing.view
    now = len(view.requested.hosts)
    may_release = memory.growth is None and memory.allowance >= 1 and view.now_s >= memory.trial.next_s
    if memory.eased < _LONG_EASED or not may_release or wanted < now:
        return memory
    if _count_if_rows_are_cheap(sizing) >= now or memory.floor.at(view.now_s, sizing.work.now) >= now:
        return memory
    trial = replace(memory.trial, hosts=now - 1, rows_per_s=coming_rows_per_s(sizing))
    return replace(memory, eased=0, trial=trial)


def coming_rows_per_s(sizing: Sizing) -> float:
    """The rate now, or as it is most likely to be before hosts that are added now run, if that is more."""
    seen, work = sizing.view.observation, sizing.work
    growth = float(work.middle[: sizing.delay + 1].max()) / work.now if work.now > 0 else 1.0
    return seen.offered_rows / seen.interval_s * max(1.0, growth)


def _count_if_rows_are_cheap(sizing: Sizing) -> int:
    """How many hosts are needed if rows are as cheap as they may be; all that there may be where rows come one by one."""
    capacity = sizing.capacity
    if not isinstance(capacity, BatchCapacity):
        return sizing.view.pool.max_hosts
    cheaper = capacity.with_cheaper_rows()
    ratio = cheaper.model.work_cores / capacity.model.work_cores if capacity.model.work_cores > 0 else 1.0
    recent = tuple(ratio * cores for cores in sizing.memory.recent_cores)
    supposed = replace(
        sizing,
        work=sizing.work.times(ratio),
        capacity=cheaper,
        memory=replace(sizing.memory, recent_cores=recent),
    )
    return supposed.hosts()
