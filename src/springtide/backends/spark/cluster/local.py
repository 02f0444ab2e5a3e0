"""Spark on the cores of this machine, for commands that have much to compute and no application to run."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from springtide.backends.spark.cluster.embedded import QUICK_JVM, session
from springtide.errors import SpringtideError


@contextmanager
def local_session(name: str, workers: int | None, *, without_java: str = "") -> Iterator[SparkSession]:
    """Spark in this process and in one worker process per core, or in so many of them.

    `without_java` is what a user may do who has none, besides installing one.
    """
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise SpringtideError(f"Spark needs a JDK 17 or newer, and there is no java on PATH: install one{without_java}")
    own = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": QUICK_JVM,
    }
    handler = signal.getsignal(signal.SIGINT)
    with session(name, master=f"local[{workers or '*'}]", settings=own) as spark:
        signal.signal(signal.SIGINT, handler)  # Spark's own handler outlives the session
        yield spark
