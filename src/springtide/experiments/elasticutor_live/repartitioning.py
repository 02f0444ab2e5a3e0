"""The resource-centric way to carry a change out on Spark: the query stops, its keys are dealt anew, it starts again.

The paper's approach pauses upstream, waits until what is on its way has been processed, migrates state, changes all routing
tables, and resumes. Here the running batch is finished and committed, the query stops, and its next run has the new routes
and loads all state from the checkpoint. Unlike with `Scaling.RESOURCE_CENTRIC`, which has as many state partitions as replicas
and leaves the keys of each to chance, shards stay, and the policy says where each goes: the balance is as good as in the paper.
"""

from __future__ import annotations

import threading
from typing import Any

from springtide.backends.spark.dead_letters import reason
from springtide.backends.spark.query import OperatorQuery
from springtide.model.allocation import OperatorAllocation


class RepartitionedQuery(OperatorQuery):
    """A query that is restarted for every change. The end waits for a restart that is under way."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._restarting = threading.RLock()
        self._over = False

    def request(self, allocation: OperatorAllocation) -> None:
        if allocation == self._requested:
            return
        if self._query is None:
            super().request(allocation)
        else:
            name = f"repartition-{self.name}"
            threading.Thread(target=self._restart, args=(allocation,), name=name, daemon=True).start()

    def stop(self) -> None:
        with self._restarting:
            self._over = True
            super().stop()

    def _restart(self, allocation: OperatorAllocation) -> None:
        with self._restarting:
            if self._over:
                return
            try:
                super().stop()
                super().request(allocation)
                self._query = None  # it has not ended by itself
                self._stores, self._stopping = None, False
                self._shard_places.clear()
                self.start()
            except Exception as error:
                self.failure = reason(error)
