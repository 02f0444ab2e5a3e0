"""What the rows of a replay are, beyond their numbers and times: made from a seed, or recorded.

Rules: a row is a pure function of its number, the trace and the maker's fields. Any range of rows made alone is the same rows.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from springtide.errors import SpringtideError
from springtide.model.observation import FloatArray


class RowMaker(Protocol):
    """Makes rows for `replay(..., rows=maker)`. It travels to every task, so it is small, and can be pickled."""

    @property
    def schema(self) -> pa.Schema:
        """Its columns; times are `timestamp("us", tz="UTC")`."""
        ...

    def made(self, first: int, after: int, elapsed_s: FloatArray) -> pa.RecordBatch | pa.Table:
        """The rows from `first` on and before `after`, which are offered in these seconds of the trace."""
        ...


@dataclass(frozen=True, slots=True)
class Recorded:
    """Rows of an Arrow file, in their order. The file must be where every task can read it."""

    path: str

    @classmethod
    def keep(cls, table: pa.Table, path: Path) -> Recorded:
        """Write the rows there, whole or not at all; a file that is there with the same rows stays."""
        if path.is_file() and _opened(path).equals(table):
            return cls(str(path.absolute()))
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with pa.OSFile(str(partial), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
        return cls(str(path.absolute()))

    @property
    def schema(self) -> pa.Schema:
        return _opened(Path(self.path)).schema

    def made(self, first: int, after: int, elapsed_s: FloatArray) -> pa.Table:  # noqa: ARG002 - they are as they were recorded
        return _opened(Path(self.path)).slice(first, after - first)


def _opened(path: Path) -> pa.Table:
    """Memory-mapped: only what is looked at is read."""
    try:
        with pa.memory_map(str(path)) as file:
            return pa.ipc.open_file(file).read_all()
    except (OSError, pa.ArrowInvalid) as error:
        raise SpringtideError(f"{path}: the recorded rows cannot be read ({error}); delete the file and start again") from None
