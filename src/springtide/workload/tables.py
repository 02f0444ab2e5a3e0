"""Files as tables of columns: CSV, gzipped CSV, and Parquet.

Rules: a file that cannot be used is refused in one line that names it and, where there is one, the row. Every CSV cell
is read as text and converted later (see `columns`), because only then can the row and the cell be named when it is
not what it should be.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from springtide.errors import InvalidValue, require
from springtide.workload.columns import Column, quoted


class Table(Protocol):
    """A file whose header has been read; a column is read when it is asked for, by its position."""

    @property
    def file(self) -> Path: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    def column(self, position: int) -> Column: ...


def open_table(file: Path) -> Table:
    """The table in a file; the end of its name tells what kind of file it is."""
    try:
        stream = file.open("rb")
    except FileNotFoundError:
        raise InvalidValue(f"{file}: there is no such file; check the path") from None
    except IsADirectoryError:
        raise InvalidValue(f"{file}: is a directory; name one file in it") from None
    except OSError as error:
        raise InvalidValue(f"{file}: cannot be read: {error.strerror}") from None
    with stream:
        open_content = _OPENERS[_known_suffix(file)]
        content = stream.read()
    return open_content(file, content)


def name_without_suffix(file: Path) -> str:
    """The file's name without the end that tells its kind."""
    return file.name[: -len(_known_suffix(file))] or file.name


@dataclass(frozen=True, slots=True, kw_only=True)
class _CsvTable:
    file: Path
    names: tuple[str, ...]
    body: bytes  # everything after the header line

    def column(self, position: int) -> Column:
        # Arrow is told positions in place of names, because a header may use a name twice.
        keys = [str(i) for i in range(len(self.names))]
        ragged: list[pa.csv.InvalidRow] = []

        def note_ragged(row: pa.csv.InvalidRow) -> str:
            ragged.append(row)
            return "skip"

        try:
            table = pa.csv.read_csv(
                pa.BufferReader(self.body),
                # Only a single thread knows the number of a ragged row.
                read_options=pa.csv.ReadOptions(column_names=keys, use_threads=False),
                parse_options=pa.csv.ParseOptions(invalid_row_handler=note_ragged),
                convert_options=pa.csv.ConvertOptions(
                    include_columns=[keys[position]], column_types={keys[position]: pa.string()}
                ),
            )
        except pa.ArrowInvalid as error:
            raise _not_a("CSV file", self.file, error) from None
        if ragged:
            raise InvalidValue(
                f"{self.file}, row {ragged[0].number}: has {ragged[0].actual_columns} cells where the header has "
                f"{ragged[0].expected_columns}: {quoted(ragged[0].text)}"
            )
        return Column(file=self.file, name=self.names[position], cells=table.column(0).combine_chunks())


@dataclass(frozen=True, slots=True, kw_only=True)
class _ParquetTable:
    file: Path
    names: tuple[str, ...]
    parquet: pa.parquet.ParquetFile

    def column(self, position: int) -> Column:
        name = self.names[position]
        try:
            cells = self.parquet.read(columns=[name]).column(name).combine_chunks()
        except (pa.ArrowException, OSError) as error:
            raise _not_a("Parquet file", self.file, error) from None
        rows = self.parquet.metadata.num_rows
        require(len(cells) == rows, f"{self.file}: is damaged: column {name!r} has {len(cells)} of {rows} rows")
        return Column(file=self.file, name=name, cells=cells)


def _open_csv(file: Path, content: bytes) -> Table:
    require(b"\0" not in content and _is_utf8(content), f"{file}: is not a CSV file: it is not UTF-8 text")
    header, *rest = re.split(rb"[\r\n]+", content.removeprefix(codecs.BOM_UTF8).lstrip(), maxsplit=1)
    body = rest[0] if rest else b""
    require(bool(header), f"{file}: is empty; it needs a header and rows")
    require(bool(body.strip()), f"{file}: has a header and no rows")
    try:
        names = next(csv.reader([header.decode()]))
    except csv.Error as error:
        raise _not_a("CSV file", file, error) from None
    return _CsvTable(file=file, names=tuple(name.strip() for name in names), body=body)


def _open_gzipped_csv(file: Path, content: bytes) -> Table:
    try:
        text = gzip.decompress(content)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise _not_a("gzip file, though its name says so", file, error) from None
    return _open_csv(file, text)


def _open_parquet(file: Path, content: bytes) -> Table:
    require(bool(content), f"{file}: is empty; it needs rows")
    try:
        parquet = pa.parquet.ParquetFile(pa.BufferReader(content))
        names = tuple(parquet.schema_arrow.names)
    except (pa.ArrowException, OSError) as error:
        raise _not_a("Parquet file", file, error) from None
    require(parquet.metadata.num_rows > 0, f"{file}: has columns and no rows")
    return _ParquetTable(file=file, names=names, parquet=parquet)


_OPENERS: Mapping[str, Callable[[Path, bytes], Table]] = {
    ".csv": _open_csv,
    ".csv.gz": _open_gzipped_csv,
    ".parquet": _open_parquet,
}


def _known_suffix(file: Path) -> str:
    for suffix in _OPENERS:
        if file.name.lower().endswith(suffix):
            return suffix
    raise InvalidValue(f"{file}: unknown kind of file {file.suffix!r}; known: {', '.join(_OPENERS)}")


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _not_a(kind: str, file: Path, error: Exception) -> InvalidValue:
    why = str(error).partition("\n")[0]
    return InvalidValue(f"{file}: is not a {kind} ({why})")
