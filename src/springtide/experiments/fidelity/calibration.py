"""From the batches of a short live run to the settings of a simulator that costs the same: pure.

The model is the simulator's own:

    batch = fixed + the slowest replica's (task + shards x shard + rows x service)

* task, shard and service times: the least sum of squares that a few late tasks do not sway (soft L1), none below 0, over the
  tasks of all batches, which must differ in rows for the same shards, or rows and shards cannot be told apart;
* fixed: what lies between two batches' ends beside the slowest task, the median of batches that followed one another at once;
* a shard's move: what the batches after a move took beyond the model, for each shard that moved;
* a host's start: from the moment it was asked for until it ran.

The first batches of an operator are left out: everything is compiled in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

import numpy as np
from scipy.optimize import least_squares, nnls

from springtide.errors import require
from springtide.experiments.fidelity.batches import MeasuredBatch, Part
from springtide.model.observation import FloatArray

_COLD = 3  # batches
_AT_ONCE_S = 0.5  # a pause this long between two batches means that there was nothing to do
_LEAST = 5  # batches to learn from
_VARIED = 2.0  # the largest batch over the smallest, at least
_USUAL_ERROR_S = 0.1  # of a task: one that is off by much more was held up by something else


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What things cost, in seconds. `selectivity` is rows sent on per row processed."""

    fixed_s: float
    task_s: float
    shard_s: float
    service_s: Mapping[str, float]
    selectivity: Mapping[str, float]
    move_s: float
    host_start_s: float
    batches: int


def calibrated(by_operator: Mapping[str, Sequence[MeasuredBatch]], host_starts_s: Sequence[float]) -> Calibration:
    """Settings for all operators; a `host_starts_s` that is empty leaves the start of a host at 0."""
    warm = {name: list(batches)[_COLD:] for name, batches in by_operator.items()}
    few = next((name for name, batches in warm.items() if len(batches) < _LEAST), None)
    require(few is None, f"operator {few!r} has run too few batches to learn what they cost: let it run for longer")
    alike = next((name for name, batches in warm.items() if _alike(batches)), None)
    require(alike is None, f"all batches of operator {alike!r} are about as large: let its load vary, below what fills a batch")
    names = sorted(warm)
    task_s, shard_s, service_s = _fitted(names, warm)

    def slowest_s(batch: MeasuredBatch) -> float:
        own_s = service_s[batch.operator]
        return max((task_s + part.shards * shard_s + part.rows * own_s for part in batch.parts), default=0.0)

    following = [pair for name in names for pair in pairwise(warm[name]) if _at_once(pair) and pair[1].parts]
    require(bool(following), "no batch followed another at once: offer more rows")
    quiet = [(before, batch) for before, batch in following if not batch.moved_shards]
    fixed_s = median(max(0.0, batch.ended_s - before.ended_s - _longest_s(batch)) for before, batch in quiet or following)
    moves = [
        max(0.0, (batch.ended_s - before.ended_s) - fixed_s - slowest_s(batch)) / batch.moved_shards
        for before, batch in following
        if batch.moved_shards
    ]
    return Calibration(
        fixed_s=fixed_s,
        task_s=task_s,
        shard_s=shard_s,
        service_s=service_s,
        selectivity={name: _selectivity(warm[name]) for name in names},
        move_s=median(moves) if moves else 0.0,
        host_start_s=fmean(host_starts_s) if host_starts_s else 0.0,
        batches=sum(map(len, warm.values())),
    )


def _fitted(names: Sequence[str], warm: Mapping[str, Sequence[MeasuredBatch]]) -> tuple[float, float, dict[str, float]]:
    """Task, shard and service times. A batch in which a shard had to be loaded tells nothing of them."""
    parts: list[tuple[int, Part]] = [
        (number, part)
        for number, name in enumerate(names)
        for batch in warm[name]
        if not batch.moved_shards
        for part in batch.parts
    ]
    require(bool(parts), "no task was seen that had not to load state first: let it run for longer between changes")
    rows = np.zeros((len(parts), 2 + len(names)))
    for at, (number, part) in enumerate(parts):
        rows[at, 0], rows[at, 1], rows[at, 2 + number] = 1.0, part.shards, part.rows
    scales = np.maximum(1e-12, np.abs(rows).max(axis=0))  # rows are thousands, shards a few
    found = _unswayed(rows / scales, np.array([part.run_s for _, part in parts])) / scales
    return float(found[0]), float(found[1]), {name: float(found[2 + number]) for number, name in enumerate(names)}


def _unswayed(rows: FloatArray, taken_s: FloatArray) -> FloatArray:
    """The costs, none below 0, that explain best how long tasks took."""

    def errors(costs: FloatArray) -> FloatArray:
        return np.asarray(rows @ costs - taken_s, dtype=np.float64)

    first = nnls(rows, taken_s)[0]
    found = least_squares(errors, first, bounds=(0, np.inf), loss="soft_l1", f_scale=_USUAL_ERROR_S)
    return np.asarray(found.x, dtype=np.float64)


def _alike(batches: Sequence[MeasuredBatch]) -> bool:
    """Whether batches differ too little in size for a row's cost to be told from a shard's and a task's."""
    rows = [batch.rows for batch in batches if batch.parts and not batch.moved_shards]
    return bool(rows) and max(rows) < _VARIED * min(rows)


def _at_once(pair: tuple[MeasuredBatch, MeasuredBatch]) -> bool:
    return pair[1].began_s - pair[0].ended_s < _AT_ONCE_S


def _longest_s(batch: MeasuredBatch) -> float:
    return max(part.run_s for part in batch.parts)


def _selectivity(batches: Sequence[MeasuredBatch]) -> float:
    rows = sum(batch.rows for batch in batches)
    return sum(batch.emitted for batch in batches) / rows if rows else 1.0
