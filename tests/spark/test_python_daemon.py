"""The process that Python workers are forked from on executors of this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from springtide.backends.spark.cluster import python_daemon


@pytest.mark.spark
def test_workers_begin_with_what_they_need_from_files_with_bytecode(spark: SparkSession) -> None:
    def describe_worker(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # sent by value: tests are not installed
        import os  # noqa: PLC0415 - in the worker
        import sys  # noqa: PLC0415

        loaded = "pandas" in sys.modules
        import pyspark  # noqa: PLC0415

        parent = Path(f"/proc/{os.getppid()}/cmdline").read_text(encoding="utf-8").replace("\0", " ")
        for _ in rows:
            yield pa.RecordBatch.from_pylist([{"loaded": loaded, "pyspark": str(pyspark.__file__), "parent": parent}])

    described = spark.range(1, numPartitions=1).mapInArrow(describe_worker, "loaded boolean, pyspark string, parent string")

    worker = described.collect()[0]

    assert worker["loaded"]
    assert ".zip" not in worker["pyspark"]
    assert python_daemon.MODULE in worker["parent"]


def test_pyspark_is_taken_from_the_archive_if_it_is_nowhere_else(tmp_path: Path) -> None:
    archives = [str(tmp_path / "pyspark.zip"), str(tmp_path / "py4j-0.10-src.zip")]
    own = str(tmp_path / "own.zip")

    assert python_daemon.installed_path([own, *archives]) == [own, *archives]
    assert python_daemon.installed_path([own, *archives, *sys.path]) == [own, *sys.path]
