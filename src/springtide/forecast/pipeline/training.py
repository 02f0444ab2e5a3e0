"""Train models on prepared data: one Spark group for each series, model and repetition, then the mixture of each series.

Rules: jobs do not depend on one another, on their order or on where they run. A model that cannot learn from a series is noted
with its reason, and the others go on. Weights are written beside the old ones and replace them when all is done.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from pyspark.sql import SparkSession
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from springtide.errors import SpringtideError, require
from springtide.forecast.evaluation import Score, judge, judged_at
from springtide.forecast.models.auto import Auto
from springtide.forecast.models.registry import make_model, models
from springtide.forecast.models.singles import NEURAL, RegisteredModel
from springtide.forecast.pipeline.folders import STAGING, staging_in
from springtide.forecast.pipeline.jobs import Job, Progress, run_jobs
from springtide.forecast.pipeline.prepared import Prepared, PreparedSeries
from springtide.forecast.pipeline.stored_windows import read_newest_rates, read_windows
from springtide.forecast.storage import encoded
from springtide.forecast.trained import (
    MANIFEST,
    WEIGHTS,
    Trained,
    TrainedModel,
    TrainedSeries,
    load_weights,
    recent_file,
    weights_file,
    write_trained,
)
from springtide.model.windows import Windows

_SCHEMA = "series string, outcome string"


def train(
    spark: SparkSession,
    prepared: Prepared,
    folder: str | Path,
    names: Sequence[str],
    *,
    repetitions: int = 1,
    progress: Progress,
) -> Trained:
    """Train the named models on every series, the neural ones as many times as asked for."""
    require(repetitions >= 1, f"repetitions must be at least 1, not {repetitions}")
    place = Path(folder).expanduser().resolve()
    _refuse_foreign(place)
    with staging_in(place) as staging:
        outcomes = _fit_singles(spark, prepared, staging, names, repetitions, progress)
        if Auto.name in names:
            outcomes += _fit_mixtures(spark, prepared, staging, outcomes, progress)
        trained = _trained(prepared, place, outcomes)
        for one in prepared.series:
            _write_recent(prepared, one, staging)
        _publish(trained, staging)
    return trained


Outcomes = list[tuple[str, TrainedModel]]


def _fit_singles(
    spark: SparkSession, prepared: Prepared, staging: Path, names: Sequence[str], repetitions: int, progress: Progress
) -> Outcomes:
    neural = {model.name for model in NEURAL}
    jobs = [
        Job(series=series.name, model=name, repetition=repetition)
        for series in prepared.series
        for name in names
        if name != Auto.name
        for repetition in range(repetitions if name in neural else 1)
    ]
    if not jobs:
        return []

    def work(job: Job) -> list[dict[str, object]]:
        began_s = time.perf_counter()
        series = prepared.named(job.series)
        try:
            with threadpool_limits(limits=1):
                learn, validate = _windows(prepared, series, "train"), _windows(prepared, series, "validation")
                model = make_model(job.model).fit(learn, validate, job.repetition)
                outcome = _kept(model, staging, series, validate, job.repetition)
        except SpringtideError as error:
            outcome = TrainedModel(model=job.model, repetition=job.repetition, seconds=0.0, problem=str(error))
        return _rows(job.series, outcome, time.perf_counter() - began_s)

    return _outcomes(run_jobs(spark, jobs, work, _SCHEMA, staging, progress))


def _fit_mixtures(spark: SparkSession, prepared: Prepared, staging: Path, learnt: Outcomes, progress: Progress) -> Outcomes:
    members: dict[str, list[str]] = {series.name: [] for series in prepared.series}
    for name, one in learnt:
        if one.problem is None and one.repetition == 0:
            members[name].append(one.model)

    def work(job: Job) -> list[dict[str, object]]:
        began_s = time.perf_counter()
        series = prepared.named(job.series)
        try:
            with threadpool_limits(limits=1):
                validate = _windows(prepared, series, "validation")
                own = [load_weights(weights_file(staging, series.name, name, 0)) for name in sorted(members[series.name])]
                outcome = _kept(Auto().of(own, validate), staging, series, validate, 0)
        except SpringtideError as error:
            outcome = TrainedModel(model=Auto.name, repetition=0, seconds=0.0, problem=str(error))
        return _rows(job.series, outcome, time.perf_counter() - began_s)

    jobs = [Job(series=series.name, model=Auto.name) for series in prepared.series]
    return _outcomes(run_jobs(spark, jobs, work, _SCHEMA, staging, progress))


def _windows(prepared: Prepared, series: PreparedSeries, part: Any) -> Windows:
    return read_windows(prepared.folder, series.name, series.interval_s, part)


def _kept(model: RegisteredModel, staging: Path, series: PreparedSeries, validation: Windows, repetition: int) -> TrainedModel:
    """Write the weights, and say how well the model does."""
    file = weights_file(staging, series.name, model.name, repetition)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(encoded(model))
    # A mixture has seen these windows already: how well it does is seen on others.
    scores: list[Score] = []
    if not isinstance(model, Auto):
        scores = judge(model, validation, series.scale, judged_at(series.future))
    return TrainedModel(model=model.name, repetition=repetition, seconds=0.0, validation=tuple(scores))


def _rows(series: str, outcome: TrainedModel, seconds: float) -> list[dict[str, object]]:
    return [{"series": series, "outcome": msgspec.json.encode(replace(outcome, seconds=round(seconds, 3))).decode()}]


def _outcomes(rows: Sequence[Any]) -> Outcomes:
    return [(row["series"], msgspec.json.decode(row["outcome"], type=TrainedModel)) for row in rows]


def _trained(prepared: Prepared, place: Path, outcomes: Outcomes) -> Trained:
    of_series: dict[str, list[TrainedModel]] = {series.name: [] for series in prepared.series}
    for name, one in outcomes:
        of_series[name].append(one)
    order = list(models())
    return Trained(
        folder=place,
        prepared=str(prepared.folder),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        series=tuple(
            TrainedSeries(
                name=series.name,
                interval_s=series.interval_s,
                past=series.past,
                future=series.future,
                scale=series.scale,
                end=series.end,
                models=tuple(sorted(of_series[series.name], key=lambda one: (order.index(one.model), one.repetition))),
            )
            for series in prepared.series
        ),
    )


def _write_recent(prepared: Prepared, series: PreparedSeries, staging: Path) -> None:
    file = recent_file(staging, series.name)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as opened:
        np.save(opened, read_newest_rates(prepared.folder, series.name, series.past), allow_pickle=False)


def _publish(trained: Trained, staging: Path) -> None:
    if all(one.problem is not None for series in trained.series for one in series.models):
        problems = [one.problem for series in trained.series for one in series.models]
        raise SpringtideError(f"no model could learn from any series: {problems[0] if problems else 'none was asked for'}")
    for old in (trained.folder / MANIFEST, trained.folder / WEIGHTS):
        if old.is_dir():
            shutil.rmtree(old)
        else:
            old.unlink(missing_ok=True)
    (staging / WEIGHTS).rename(trained.folder / WEIGHTS)
    write_trained(trained)


def _refuse_foreign(folder: Path) -> None:
    if folder.is_file():
        raise SpringtideError(f"{folder}: is a file; choose a folder for the models")
    if folder.is_dir() and not (folder / MANIFEST).exists():
        foreign = sorted(entry.name for entry in folder.iterdir() if entry.name not in {STAGING, WEIGHTS})
        if foreign:
            raise SpringtideError(f"{folder}: holds {foreign[0]!r} and no models; choose an empty folder")
