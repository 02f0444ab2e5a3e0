"""Asking for executors, letting them go, and keeping tasks away from one that is about to go.

The same calls serve local-cluster, standalone, YARN and Kubernetes; Spark's own dynamic allocation must be off.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark import SparkContext

from springtide.backends.spark.jvm.scala import jvm_of, scala_map, seq, singleton
from springtide.backends.spark.jvm.status import as_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """One executor that is alive. `memory_bytes` is what its JVM may use for blocks and execution."""

    id: str
    host: str
    cores: int
    memory_bytes: int


def executors(context: SparkContext) -> dict[str, Executor]:
    """Every executor that is registered now, by id; not the driver."""
    found = as_json(context, context._jsc.sc().statusStore().executorList(True))
    return {
        e["id"]: Executor(
            id=e["id"], host=e["hostPort"].rpartition(":")[0], cores=int(e["totalCores"]), memory_bytes=int(e["maxMemory"])
        )
        for e in found
        if e["id"] != "driver" and e["isActive"]
    }


def executor_ids(context: SparkContext) -> set[str]:
    """Ids of the executors that are registered now: cheap enough to be asked for many times a second."""
    return set(context._jsc.sc().getExecutorIds().mkString(" ").split())


def request_total(context: SparkContext, total: int) -> bool:
    """Ask the cluster manager for this many executors in all; it keeps that number up when one dies."""
    return bool(context._jsc.sc().requestTotalExecutors(total, 0, scala_map(context, {})))


def cordon(context: SparkContext, executor: str) -> None:
    """Give the executor no more tasks; those that run on it go on, and what it has shuffled stays readable.

    This is the driver's half of Spark's decommissioning; without `spark.decommission.enabled` the executor does not do
    its half, which would be to leave.
    """
    info = jvm_of(context).org.apache.spark.scheduler.ExecutorDecommissionInfo("released", singleton(context, "scala.None"))
    context._jsc.sc().schedulerBackend().decommissionExecutor(executor, info, False, False)


def kill(context: SparkContext, executors: Iterable[str]) -> bool:
    """End executors for good: the number asked for falls with them."""
    return bool(context._jsc.sc().killExecutors(seq(context, executors)))
