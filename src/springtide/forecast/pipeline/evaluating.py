"""Judge trained models by the test part of the data they were trained on: one Spark group for each model of each series."""

from __future__ import annotations

from typing import Any

import msgspec
from pyspark.sql import SparkSession
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from springtide.forecast.evaluation import judge, judge_from_one_origin, judged_at
from springtide.forecast.models.arima import Arima
from springtide.forecast.pipeline.jobs import Job, Progress, run_jobs
from springtide.forecast.pipeline.prepared import Prepared
from springtide.forecast.pipeline.stored_windows import read_windows
from springtide.forecast.standings import Judged
from springtide.forecast.trained import Trained, load_weights, weights_file

_SCHEMA = "judged string"


def evaluate(spark: SparkSession, prepared: Prepared, trained: Trained, progress: Progress) -> list[Judged]:
    """Every model that has learnt, by series, model and repetition."""
    jobs = [
        Job(series=series.name, model=one.model, repetition=one.repetition)
        for series in trained.series
        for one in series.models
        if one.problem is None
    ]
    folder = trained.folder

    def work(job: Job) -> list[dict[str, object]]:
        series = prepared.named(job.series)
        with threadpool_limits(limits=1):
            test = read_windows(prepared.folder, series.name, series.interval_s, "test")
            model = load_weights(weights_file(folder, job.series, job.model, job.repetition))
            scores = judge(model, test, series.scale, judged_at(series.future))
            whole = judge_from_one_origin(model, test, series.scale) if job.model == Arima.name else None
        judged = Judged(
            series=job.series, model=job.model, repetition=job.repetition, scores=tuple(scores), from_one_origin=whole
        )
        return [{"judged": msgspec.json.encode(judged).decode()}]

    order = {(job.series, job.model, job.repetition): number for number, job in enumerate(jobs)}
    rows: list[Any] = run_jobs(spark, jobs, work, _SCHEMA, folder, progress)
    found = [msgspec.json.decode(row["judged"], type=Judged) for row in rows]
    return sorted(found, key=lambda one: order[one.series, one.model, one.repetition])
