"""Which files there are to read, and what is in them: found by looking at the beginning of each.

Rules: files are CSV, JSON lines (either may be gzipped) or Parquet. A file is of one of three kinds: rates (one row per step,
with a count or a rate), events (one row per event) or a journal of Springtide. A file that is as it was is known by its
fingerprint and never opened again.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet

from springtide.errors import InvalidValue, SpringtideError, nearest, require
from springtide.forecast.pipeline.options import Kind, PrepareOptions
from springtide.journal.records import FORMAT
from springtide.workload.columns import quoted
from springtide.workload.reading import COUNT_COLUMNS, RATE_COLUMNS, TIME_COLUMNS

SERIES_COLUMNS = ("series", "series_name", "series_id")

Form = Literal["csv", "json", "parquet"]

_FORMS: Mapping[str, Form] = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".json": "json",
    ".json.gz": "json",
    ".jsonl": "json",
    ".jsonl.gz": "json",
    ".ndjson": "json",
    ".ndjson.gz": "json",
    ".parquet": "parquet",
}

_MOST_NAMES = 12  # of a file's columns, in a message


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """A file as it was when it was found."""

    path: str
    size_bytes: int
    modified_ns: int

    @property
    def name(self) -> str:
        """The file's name without the end that tells its form."""
        name = Path(self.path).name
        return name[: -len(_suffix(name) or "")] or name

    def fingerprint(self, options: PrepareOptions) -> str:
        """The same file, read in the same way, has the same one."""
        read_as = (options.kind, options.time_column, options.count_column, options.rate_column, options.series_column)
        return hashlib.blake2b(
            repr((self.path, self.size_bytes, self.modified_ns, read_as)).encode(), digest_size=12
        ).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How to read a file. `columns` are those of a CSV file in their order; the others are names of columns."""

    form: Form
    kind: Kind
    columns: tuple[str, ...] = ()
    time: str = ""
    amount: str | None = None
    are_rates: bool = False
    series: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file to be read: `start_s` is when the clock of a journal stood at 0, in seconds since 1970."""

    file: InputFile
    key: str
    layout: Layout
    start_s: float = 0.0


def files_in(inputs: Sequence[str | Path]) -> list[InputFile]:
    """All files named, and all in the folders named, each once, by path."""
    found: dict[str, InputFile] = {}
    for given in inputs:
        place = Path(given).expanduser().resolve()
        if not place.exists():
            raise SpringtideError(f"{given}: there is no such file or folder; check the path")
        files = [place] if place.is_file() else [path for path in sorted(place.rglob("*")) if _is_data(path, place)]
        if not files:
            raise SpringtideError(f"{given}: has no file to read; known are {', '.join(_FORMS)}")
        for path in files:
            if _suffix(path.name) is None:
                raise SpringtideError(f"{given}: unknown kind of file {path.suffix!r}; known: {', '.join(_FORMS)}")
            status = path.stat()
            found[str(path)] = InputFile(path=str(path), size_bytes=status.st_size, modified_ns=status.st_mtime_ns)
    return [found[path] for path in sorted(found)]


def _is_data(path: Path, folder: Path) -> bool:
    hidden = any(name.startswith((".", "_")) for name in path.relative_to(folder).parts)
    return path.is_file() and not hidden and _suffix(path.name) is not None


def _suffix(name: str) -> str | None:
    return max((suffix for suffix in _FORMS if name.lower().endswith(suffix)), key=len, default=None)


def look_at(file: InputFile, options: PrepareOptions) -> Source:
    """How to read a file: its kind and its columns, as chosen, or else found by their usual names."""
    form = _FORMS[_suffix(file.path) or ".csv"]
    key = file.fingerprint(options)
    if form == "json":
        first = _first_object(file)
        if options.kind == "journal" or (options.kind is None and first.get("kind") == "run"):
            return Source(file=file, key=key, layout=Layout(form="json", kind="journal"), start_s=_journal_start_s(file, first))
        names = tuple(first)
    else:
        names = _csv_names(file) if form == "csv" else _parquet_names(file)
    require(options.kind != "journal", f"{file.path}: is not a journal: journals are JSON lines")
    return Source(file=file, key=key, layout=_layout(file, form, names, options))


