"""A batch's plan as the tasks that a routing asks for: one per replica, each serving its shards, each in its place."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from springtide.backends.spark import grouping
from springtide.backends.spark.application import OperatorNode
from springtide.backends.spark.jvm.tasks import arranged, partition_count, place_of
from springtide.backends.spark.routing import BatchRouting
from springtide.model.application import Grouping
from springtide.model.observation import FloatArray


def spread_out(df: DataFrame, node: OperatorNode, routing: BatchRouting, shares: FloatArray | None) -> DataFrame:
    """The rows of a batch spread over the replicas of an operator without state; `shares` are those of load-balanced
    grouping.
    """
    allocation = routing.allocation
    if node.grouping is Grouping.KEY:
        return grouping.by_key(df, node.key, allocation.shard_replicas, allocation.replicas)
    if shares is not None and len(shares) == allocation.replicas > 1:
        return grouping.by_shares(df, shares)
    return grouping.in_turn(df, allocation.replicas)


def placed(df: DataFrame, routing: BatchRouting, *, stateful: bool, spread: bool) -> DataFrame:
    """The batch as one task per replica, each in its place.

    A function that shuffles once more makes its own tasks, which are left as they are.
    """
    tasks = parts = partition_count(df)
    groups: Sequence[Sequence[int]] | None = None
    if not spread:
        groups = routing.groups if stateful else _dealt(parts, len(routing.task_replicas))
        if sum(map(len, groups)) != parts:
            return df
        tasks = len(groups)
    places = [None if p is None else place_of(p.host, p.id) for p in routing.places]
    return arranged(df, groups, places if tasks == len(places) and any(places) else None)


def _dealt(parts: int, tasks: int) -> Sequence[Sequence[int]]:
    """Partitions dealt out to tasks; no task is left without one."""
    return [range(t, parts, tasks) for t in range(min(tasks, parts))]
