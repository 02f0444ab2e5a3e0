"""How the driver's own JVM behaves: what it logs, and how it writes files."""

from __future__ import annotations

from pyspark import SparkContext

from springtide.backends.spark.jvm.scala import jvm_of


def silence(context: SparkContext, logger: str) -> None:
    """Log nothing more under this name."""
    log4j = jvm_of(context).org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel(logger, log4j.Level.OFF)


def without_local_checksums(context: SparkContext) -> None:
    """Write files on the driver's own disk without a second file of checksums: Hadoop starts a process for each, to set its
    permissions."""
    jvm = jvm_of(context)
    local = jvm.org.apache.hadoop.fs.FileSystem.getLocal(context._jsc.hadoopConfiguration())
    local.setWriteChecksum(False)