def _layout(file: InputFile, form: Form, names: tuple[str, ...], options: PrepareOptions) -> Layout:
    count = _named(file, names, options.count_column, COUNT_COLUMNS, "count")
    rate = _named(file, names, options.rate_column, RATE_COLUMNS, "rate")
    amount = rate if options.rate_column is not None else count or rate
    kind = options.kind or ("rates" if amount else "events")
    time = _named(file, names, options.time_column, TIME_COLUMNS, "time")
    if time is None:
        raise _no_column(file, names, TIME_COLUMNS[0], "time")
    if kind == "rates" and amount is None:
        raise _no_column(file, names, COUNT_COLUMNS[0], "count column or the rate")
    return Layout(
        form=form,
        kind=kind,
        columns=names if form == "csv" else (),
        time=time,
        amount=amount if kind == "rates" else None,
        are_rates=kind == "rates" and amount is not None and amount == rate and amount != count,
        series=_named(file, names, options.series_column, SERIES_COLUMNS, "series"),
    )


def _named(file: InputFile, names: tuple[str, ...], given: str | None, usual: Sequence[str], what: str) -> str | None:
    """The column that was given, which must be there, or else the first usual one, if there is one."""
    if given is None:
        return next((name for word in usual for name in names if name.casefold() == word), None)
    same = [name for name in names if name == given] or [name for name in names if name.casefold() == given.casefold()]
    require(bool(same), f"{file.path}: there is no {what} column {given!r}; {nearest(given, names)}")
    require(len(same) == 1, f"{file.path}: {len(same)} columns are named {given!r}; rename one, or name another")
    return same[0]


def _no_column(file: InputFile, names: tuple[str, ...], usual: str, what: str) -> InvalidValue:
    present = [quoted(name) for name in names[:_MOST_NAMES]] + ["..."] * (len(names) > _MOST_NAMES)
    return InvalidValue(
        f"{file.path}: no column is called {usual!r} or a usual word for it, only {', '.join(present)}; name the {what} column"
    )


def _first_lines(file: InputFile, count: int) -> list[str]:
    opener = gzip.open if file.path.lower().endswith(".gz") else open
    try:
        with opener(file.path, "rt", encoding="utf-8-sig", newline=None) as stream:
            lines = list(islice((line for line in stream if line.strip()), count))
    except (UnicodeDecodeError, gzip.BadGzipFile, EOFError, zlib.error, OSError) as error:
        raise InvalidValue(f"{file.path}: cannot be read as text ({error})") from None
    require(bool(lines), f"{file.path}: is empty")
    return lines


def _csv_names(file: InputFile) -> tuple[str, ...]:
    lines = _first_lines(file, 2)
    require(len(lines) == 2, f"{file.path}: has a header and no rows")
    try:
        names = next(csv.reader(lines[:1]))
    except csv.Error as error:
        raise InvalidValue(f"{file.path}: is not a CSV file ({error})") from None
    return tuple(name.strip() for name in names)


def _parquet_names(file: InputFile) -> tuple[str, ...]:
    try:
        metadata = pa.parquet.read_metadata(file.path)
        names = tuple(pa.parquet.read_schema(file.path).names)
    except (pa.ArrowException, OSError) as error:
        raise InvalidValue(f"{file.path}: is not a Parquet file ({str(error).partition(chr(10))[0]})") from None
    require(metadata.num_rows > 0, f"{file.path}: has columns and no rows")
    return names


def _first_object(file: InputFile) -> dict[str, Any]:
    line = _first_lines(file, 1)[0]
    try:
        first = json.loads(line)
    except json.JSONDecodeError as error:
        raise InvalidValue(f"{file.path}: is not JSON lines: {quoted(line.strip())} ({error.msg})") from None
    require(isinstance(first, dict), f"{file.path}: each line must be a JSON object, not {quoted(line.strip())}")
    return dict(first)


def _journal_start_s(file: InputFile, run: dict[str, Any]) -> float:
    """When the clock of the run stood at 0. A simulated run has a clock of its own, which starts in 1970."""
    if run.get("kind") != "run":
        raise InvalidValue(f"{file.path}: is not a journal: its first line is not a 'run' record")
    if not isinstance(run.get("format"), int) or run["format"] > FORMAT:
        raise InvalidValue(f"{file.path}: has journal format {run.get('format')}, and this Springtide reads up to {FORMAT}")
    if run.get("step_s") is not None or not run.get("created_at"):
        return 0.0
    return datetime.fromisoformat(run["created_at"]).timestamp() - float(run.get("time_s") or 0.0)
