"""Setting aside the rows that make an operator's function fail.

Only a batch that has failed comes here. Its rows are taken to the driver and halved until the rows that fail alone are
found; each is kept with the reason in Parquet files, once per batch id, and the others go their way.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from springtide.backends.spark.files import Folder

REASON = "springtide_reason"


@dataclass(frozen=True)
class Poison:
    """Rows that fail, each with its reason."""

    rows: pa.Table
    reasons: list[str]


def isolate(spark: SparkSession, batch: pa.Table, function: Callable[[DataFrame], DataFrame]) -> tuple[pa.Table, Poison]:
    """The rows that pass, and the rows that make `function` fail on their own."""
    passed: list[pa.Table] = []
    failed: list[pa.Table] = []
    reasons: list[str] = []

    def sort_out(rows: pa.Table) -> None:
        try:
            function(spark.createDataFrame(rows)).write.format("noop").mode("overwrite").save()
        except PySparkException as error:
            if rows.num_rows == 1:
                failed.append(rows)
                reasons.append(reason(error))
                return
            half = rows.num_rows // 2
            sort_out(rows.slice(0, half))
            sort_out(rows.slice(half))
        else:
            passed.append(rows)

    if batch.num_rows:
        sort_out(batch)
    empty = batch.slice(0, 0)
    return pa.concat_tables([empty, *passed]), Poison(pa.concat_tables([empty, *failed]), reasons)


def set_aside(folder: Folder, batch_id: int, poison: Poison) -> None:
    """Keep the rows of one batch; a repeated batch replaces its own file."""
    folder.create()
    table = poison.rows.append_column(REASON, pa.array(poison.reasons, pa.string()))
    filesystem, path = folder.path(f"{batch_id}.parquet")
    pq.write_table(table, path, filesystem=filesystem)


def reason(error: BaseException) -> str:
    """What a user's function said, without Spark's and Python's tracebacks: the last line that names an exception.

    >>> reason(ValueError("no such city"))
    'ValueError: no such city'
    """
    if not isinstance(error, PySparkException):
        return f"{type(error).__name__}: {error}".splitlines()[0]
    text = str(error).partition("=== Streaming Query ===")[0]
    told = re.search(r"terminated with exception: (.*)", text)
    if told:
        return told[1].strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if not line.startswith(("at ", "File ", "Traceback", "JVM stacktrace", "=="))]
    errors = [line for line in named if ": " in line and line.partition(":")[0].replace(".", "").isidentifier()]
    return (errors or named or [type(error).__name__])[-1]
