"""Many independent jobs as one Spark job with `applyInPandas`: a group for each, on whatever cores there are.

Rules: a job is told by its series, model and repetition, and everything large is read and written by the job itself, in folders
that all executors share. Each job leaves a mark when it is done, so that whoever waits can see how far it is. An interrupt
ends those that run.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from pyspark.sql import Row, SparkSession

_POLL_S = 0.3
_MOST_PARTITIONS = 4_000
_MARKS = ".done"

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a group is for; `model` is empty where a job is for a whole series."""

    series: str
    model: str = ""
    repetition: int = 0

    def __str__(self) -> str:
        return f"{self.series} {self.model}".strip() + (f" {self.repetition + 1}" if self.repetition else "")


def run_jobs(
    spark: SparkSession,
    jobs: Sequence[Job],
    work: Callable[[Job], list[dict[str, object]]],
    schema: str,
    folder: Path,
    progress: Progress,
) -> list[Row]:
    """The rows that all jobs made, in no order. `progress` is told of each that is done: how many of how many, and which."""
    marks = folder / _MARKS
    shutil.rmtree(marks, ignore_errors=True)
    marks.mkdir(parents=True)
    numbered = list(enumerate(jobs))

    def group(frame: pd.DataFrame) -> pd.DataFrame:
        found = frame.iloc[0]
        made = work(Job(series=found["series"], model=found["model"], repetition=int(found["repetition"])))
        (marks / str(found["number"])).touch()
        return pd.DataFrame(made, columns=[column.split()[0] for column in schema.split(", ")])

    own = spark.newSession()
    own.conf.set("spark.sql.shuffle.partitions", str(min(_MOST_PARTITIONS, 4 * len(jobs))))
    own.conf.set("spark.sql.adaptive.enabled", "false")  # it would put small groups together, one after the other
    listed = own.createDataFrame(
        [(number, job.series, job.model, job.repetition) for number, job in numbered],
        "number long, series string, model string, repetition long",
    )
    frame = listed.groupBy("number").applyInPandas(group, schema)
    try:
        with ThreadPoolExecutor(max_workers=1) as thread:
            running = thread.submit(frame.collect)
            told: set[str] = set()
            try:
                over = False
                while not over:
                    over = bool(wait([running], timeout=_POLL_S).done)
                    for mark in sorted(marks.iterdir()):
                        if mark.name not in told:
                            told.add(mark.name)
                            progress(len(told), len(jobs), str(jobs[int(mark.name)]))
            except BaseException:
                spark.sparkContext.cancelAllJobs()
                raise
        return running.result()
    finally:
        shutil.rmtree(marks, ignore_errors=True)
