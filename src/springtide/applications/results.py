"""A table of results: Parquet, one folder for each batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from springtide.errors import SpringtideError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


@dataclass(frozen=True, slots=True)
class ResultTable:
    """`save` is a sink. A batch that comes again replaces its own rows, so each is there once.

    Rows have the column `batch`: of what was said of a key again and again, the newest batch's counts.
    """

    folder: Path

    def save(self, df: DataFrame, batch_id: int) -> None:
        df.write.mode("overwrite").parquet(str(self.folder / f"batch={batch_id}"))

    def save_some(self, chosen: Callable[[DataFrame], DataFrame], df: DataFrame, batch_id: int) -> None:
        """Save what is chosen of a batch; with `functools.partial` it is a sink."""
        self.save(chosen(df), batch_id)

    def read(self, spark: SparkSession) -> DataFrame:
        if not self.folder.is_dir():
            raise SpringtideError(f"{self.folder}: there are no results; run the application first")
        return spark.read.parquet(str(self.folder))

    def rows(self, spark: SparkSession) -> list[Row]:
        return self.read(spark).collect()
