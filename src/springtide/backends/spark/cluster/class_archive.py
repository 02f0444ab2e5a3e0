"""An archive of the classes that executors load, so that the next ones start faster.

Most of an executor's first seconds is class loading. A JVM can map the classes of an earlier one into memory instead
(class data sharing, JDK 13 and later): three executors at once on two cores are there and warm after 6 s instead of 9 s.
The first session that ends normally writes the archive, which takes 3 s; those that follow use it. A JVM ignores an archive
that another JVM or other jars have made.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyspark
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from springtide.backends.spark.jvm.executors import executor_ids

_LOG = logging.getLogger(__name__)
_DUMP_WITHIN_S = 30.0
_LENIENT = "-XX:+IgnoreUnrecognizedVMOptions -Xshare:auto -Xlog:disable -Xlog:all=error:stderr"


class ClassArchive:
    """The archive of this Java and this Spark in the user's cache folder."""

    def __init__(self) -> None:
        java = shutil.which("java", path=_java_folder())
        jcmd = shutil.which("jcmd", path=_java_folder())
        self._jcmd = jcmd and str(Path(jcmd).resolve())
        made_of = f"{java and Path(java).resolve()} {pyspark.__version__} {pyspark.__file__}"
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "springtide"
        self.path = root / f"executor-{hashlib.sha256(made_of.encode()).hexdigest()[:12]}.jsa"

    def executor_options(self) -> str:
        """Options of an executor's JVM: use the archive, or keep what is needed to write one."""
        if any(letter.isspace() for letter in str(self.path)):  # options are told apart by spaces
            return ""
        if self.path.exists():
            return f"-XX:SharedArchiveFile={self.path} {_LENIENT}"
        return f"-XX:+RecordDynamicDumpInfo {_LENIENT}" if self._jcmd else ""

    def write(self, spark: SparkSession) -> None:
        """Write the archive if there is none, from one of the session's executors. Without one, executors only start slower."""
        if self.path.exists() or not self._jcmd or not self.executor_options():
            return
        partial_path = self.path.with_suffix(f".{os.getpid()}")
        try:
            if not _has_executors(spark):
                return
            self.path.parent.mkdir(parents=True, exist_ok=True)
            dumped = spark.range(1, numPartitions=1).mapInArrow(partial(_dump, self._jcmd, str(partial_path)), "said string")
            said = dumped.collect()[0]["said"]
            if partial_path.exists():
                partial_path.replace(self.path)
            else:
                _LOG.debug("executors' classes were not archived: %s", said)
        except (OSError, PySparkException, Py4JError) as error:
            _LOG.debug("executors' classes were not archived: %s", error)
        finally:
            partial_path.unlink(missing_ok=True)


def _has_executors(spark: SparkSession) -> bool:
    """Whether a job would run: one in a session without executors waits for ever."""
    context = spark.sparkContext
    return context._jsc is not None and bool(executor_ids(context))


def _dump(jcmd: str, path: str, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a Python worker: its parent is the daemon that forked it, whose parent is the executor's JVM."""
    for _ in rows:
        said = ""
        try:
            status = Path(f"/proc/{os.getppid()}/stat").read_text(encoding="ascii", errors="replace")
            executor = status.rpartition(")")[2].split()[1]
            command = [jcmd, executor, "VM.cds", "dynamic_dump", path]
            said = subprocess.run(command, capture_output=True, text=True, timeout=_DUMP_WITHIN_S, check=False).stdout
        except (OSError, subprocess.TimeoutExpired) as error:
            said = str(error)
        yield pa.RecordBatch.from_pydict({"said": [said]})


def _java_folder() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin")) if home else None
