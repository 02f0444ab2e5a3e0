"""An archive of the classes that executors load, so that the next ones start faster.

Most of an executor's first seconds is class loading. A JVM can map the classes of an earlier one into memory instead
(class data sharing, JDK 13 and later): three executors at once on two cores are there and warm after 6 s instead of 9 s.
The first session on a machine is preceded by one that writes the archive, in a process of its own and some 20 s; all use it.
A JVM ignores an archive that another JVM or other jars have made.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pyspark
import pyspark.sql.functions as F
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from springtide.backends.spark.jvm.executors import executors
from springtide.backends.spark.warming import warm_up

if TYPE_CHECKING:
    from pyspark.sql.streaming.state import GroupState

_LOG = logging.getLogger(__name__)
_DUMP_WITHIN_S = 30.0
_EXECUTOR_WITHIN_S = 60.0
_WRITTEN_WITHIN_S = 180.0
_BATCHES = 3
_EXERCISE = 2  # its version: an archive of another one has other classes
_LENIENT = "-XX:+IgnoreUnrecognizedVMOptions -Xshare:auto -Xlog:disable -Xlog:all=error:stderr"


class ClassArchive:
    """The archive of this Java and this Spark in the user's cache folder."""

    def __init__(self) -> None:
        java = shutil.which("java", path=_java_folder())
        jcmd = shutil.which("jcmd", path=_java_folder())
        self._jcmd = jcmd and str(Path(jcmd).resolve())
        made_of = f"{java and Path(java).resolve()} {pyspark.__version__} {pyspark.__file__} {_EXERCISE}"
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "springtide"
        self.path = root / f"executor-{hashlib.sha256(made_of.encode()).hexdigest()[:12]}.jsa"

    def executor_options(self) -> str:
        """Options of an executor's JVM: use the archive, or keep what is needed to write one."""
        if any(letter.isspace() for letter in str(self.path)):  # options are told apart by spaces
            return ""
        if self.path.exists():
            return f"-XX:SharedArchiveFile={self.path} {_LENIENT}"
        return f"-XX:+RecordDynamicDumpInfo {_LENIENT}" if self._jcmd else ""

    @property
    def missing(self) -> bool:
        """Whether there is none, and one can be written."""
        return bool(self._jcmd) and bool(self.executor_options()) and not self.path.exists()

    def write(self, spark: SparkSession) -> None:
        """Let an executor of the session do what executors do, and write the archive of its classes. Without an archive,
        executors only start slower."""
        partial_path = self.path.with_suffix(f".{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _exercise(spark)
            dumped = spark.range(1, numPartitions=1).mapInArrow(
                partial(_dump, str(self._jcmd), str(partial_path)), "said string"
            )
            said = dumped.collect()[0]["said"]
            if partial_path.exists():
                partial_path.replace(self.path)
            else:
                _LOG.debug("executors' classes were not archived: %s", said)
        except (OSError, PySparkException, Py4JError) as error:
            _LOG.debug("executors' classes were not archived: %s", error)
        finally:
            partial_path.unlink(missing_ok=True)


def write_archive_apart() -> None:
    """Write the archive in a process of its own: nothing that happens there touches the session that starts afterwards."""
    code = "from springtide.backends.spark.cluster.embedded import write_archive; write_archive()"
    try:
        subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=_WRITTEN_WITHIN_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        _LOG.debug("executors' classes were not archived: %s", error)


def _exercise(spark: SparkSession) -> None:
    """Run what gets an executor ready, and some batches with state, of Spark's own and of a Python function's, into files."""
    context = spark.sparkContext
    deadline = time.monotonic() + _EXECUTOR_WITHIN_S
    while not (there := executors(context)) and time.monotonic() < deadline:
        time.sleep(0.1)
    for executor in there.values():
        warm_up(spark, executor)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    keyed = rows.select((F.col("value") % 4).alias("key"), "value")
    for counts in (
        keyed.groupBy("key").count(),
        keyed.groupBy("key").applyInPandasWithState(_count, "key long, count long", "count long", "update", "NoTimeout"),
    ):
        with TemporaryDirectory(prefix="springtide-classes-", ignore_cleanup_errors=True) as folder:
            _run_batches(counts, folder, deadline)


def _run_batches(counts: DataFrame, folder: str, deadline_s: float) -> None:
    batches: list[int] = []

    def save(df: DataFrame, batch_id: int) -> None:
        df.write.mode("overwrite").parquet(f"{folder}/rows")
        batches.append(batch_id)

    writer = counts.writeStream.outputMode("update").option("checkpointLocation", f"{folder}/checkpoint").foreachBatch(save)
    query = writer.start()
    try:
        while len(batches) < _BATCHES and query.isActive and time.monotonic() < deadline_s:
            time.sleep(0.1)
    finally:
        query.stop()


def _count(key: tuple[int], rows: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    state.update(((state.get[0] if state.exists else 0) + sum(map(len, rows)),))
    yield pd.DataFrame({"key": [key[0]], "count": [state.get[0]]})


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
