"""How the next batch of an operator is run: which task serves which shards, and where. Pure.

A routing that names a host whose executor is not there yet is followed as far as it can be (`carry_out_so_far`). A host that
was lost does not hold anything up: its tasks have no place of their own for that batch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from springtide.backends.spark.jvm.executors import Executor
from springtide.execute.carrying_out import carry_out_so_far
from springtide.model.allocation import OperatorAllocation
from springtide.model.observation import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRouting:
    """One batch's tasks: `task_replicas[t]` is the replica that task t is, `groups[t]` the shards it serves (none
    without shards), `places[t]` the executor it should run on."""

    allocation: OperatorAllocation
    task_replicas: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    places: tuple[Executor | None, ...]

    def shard_executors(self) -> dict[int, Executor]:
        """Where each shard should be."""
        return {
            shard: place for group, place in zip(self.groups, self.places, strict=True) if place is not None for shard in group
        }


def in_force(requested: OperatorAllocation, before: OperatorAllocation | None, awaited: Collection[str]) -> OperatorAllocation:
    """What the next batch follows: what is requested, as far as its hosts have ever been there."""
    return requested if before is None else carry_out_so_far(requested, before, awaited)


def batch_routing(allocation: OperatorAllocation, running: Mapping[str, Executor], *, stateful: bool) -> BatchRouting:
    """The tasks of a batch. Where shards are partitions of the plan, a replica without shards has no task."""
    groups: list[list[int]] = [[] for _ in allocation.replica_hosts]
    for shard, replica in enumerate(allocation.shard_replicas):
        groups[replica].append(shard)
    replicas = [r for r, group in enumerate(groups) if group or not stateful]
    return BatchRouting(
        allocation=allocation,
        task_replicas=tuple(replicas),
        groups=tuple(tuple(groups[r]) for r in replicas),
        places=tuple(running.get(allocation.replica_hosts[r]) for r in replicas),
    )


def uneven(utilisation: FloatArray | Sequence[float]) -> bool:
    """Whether some replicas are much busier than others, and busy enough for it to matter.

    >>> uneven([0.5, 0.55]), uneven([0.9, 0.3]), uneven([0.05, 0.01])
    (False, True, False)
    """
    levels = np.asarray(utilisation, dtype=np.float64)
    mean = float(levels.mean())
    return bool(mean > _IDLE and levels.max() > _EVEN * mean)


_IDLE = 0.1
_EVEN = 1.25


def balanced_shares(utilisation: FloatArray | Sequence[float], load: float) -> FloatArray:
    """The share of a batch's rows for each replica when every row goes to the replica that is the least utilised by then.

    PSPS, Algorithm 1, for rows that are small beside a batch: replicas are filled like vessels, the emptiest first,
    until `load` (in units of one replica's capacity) is poured in.

    >>> balanced_shares([0.5, 0.1], 0.4).round(2).tolist()
    [0.0, 1.0]
    >>> balanced_shares([0.5, 0.1], 0.8).round(2).tolist()
    [0.25, 0.75]
    """
    levels = np.asarray(utilisation, dtype=np.float64)
    if load <= 0:
        return np.full(len(levels), 1 / len(levels))
    order = np.sort(levels)
    filled = np.arange(1, len(order) + 1) * order - np.cumsum(order)  # what it takes to fill up to each level
    vessels = int(np.searchsorted(filled, load, side="right"))
    surface = (load + order[:vessels].sum()) / vessels
    poured = np.maximum(0.0, surface - levels)
    if poured.sum() <= 0:  # too little to be told from nothing
        poured = (levels == levels.min()).astype(np.float64)
    return np.asarray(poured / poured.sum(), dtype=np.float64)
