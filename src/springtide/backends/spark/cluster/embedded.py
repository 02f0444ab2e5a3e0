"""A Spark session with what elasticity needs: on the embedded cluster, on any master, or checked in a session of the
user's own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark import SparkContext
from pyspark.sql import SparkSession

from springtide.backends.spark.cluster import python_daemon
from springtide.backends.spark.cluster.class_archive import ClassArchive, write_archive_apart
from springtide.backends.spark.jvm.driver import silence, without_local_checksums
from springtide.backends.spark.scaling import Scaling
from springtide.errors import SpringtideError

_STREAMING = "org.apache.spark.sql.execution.streaming"

# What is faster, or exact, only with these; the user's own settings go before them.
SETTINGS: Mapping[str, str] = {
    # The default manager starts a process for each file on a local disk.
    "spark.sql.streaming.checkpointFileManagerClass": f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager",
    "spark.sql.streaming.stateStore.providerClass": f"{_STREAMING}.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # A shard that moves is loaded from its last snapshot and every change since: with Spark's 60 s, a hundred batches of them.
    "spark.sql.streaming.stateStore.maintenanceInterval": "10s",
    "spark.sql.streaming.minBatchesToRetain": "20",
    # A task waits for its place this long, and no longer once the executor is lost.
    "spark.locality.wait": "10s",
    "spark.locality.wait.node": "0s",
    "spark.locality.wait.rack": "0s",
    # Queries of one application share slots evenly, instead of the first taking all.
    "spark.scheduler.mode": "FAIR",
    # A Python worker has 15 s to connect otherwise, which a machine that is busy for a moment does not keep.
    "spark.python.authenticate.socketTimeout": "60s",
    "spark.dynamicAllocation.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    # What the status store keeps: enough for an interval, however long the run.
    "spark.ui.retainedJobs": "200",
    "spark.ui.retainedStages": "400",
    "spark.ui.retainedTasks": "10000",
    "spark.sql.ui.retainedExecutions": "50",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


def dynamic_allocation(min_executors: int, max_executors: int) -> dict[str, str]:
    """Settings with which Spark adds and removes executors by itself, as its documentation gives them."""
    return {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": str(min_executors),
        "spark.dynamicAllocation.initialExecutors": str(min_executors),
        "spark.dynamicAllocation.maxExecutors": str(max_executors),
    }


@contextmanager
def session(
    name: str,
    *,
    master: str | None = None,
    executors: int = 4,
    cores: int = 1,
    memory_mb: int = 600,
    settings: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """A session that ends with the block. Without a master: `executors` real executor processes on this machine.

    One that is already there is refused: it would keep its own settings, and would be stopped at the end of the block.
    """
    if SparkContext._active_spark_context is not None:
        raise SpringtideError("this process already has a Spark session: stop it first, or run the command on its own")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    chosen = {**SETTINGS, "spark.executor.cores": str(cores), "spark.executor.memory": f"{memory_mb}m"}
    if master is None:
        archive = ClassArchive()
        if archive.missing:
            write_archive_apart()
        master = f"local-cluster[{executors},{cores},{memory_mb + _OVERHEAD_MB}]"
        chosen |= _local(archive)
    with _started(name, master, {**chosen, **(settings or {})}) as spark:
        yield spark


def write_archive() -> None:
    """Write the archive of classes that executors of this machine start from, with a session of its own."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    archive = ClassArchive()
    master = f"local-cluster[1,1,{600 + _OVERHEAD_MB}]"
    with _started("springtide-classes", master, {**SETTINGS, "spark.executor.memory": "600m", **_local(archive)}) as spark:
        archive.write(spark)


@contextmanager
def _started(name: str, master: str, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    silence(spark.sparkContext, _NOISY)
    without_local_checksums(spark.sparkContext)
    try:
        yield spark
    finally:
        spark.stop()


def _local(archive: ClassArchive) -> dict[str, str]:
    """What executors of this machine need beside `SETTINGS`."""
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": QUICK_JVM,
        "spark.python.daemon.module": python_daemon.MODULE,
        "spark.executor.extraJavaOptions": f"{QUICK_JVM} {archive.executor_options()}".rstrip(),
    }


_OVERHEAD_MB = 424
# Several JVMs on one machine: compiling to the last would take the cores from the work for minutes, and new executors from it.
# Each file that Hadoop makes on a local disk takes a process (chmod): VFORK starts it without a helper process in between.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djdk.lang.Process.launchMechanism=VFORK"


# Spark goes on for seconds telling an executor that has been let go of what it should forget, and logs each as an error.
_NOISY = "org.apache.spark.network.client.TransportClient"


def check_session(spark: SparkSession, scaling: Scaling) -> None:
    """Refuse a session in which executors or state cannot be moved, and say which setting would allow it."""
    if not hasattr(spark, "_jsparkSession"):
        raise SpringtideError("Springtide needs a classic Spark session, not Spark Connect: it asks the driver for executors")
    dynamic = spark.conf.get("spark.dynamicAllocation.enabled", "false") == "true"
    if scaling is Scaling.DYNAMIC_ALLOCATION and not dynamic:
        raise SpringtideError(
            "Spark's dynamic allocation is to be measured, and is off: set spark.dynamicAllocation.enabled=true"
        )
    if dynamic and scaling is not Scaling.DYNAMIC_ALLOCATION:
        raise SpringtideError(
            "Spark's dynamic allocation is on, and would work against Springtide: set spark.dynamicAllocation.enabled=false"
        )
    if spark.conf.get("spark.decommission.enabled", "false") == "true":
        raise SpringtideError("spark.decommission.enabled is on, so a released executor would leave at once: set it to false")
