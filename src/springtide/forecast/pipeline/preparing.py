"""Prepare data: look, count, make rates, cut windows, publish. Each step reads what the one before has kept.

Rules: files are read once, and again only when they have changed. Boundaries and scales stay as they were unless a refit is
asked for, so that what is new is tested on. Only days of windows whose content has changed are written. The result is the same,
row for row, as that of a run from scratch with the same boundaries and scales, and on one core as on a cluster. A series that
cannot be used is left out; one that was prepared before, and that a new file has spoilt, stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from springtide.errors import SpringtideError
from springtide.forecast.pipeline import folders
from springtide.forecast.pipeline.assembling import assemble
from springtide.forecast.pipeline.counting import spark_path
from springtide.forecast.pipeline.kept_counts import KeptCounts, Note
from springtide.forecast.pipeline.options import PrepareOptions
from springtide.forecast.pipeline.prepared import Prepared, PreparedSeries, read_manifest
from springtide.forecast.pipeline.rates import IntervalCounts, SeriesPlan, plan_series
from springtide.forecast.pipeline.sources import InputFile, files_in
from springtide.forecast.pipeline.windowing import Series
from springtide.forecast.pipeline.writing import Changed, write_rows

_FEWEST_SHUFFLE_PARTITIONS = 8
_SERIES_AT_ONCE = 8

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    # A cell that cannot be converted is null, and refused with its file and time.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.adaptive.enabled": "true",
}

_SERIES_SCHEMA = (
    "series string, problem string, summary string, interval_s long, first long, rates array<double>, filled array<boolean>"
)


def prepare(
    spark: SparkSession, inputs: Sequence[str | Path], folder: str | Path, options: PrepareOptions, note: Note
) -> Prepared:
    """Prepared data of all inputs in a folder; `note` is told what is being done, one line at a time.

    Inputs of earlier runs that are not named now stay part of the data; those that are gone from a folder that is named do not.
    The folder must be one that all executors share.
    """
    place = Path(folder).expanduser().resolve()
    folders.refuse_foreign(place)
    before = _before(place, options)
    files = _all_inputs(inputs, before, note)
    if before is not None and files == before.inputs and not folders.is_unfinished(place):
        note(f"nothing new: {len(files)} files are as they were")
        return before
    with folders.staging_in(place) as staging:
        run = _Run(_own_session(spark), place, staging, options, note)
        return run.run(files, before)


def _before(place: Path, options: PrepareOptions) -> Prepared | None:
    """What is kept of earlier runs."""
    if options.refit:
        return None
    before = read_manifest(place)
    if before is not None:
        differences = options.differences(before.options)
        if differences:
            raise SpringtideError(
                f"{place}: was prepared otherwise ({'; '.join(differences)}); choose another folder, or refit"
            )
    return before


def _all_inputs(inputs: Sequence[str | Path], before: Prepared | None, note: Note) -> tuple[InputFile, ...]:
    found = {file.path: file for file in files_in(inputs)}
    places = [Path(given).expanduser().resolve() for given in inputs]
    for known in before.inputs if before else ():
        if known.path in found:
            continue
        if any(place in Path(known.path).parents for place in places):
            note(f"{known.path}: is no more, and its rows are taken out")
        else:
            found[known.path] = known
    return tuple(found[path] for path in sorted(found))


def _own_session(spark: SparkSession) -> SparkSession:
    """A session on the same cluster whose settings are ours, so that those of the caller stay as they are."""
    own = spark.newSession()
    for key, value in _SETTINGS.items():
        own.conf.set(key, value)
    # What is counted is small: hundreds of partitions of it, as Spark has by default, take longer to start than to run.
    usual = max(_FEWEST_SHUFFLE_PARTITIONS, 3 * own.sparkContext.defaultParallelism)
    own.conf.set("spark.sql.shuffle.partitions", min(usual, int(own.conf.get("spark.sql.shuffle.partitions") or usual)))
    return own


@dataclass(frozen=True, slots=True)
class _Run:
    spark: SparkSession
    folder: Path
    staging: Path
    options: PrepareOptions
    note: Note

    @property
    def counts(self) -> KeptCounts:
        return KeptCounts(self.spark, self.folder / folders.COUNTS, self.options)

    def run(self, files: Sequence[InputFile], before: Prepared | None) -> Prepared:
        self.counts.read_new(files, self.staging / folders.COUNTS, self.note)
        plans, problems = self._plans(before, files)
        series, more_problems = self._assemble(plans, before)
        problems |= more_problems
        kept = None if folders.is_unfinished(self.folder) else before
        spoilt = [old for old in kept.series if old.name in problems] if kept else []
        warnings = [_warning(name, problems[name], spoilt) for name in sorted(problems)]
        if not series and not spoilt:
            raise SpringtideError(f"no series can be used: {'; '.join(warnings[:3])}{'; ...' if len(warnings) > 3 else ''}")
        prepared = Prepared(
            folder=self.folder,
            options=self.options.settings(),
            inputs=tuple(files),
            series=tuple(sorted([*series, *spoilt], key=lambda one: one.name)),
            warnings=tuple(warnings),
        )
        self._write(prepared, kept)
        self.note("moving what is new into place")
        folders.publish(prepared, self.staging, kept)
        self.counts.forget_all_but(files)
        return prepared

    def _plans(self, before: Prepared | None, files: Sequence[InputFile]) -> tuple[dict[str, SeriesPlan], dict[str, str]]:
        """How each series becomes rates, and why some cannot."""
        intervals_s = {series.name: series.interval_s for series in before.series} if before else {}
        given_s = None if self.options.interval_s is None else int(self.options.interval_s)
        plans, problems = {}, {}
        for name, pieces in self.counts.pieces(files).items():
            try:
                plans[name] = plan_series(name, pieces, intervals_s.get(name, given_s))
            except SpringtideError as error:
                problems[name] = str(error)
        return plans, problems

    def _assemble(
        self, plans: Mapping[str, SeriesPlan], before: Prepared | None
    ) -> tuple[list[PreparedSeries], dict[str, str]]:
        """Every series that can be used, and why others cannot."""
        if not plans:
            return [], {}
        self.note(f"making rates of {len(plans)} series")
        known = {series.name: series for series in before.series} if before else {}
        options = self.options

        def assembled(frame: pd.DataFrame) -> pd.DataFrame:
            name = str(frame["series"].iloc[0])
            return _series_row(plans[name], frame, options, known.get(name))

        made = self._interval_counts(plans).groupBy("series").applyInPandas(assembled, _SERIES_SCHEMA)
        made.write.parquet(spark_path(self.staging / "series", literal=True))
        rows = self._series().select("series", "summary", "problem").collect()
        summaries = [msgspec.json.decode(row["summary"], type=PreparedSeries) for row in rows if row["summary"]]
        return summaries, {row["series"]: row["problem"] for row in rows if row["problem"]}

    def _interval_counts(self, plans: Mapping[str, SeriesPlan]) -> DataFrame:
        steps = [
            (plan.name, key, plan.interval_s * 1_000_000, plan.shift_us(key)) for plan in plans.values() for key in plan.paths
        ]
        planned = self.spark.createDataFrame(steps, "series string, file string, interval_us long, shift_us long")
        counts = self.counts.of({key for _, key, _, _ in steps})
        shifted = counts.where("flaw is null").join(F.broadcast(planned), ["series", "file"])
        shifted = shifted.withColumn("at_us", F.col("time_us") + F.col("shift_us"))
        numbered = shifted.withColumn("number", F.expr("(at_us - pmod(at_us, interval_us)) div interval_us"))
        summed = numbered.groupBy("series", "file", "number")
        return summed.agg(F.sum("value").cast("double").alias("value"), F.sum("rows").alias("rows"))

    def _series(self) -> DataFrame:
        return self.spark.read.schema(_SERIES_SCHEMA).parquet(spark_path(self.staging / "series"))

    def _write(self, prepared: Prepared, before: Prepared | None) -> None:
        changed = _changes(prepared, before)
        if not changed:
            return
        days = sum(len(each.days) for each in changed.values())
        self.note(f"writing {days} days of windows of {len(changed)} series")
        staging, most_windows = self.staging, self.options.most_windows

        def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for at in range(batch.num_rows):
                    summary, series = _series_in(batch, at)
                    written = write_rows(staging, summary, series, changed[summary.name], most_windows)
                    yield pa.RecordBatch.from_pydict({"windows": [written]})

        # A row holds a whole series here.
        self.spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", _SERIES_AT_ONCE)
        mine = self._series().where(F.col("series").isin(list(changed)))
        mine.mapInArrow(write, "windows long").collect()


def _warning(name: str, problem: str, spoilt: Sequence[PreparedSeries]) -> str:
    stays = any(old.name == name for old in spoilt)
    return f"series {name!r}: {problem}" + (" (until then the series stays as it was)" if stays else "")


def _series_row(plan: SeriesPlan, frame: pd.DataFrame, options: PrepareOptions, before: PreparedSeries | None) -> pd.DataFrame:
    ordered = frame.sort_values(["number", "file"])
    counts = IntervalCounts(
        numbers=ordered["number"].to_numpy(dtype=np.int64),
        files=ordered["file"].tolist(),
        values=ordered["value"].to_numpy(dtype=np.float64),
        rows=ordered["rows"].to_numpy(dtype=np.int64),
    )
    try:
        summary, series = assemble(plan, counts, options, before)
    except SpringtideError as error:
        row: list[object] = [plan.name, str(error), None, 0, 0, [], []]
    else:
        text = msgspec.json.encode(summary).decode()
        row = [plan.name, None, text, plan.interval_s, series.first, series.rates_per_s, series.filled]
    names = [column.split()[0] for column in _SERIES_SCHEMA.split(", ")]
    return pd.DataFrame([row], columns=names)


def _changes(prepared: Prepared, before: Prepared | None) -> dict[str, Changed]:
    """What is not as it was, by series."""
    known = {series.name: series for series in before.series} if before else {}
    changes = {}
    for series in prepared.series:
        old = known.get(series.name)
        old_days = old.written if old else {}
        change = Changed(
            rates=old is None or old.written_rates != series.written_rates,
            days=frozenset(day for day, digest in series.written.items() if old_days.get(day) != digest),
        )
        if change.rates or change.days:
            changes[series.name] = change
    return changes


def _series_in(batch: pa.RecordBatch, at: int) -> tuple[PreparedSeries, Series]:
    series = Series(
        first=batch.column("first")[at].as_py(),
        interval_s=batch.column("interval_s")[at].as_py(),
        rates_per_s=batch.column("rates")[at].values.to_numpy(zero_copy_only=False),
        filled=batch.column("filled")[at].values.to_numpy(zero_copy_only=False),
    )
    return msgspec.json.decode(batch.column("summary")[at].as_py(), type=PreparedSeries), series
