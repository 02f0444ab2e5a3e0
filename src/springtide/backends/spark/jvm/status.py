"""What Spark's status store knows of the tasks that were run. A store keeps a bounded number of jobs, so reading it
does too.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pyspark import SparkContext

from springtide.backends.spark.jvm.scala import JavaObject, jvm_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task that succeeded. `last_stage` tells tasks of a job's last stage, which serve replicas, from those that
    fed them.
    """

    index: int
    executor: str
    run_s: float
    last_stage: bool


def tasks_by_tag(context: SparkContext, tags: Collection[str]) -> dict[str, list[Task]]:
    """The tasks of every job that was run under one of these job tags."""
    found: dict[str, list[Task]] = {tag: [] for tag in tags}
    if not tags:
        return found
    store = context._jsc.sc().statusStore()
    for job in as_json(context, store.jobsList(None)):
        for tag in found.keys() & set(job["jobTags"]):
            stages = sorted(job["stageIds"])
            for stage in stages:
                found[tag].extend(_tasks(context, store, stage, last_stage=stage == stages[-1]))
    return found


def _tasks(context: SparkContext, store: JavaObject, stage: int, *, last_stage: bool) -> list[Task]:
    """The tasks of a stage's first attempt, or of its last if that failed; none if its output was there already."""
    tasks = as_json(context, store.taskList(stage, 0, _MOST_TASKS))
    if any(task["status"] == "FAILED" for task in tasks):
        tasks = as_json(context, store.taskList(stage, store.lastStageAttempt(stage).attemptId(), _MOST_TASKS))
    return [
        Task(
            index=int(task["index"]),
            executor=task["executorId"],
            run_s=(task.get("taskMetrics") or {}).get("executorRunTime", 0) / 1000,
            last_stage=last_stage,
        )
        for task in tasks
        if task["status"] == "SUCCESS"
    ]


_MOST_TASKS = 10_000


def as_json(context: SparkContext, value: JavaObject) -> Any:
    """A value of Spark's REST API in one call over the gateway, instead of one for each of its fields."""
    return json.loads(_mapper(context).writeValueAsString(value))


@lru_cache(maxsize=4)
def _mapper(context: SparkContext) -> JavaObject:
    return jvm_of(context).org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()
