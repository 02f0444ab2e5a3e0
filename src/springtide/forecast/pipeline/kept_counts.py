"""What was counted in each input, kept in a folder, so that each is read once.

Rules: the folder of a file is named after its fingerprint, and appears when it is complete. So a file that has changed is
another one, and a run that was killed leaves nothing that misleads the next.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from urllib.parse import unquote

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from springtide.errors import SpringtideError
from springtide.forecast.pipeline.counting import COUNTS, counts_of, rows_of, spark_path
from springtide.forecast.pipeline.folders import move, remove
from springtide.forecast.pipeline.options import Kind, PrepareOptions
from springtide.forecast.pipeline.rates import Piece
from springtide.forecast.pipeline.sources import InputFile, Source, look_at
from springtide.forecast.pipeline.summaries import Counted, counted_in, refuse_unusable, tallies, usual_steps_us

Note = Callable[[str], None]

_SUMMARY = "_summary.json"  # Spark does not read what begins with _
_FILES_AT_ONCE = 64
_UNREADABLE = re.compile(r"FAILED_READ_FILE.*while reading file file:/*(/.+?)[.]?\s+SQLSTATE")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Summary:
    """What was counted in one file, but for the counts themselves."""

    kind: Kind
    are_rates: bool
    series: tuple[Counted, ...]


@dataclass(frozen=True, slots=True)
class KeptCounts:
    spark: SparkSession
    folder: Path
    options: PrepareOptions

    def of(self, keys: Iterable[str]) -> DataFrame:
        """Everything that was counted in the files of these keys."""
        reader = self.spark.read.schema(COUNTS).option("basePath", spark_path(self.folder, literal=True))
        return reader.parquet(*(spark_path(self._place(key)) for key in sorted(keys)))

    def pieces(self, files: Sequence[InputFile]) -> dict[str, list[Piece]]:
        """By series, what each file has of it."""
        pieces: dict[str, list[Piece]] = {}
        for file in files:
            key = file.fingerprint(self.options)
            found = msgspec.json.decode((self._place(key) / _SUMMARY).read_bytes(), type=_Summary)
            for counted in found.series:
                piece = Piece(path=file.path, key=key, kind=found.kind, are_rates=found.are_rates, counted=counted)
                pieces.setdefault(counted.series, []).append(piece)
        return pieces

    def read_new(self, files: Sequence[InputFile], staging: Path, note: Note) -> None:
        """Count what is in files that have not been read, some at a time."""
        new = [file for file in files if not self._place(file.fingerprint(self.options)).is_dir()]
        sources = sorted(
            (look_at(file, self.options) for file in new), key=lambda source: (repr(source.layout), source.file.path)
        )
        for begin in range(0, len(sources), _FILES_AT_ONCE):
            batch = sources[begin : begin + _FILES_AT_ONCE]
            numbers = f"{begin + 1}" if len(batch) == 1 else f"{begin + 1} to {begin + len(batch)}"
            note(f"reading {numbers} of {len(new)} new files")
            self._read(batch, staging)

    def forget_all_but(self, files: Sequence[InputFile]) -> None:
        known = {self._place(file.fingerprint(self.options)) for file in files}
        for place in self.folder.iterdir():
            if place not in known:
                remove(place)

    def _place(self, key: str) -> Path:
        return self.folder / f"file={key}"

    def _read(self, sources: Sequence[Source], staging: Path) -> None:
        remove(staging)
        rows: dict[str, DataFrame] = {}
        for _, alike in groupby(sources, key=lambda source: source.layout):
            together = list(alike)
            found = rows_of(self.spark, together)
            _write(counts_of(found, together), staging)
            rows |= dict.fromkeys((source.key for source in together), found)
        written = self.spark.read.schema(COUNTS).parquet(spark_path(staging))
        found_tallies = tallies(written)
        refuse_unusable(found_tallies, rows, sources)
        stepped = [source.key for source in sources if source.layout.kind != "events"]
        counted = counted_in(found_tallies, usual_steps_us(written, stepped), stepped)
        for source in sources:
            summary = _Summary(
                kind=source.layout.kind,
                are_rates=source.layout.are_rates or source.layout.kind == "journal",
                series=tuple(counted.get(source.key, ())),
            )
            place = staging / f"file={source.key}"
            place.mkdir(exist_ok=True)
            (place / _SUMMARY).write_bytes(msgspec.json.encode(summary))
            move(place, self._place(source.key))


def _write(counts: DataFrame, staging: Path) -> None:
    try:
        counts.write.partitionBy("file").parquet(spark_path(staging, literal=True), mode="append")
    except (PySparkException, Py4JJavaError) as error:
        unreadable = _UNREADABLE.search(str(error))
        if unreadable is None:
            raise
        path = unquote(unreadable.group(1))
        raise SpringtideError(f"{path}: cannot be read to its end; is it damaged, or still being written?") from None
