"""The process that forks Python workers on executors of this machine: it has loaded what every worker imports.

Spark's own daemon has loaded next to nothing, and imports PySpark from an archive without bytecode, so that the first worker of
an executor takes more than a second of processor time to import pandas, PyArrow and PySpark. Forked from here it takes none.

Run by Spark as `python -m springtide.backends.spark.cluster.python_daemon WORKER_MODULE`.
"""

from __future__ import annotations

import gc
import importlib
import sys
from importlib.machinery import PathFinder
from pathlib import Path

MODULE = __name__
_LOADED = ("pandas", "pyarrow.parquet", "pyspark.worker", "pyspark.sql.pandas.types", "pyspark.sql.streaming.state")


def installed_path(path: list[str]) -> list[str]:
    """The search path without the archives of PySpark's sources, if it is installed as files, too."""
    files = [entry for entry in path if not Path(entry).match("pyspark*.zip") and not Path(entry).match("py4j*.zip")]
    return files if PathFinder.find_spec("pyspark", files) and PathFinder.find_spec("py4j", files) else path


def run() -> None:
    sys.path[:] = installed_path(sys.path)
    for name in _LOADED:
        importlib.import_module(name)
    gc.freeze()  # a worker that collects garbage would copy every page that it shares with this process
    importlib.import_module("pyspark.daemon").manager()


if __name__ == "__main__":
    run()
