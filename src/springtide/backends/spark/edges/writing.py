"""Writing a batch's rows into Parquet files, from the tasks that made them.

Each task writes at most one file and answers with its name, rows and bytes, so the list of files comes from the tasks that
succeeded, not from a folder: what a failed or a second attempt left behind is never read.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from springtide.backends.spark.edges.log import WrittenFile
from springtide.backends.spark.files import Folder

Batches = Iterator[pa.RecordBatch]


def write_files(df: DataFrame, folder: Folder, name: str) -> list[WrittenFile]:
    """Run the DataFrame, and write what comes out into the folder `name` of `folder`."""
    answers = df.mapInArrow(_writer(folder.uri, name), "path string, rows long, bytes long").collect()
    return [WrittenFile(path=a.path, rows=a.rows, bytes=a.bytes) for a in answers]


def _writer(uri: str, name: str) -> Callable[[Batches], Batches]:
    """The function that runs in every task; it takes along two strings, and makes the rest where it runs."""

    def write(batches: Batches) -> Batches:
        writer: Any = None
        rows = 0
        filesystem, path = Folder(uri).path(file := f"{name}/{uuid.uuid4().hex}.parquet")
        try:
            for batch in batches:
                if batch.num_rows == 0:
                    continue
                if writer is None:
                    writer = pq.ParquetWriter(path, batch.schema, filesystem=filesystem, compression="snappy")
                writer.write_batch(batch)
                rows += batch.num_rows
        finally:
            if writer is not None:
                writer.close()
        if rows:
            size = filesystem.get_file_info(path).size or 0
            yield pa.RecordBatch.from_pydict({"path": [file], "rows": [rows], "bytes": [size]})

    return write
