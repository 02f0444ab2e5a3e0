"""An edge as a streaming source: Spark asks which entry is the last, and reads entries by their numbers.

The offset is the number of the last entry that was read, and names its edge, so that a query with several inputs can tell their
offsets apart. Rows are limited per batch by whole entries: at least one is read, so the stream always moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from springtide.backends.spark.edges.log import WrittenFile, read_entries, read_head
from springtide.backends.spark.files import Folder

FORMAT = "springtide-edge"
# A task is worth its start for about this many rows.
ROWS_PER_TASK = 20_000


def read_edge(
    spark: SparkSession, folder: Folder, name: str, schema: StructType, *, most_tasks: int, max_rows: int | None = None
) -> DataFrame:
    """The edge as a streaming DataFrame."""
    spark.dataSource.register(EdgeSource)
    reader = spark.readStream.format(FORMAT).schema(schema).option("folder", folder.uri).option("edge", name)
    reader = reader.option("mostTasks", most_tasks)
    return (reader if max_rows is None else reader.option("maxRows", max_rows)).load()


class EdgeSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        limit = self.options.get("maxRows")
        return EdgeReader(
            folder=Folder(self.options["folder"]),
            edge=self.options["edge"],
            schema=schema,
            most_tasks=int(self.options["mostTasks"]),
            max_rows=None if limit is None else int(limit),
        )


@dataclass
class FilesPartition(InputPartition):
    """The files that one task reads."""

    paths: tuple[str, ...]


@dataclass
class EdgeReader(DataSourceStreamReader):
    folder: Folder
    edge: str
    schema: StructType
    most_tasks: int
    max_rows: int | None

    def initialOffset(self) -> dict[str, Any]:
        first, _ = read_head(self.folder)
        return self._offset(first - 1)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        _, last = read_head(self.folder)
        after = int(start["entry"])
        if isinstance(limit, ReadMaxRows) and last > after:
            rows = 0
            for entry in read_entries(self.folder, after, last):
                rows += entry.rows
                if rows > limit.max_rows and entry.number > after + 1:
                    return self._offset(entry.number - 1)
        return self._offset(max(last, after))

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self.max_rows is None else ReadMaxRows(self.max_rows)

    def reportLatestOffset(self) -> dict[str, Any]:
        return self._offset(read_head(self.folder)[1])

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        files = [f for e in read_entries(self.folder, int(start["entry"]), int(end["entry"])) for f in e.files]
        return [FilesPartition(paths) for paths in _shared_out(files, self.most_tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FilesPartition)
        wanted = to_arrow_schema(self.schema, timezone="UTC")
        for path in partition.paths:
            filesystem, where = self.folder.path(f"data/{path}")
            table = pq.read_table(where, filesystem=filesystem, partitioning=None).select(wanted.names)
            yield from table.cast(wanted).to_batches()

    def _offset(self, entry: int) -> dict[str, Any]:
        return {"edge": self.edge, "entry": entry}


def _shared_out(files: Sequence[WrittenFile], most_tasks: int) -> list[tuple[str, ...]]:
    """Files for each task: as many tasks as the rows are worth, with about the same rows each."""
    rows = sum(f.rows for f in files)
    tasks = max(1, min(most_tasks, len(files), -(-rows // ROWS_PER_TASK)))
    shares: list[list[str]] = [[] for _ in range(tasks)]
    loads = [0] * tasks
    for file in sorted(files, key=lambda f: -f.rows):
        least = loads.index(min(loads))
        shares[least].append(file.path)
        loads[least] += file.rows
    return [tuple(share) for share in shares if share]
