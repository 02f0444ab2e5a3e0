"""The process that Python workers are forked from on executors of this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from springtide.backends.spark.cluster import python_daemon


def _describe_worker(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import os  # noqa: PLC0415 - in the worker

    loaded = "pandas" in sys.modules
    import pyspark  # noqa: PLC0415

    parent = Path(f"/proc/{os.getppid()}/cmdline").read_text(encoding="utf-8").replace("\0", " ")
    for _ in rows:
        yield pa.RecordBatch.from_pylist([{"loaded": loaded, "pyspark": str(pyspark.__file__), "parent": parent}])


@pytest.mark.spark
def test_workers_begin_with_what_they_need_from_files_with_bytecode(spark: SparkSession) -> None:
    described = spark.range(1, numPartitions=1).mapInArrow(_describe_worker, "loaded boolean, pyspark string, parent string")

    worker = described.collect()[0]

    assert worker["loaded"]
    assert ".zip" not in worker["pyspark"]
    assert python_daemon.MODULE in worker["parent"]


def test_pyspark_is_taken_from_the_archive_if_it_is_nowhere_else(tmp_path: Path) -> None:
    path = [str(tmp_path), "/opt/spark/python/lib/pyspark.zip"]

    assert python_daemon.installed_path(path) == path
    assert python_daemon.installed_path([*path, *sys.path]) == [str(tmp_path), *sys.path]
