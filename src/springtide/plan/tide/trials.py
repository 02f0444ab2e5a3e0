"""Fewer hosts than the model asks for, where measurements allow it.

Batches that are all alike do not tell what a row costs from what a batch costs. So the model may take rows for dearer than they
are, most of all after a cold start, and a machine that is slower for some seconds makes them dearer for as long. Three rules
put what is measured above what the model says:

* An objective that is met with a wide margin leads to a trial with one host fewer, if that would do were rows as cheap as they
  may be. The trial stands for as long as the objective is met and the rate stays about the same; where it fails, the next one
  begins later each time.
* An objective that is met with some margin leads to no more hosts while no more rows are likely than those it is met with.
* Rows that wait lead to no more hosts, if that would do were rows as cheap as they may be, while they leave sooner in every
  interval than in the one before.
"""

from __future__ import annotations

from dataclasses import replace

from springtide.model.observation import FloatArray
from springtide.plan.horizon.work import overdue_core_s
from springtide.plan.tide.capacity import BatchCapacity
from springtide.plan.tide.learning import FLOOR_S, TideMemory, Trial
from springtide.plan.tide.sizing import Sizing

_LONG_EASED = 5  # intervals with a wide margin, after which one host fewer is tried
_LONG_KEPT = 3  # intervals with some margin, after which hosts have shown that they are enough
_SAME = 1.25  # times a rate, that is about the same
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
    if count_if_rows_are_cheap(sizing) >= now or memory.floor.at(view.now_s, sizing.work.now) >= now:
        return memory
    trial = replace(memory.trial, hosts=now - 1, rows_per_s=coming_rows_per_s(sizing))
    return replace(memory, eased=0, trial=trial)


def coming_rows_per_s(sizing: Sizing) -> float:
    """The rate now, or as it is most likely to be before hosts that are added now run, if that is more."""
    return _rows_per_s(sizing) * _growth(sizing, sizing.work.middle)


def is_enough(sizing: Sizing) -> bool:
    """Whether the present hosts keep the objective with some margin, and it is likely that no more rows come than they do."""
    memory = sizing.memory
    if not isinstance(sizing.capacity, BatchCapacity) or memory.kept < _LONG_KEPT or sizing.work.now <= 0:
        return False
    return _rows_per_s(sizing) * _growth(sizing, sizing.work.likely) <= _SAME * memory.kept_rows_per_s


def _rows_per_s(sizing: Sizing) -> float:
    seen = sizing.view.observation
    return seen.offered_rows / seen.interval_s


def _growth(sizing: Sizing, cores: FloatArray) -> float:
    """The most of the work that comes before hosts that are added now run, as a multiple of the work now; 1 if it is less."""
    now = sizing.work.now
    return max(1.0, float(cores[: sizing.delay + 1].max()) / now) if now > 0 else 1.0


def is_catching_up(sizing: Sizing) -> bool:
    """Whether rows that are late leave sooner than those before them, at a load that does not rise."""
    memory, view, capacity = sizing.memory, sizing.view, sizing.capacity
    late = memory.left_after_s > view.application.slo.latency_s or overdue_core_s(view, capacity.steady) > 0
    return late and memory.leaves_sooner and memory.surge_cores <= 0


def count_if_rows_are_cheap(sizing: Sizing) -> int:
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
