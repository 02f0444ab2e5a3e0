"""The session that all live runs share: executors of this machine, warm before the first run, gone after the last."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from springtide.backends.spark.cluster.embedded import session
from springtide.errors import SpringtideError
from springtide.experiments.elasticutor_live import world
from springtide.experiments.elasticutor_live.trial import Trial, run_trial
from springtide.experiments.elasticutor_live.tuples import Tuples

_WARMING_S = 10.0  # beside the warm-up of every run: cold JVMs compile
_CLEANING_S = 20.0


@contextmanager
def cluster() -> Iterator[None]:
    """Runs find it as the active session. What it has written goes with it."""
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise SpringtideError("live runs need Spark, and Spark a JDK 17 or newer: there is no java on PATH, install one")
    with _folder() as folder:
        settings = {
            "spark.local.dir": f"{folder}/local",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            # Every observation looks through all jobs that Spark remembers.
            "spark.ui.retainedJobs": "40",
            "spark.ui.retainedStages": "80",
        }
        handler = signal.getsignal(signal.SIGINT)
        with session("springtide-live", executors=world.HOSTS, cores=world.CORES, memory_mb=world.MEMORY_MB, settings=settings):
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, handler)  # Spark's own handler outlives the session
            _warm_up()
            yield


def _warm_up() -> None:
    rows = Tuples(shuffles_per_minute=0, counted_s=_WARMING_S, row_s=0.001)
    run_trial(Trial(name="warm-up", workload=rows, policy=world.made_policy(world.STATIC), counted_s=_WARMING_S))


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder that is removed for good: executors may write into it for a moment after their session has ended."""
    folder = Path(tempfile.mkdtemp(prefix="springtide-live-"))
    try:
        yield folder
    finally:
        gone_by_s = time.monotonic() + _CLEANING_S
        shutil.rmtree(folder, ignore_errors=True)
        while folder.exists() and time.monotonic() < gone_by_s:
            time.sleep(0.2)
            shutil.rmtree(folder, ignore_errors=True)
