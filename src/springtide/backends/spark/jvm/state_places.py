"""Where the shards of a stateful query live, and how to make one live elsewhere.

Spark's coordinator on the driver remembers which executor holds each state store and prefers it in the next batch. Telling it
of another executor makes the next batch's task run there, load the shard from the checkpoint and leave the old copy to
be dropped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from springtide.backends.spark.files import Folder
from springtide.backends.spark.jvm.executors import Executor
from springtide.backends.spark.jvm.scala import jvm_of, seq

_MOST_OPERATORS = 64


@dataclass(frozen=True, slots=True)
class StateStores:
    """The state stores of one run of a query: for each stateful operator in its plan, the names of a shard's stores."""

    root: str
    run_id: str
    names: Mapping[int, tuple[str, ...]]


def state_stores(checkpoint: Folder, root: str, run_id: str) -> StateStores:
    """The stores of the query with that checkpoint; there are none before its first batch is over."""
    names: dict[int, tuple[str, ...]] = {}
    for operator in range(_MOST_OPERATORS):
        text = _description(checkpoint.folder(f"state/{operator}/_metadata"))
        if text is None:
            break
        described = json.loads(text.splitlines()[-1])
        names[operator] = tuple(store["storeName"] for store in described["stateStoreInfo"])
    return StateStores(root, run_id, names)


def _description(folder: Folder) -> str | None:
    """Spark writes one file `metadata`, or, for `transformWithState`, one per change of schema in the folder `v2`."""
    text = folder.read_text("metadata")
    if text is None:
        versions = [name for name in folder.folder("v2").names() if name.isdigit()]
        text = folder.folder("v2").read_text(max(versions, key=int)) if versions else None
    return text


def move(spark: SparkSession, stores: StateStores, shards: Iterable[int], executor: Executor) -> None:
    """Let shards live on an executor from the next batch on."""
    context = spark.sparkContext
    state = jvm_of(context).org.apache.spark.sql.execution.streaming.state
    run = jvm_of(context).java.util.UUID.fromString(stores.run_id)
    coordinator = spark._jsparkSession.streams().stateStoreCoordinator()
    nothing = seq(context, [])
    for shard in shards:
        for operator, names in stores.names.items():
            for name in names:
                store = state.StateStoreProviderId(state.StateStoreId(stores.root, operator, shard, name), run)
                coordinator.reportActiveInstance(store, executor.host, executor.id, nothing)
