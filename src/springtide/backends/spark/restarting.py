"""The resource-centric baseline: a query that has as many state partitions as replicas, and is restarted to change them.

This is what an operator of plain Spark has to do, and what Flink's autoscaler does: stop, partition the state anew,
start. It exists to be compared with.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
from pyspark.sql import DataFrame

from springtide.backends.spark.dead_letters import reason
from springtide.backends.spark.jvm.tasks import shuffled_bytes
from springtide.backends.spark.query import OperatorQuery
from springtide.backends.spark.repartitioning import kept_partitions, repartition
from springtide.backends.spark.routing import BatchRouting
from springtide.model.allocation import OperatorAllocation
from springtide.model.observation import FloatArray


class RestartingQuery(OperatorQuery):
    """Rows are hashed to replicas directly: a plan's shards keep their names, and no more, and cannot be routed."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._downtime_s = 0.0
        self._restarting = threading.Lock()

    @property
    def partitions(self) -> int:
        return self._requested.replicas if self.plan.head.stateful else 0

    def request(self, allocation: OperatorAllocation) -> None:
        before = self._requested.replicas
        super().request(_unrouted(allocation))
        runs = self._query is not None or self._restarting.locked()
        if self.plan.head.stateful and allocation.replicas != before and runs:
            threading.Thread(target=self._restart, name=f"restart-{self.name}", daemon=True).start()

    def _restart(self) -> None:
        """Rows wait from the end of the last batch until the query runs again."""
        with self._restarting:
            try:
                self._restart_now()
            except Exception as error:
                self.failure = reason(error)

    def _restart_now(self) -> None:
        began_s = time.time()
        self.stop()
        if kept_partitions(self.checkpoint) not in {None, self.partitions}:
            repartition(self._spark, self.checkpoint, self.partitions)
        self._query = None  # it has not ended by itself
        self._stores, self._stopping = None, False
        self._shard_places.clear()
        self.start()
        self._downtime_s += time.time() - began_s

    def take_downtime_s(self) -> float:
        taken, self._downtime_s = self._downtime_s, 0.0
        return taken

    def _move_shards(self, routing: BatchRouting) -> int:  # noqa: ARG002
        """Where state lies is Spark's own affair here."""
        return 0

    def _shard_bytes(self, df: DataFrame) -> FloatArray | None:
        """What a partition received, shared by the shards that would be its own."""
        sizes = shuffled_bytes(df) if self.plan.head.stateful else None
        routes = self._requested.shard_replicas
        if sizes is None or len(sizes) <= max(routes):
            return None
        owners = np.array(routes)
        return np.asarray(np.array(sizes, dtype=np.float64)[owners] / np.bincount(owners)[owners])


def _unrouted(allocation: OperatorAllocation) -> OperatorAllocation:
    """The same replicas with the shards dealt out in turn, as hashing does."""
    shards = len(allocation.shard_replicas)
    return OperatorAllocation(allocation.replica_hosts, tuple(s % allocation.replicas for s in range(shards)))
