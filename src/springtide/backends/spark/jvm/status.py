"""What Spark's status store knows of the tasks that were run. A store keeps a bounded number of jobs, so reading it
does too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext

from springtide.backends.spark.jvm.scala import JavaObject, jvm_of, listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task that succeeded. `last_stage` tells tasks of a job's last stage, which serve replicas, from those that
    fed them.
    """

    index: int
    executor: str
    run_s: float
    rows_read: int
    last_stage: bool


def tasks_tagged(context: SparkContext, tag: str) -> list[Task]:
    """The tasks of every job that was run under a job tag."""
    store = context._jsc.sc().statusStore()
    found: list[Task] = []
    for job_id in context._jsc.sc().statusTracker().getJobIdsForTag(tag):
        stages = sorted(int(s) for s in listed(store.job(int(job_id)).stageIds()))
        for stage in stages:
            found.extend(_tasks(context, store, stage, last_stage=stage == stages[-1]))
    return found


def _tasks(context: SparkContext, store: JavaObject, stage: int, *, last_stage: bool) -> list[Task]:
    try:
        attempt = int(store.lastStageAttempt(stage).attemptId())
    except Py4JJavaError:  # never run: its output was there already
        return []
    found = []
    for task in as_json(context, store.taskList(stage, attempt, _MOST_TASKS)):
        if task["status"] == "SUCCESS":
            metrics = task.get("taskMetrics") or {}
            found.append(
                Task(
                    index=int(task["index"]),
                    executor=task["executorId"],
                    run_s=metrics.get("executorRunTime", 0) / 1000,
                    rows_read=metrics.get("shuffleReadMetrics", {}).get("recordsRead", 0),
                    last_stage=last_stage,
                )
            )
    return found


_MOST_TASKS = 10_000


def as_json(context: SparkContext, value: JavaObject) -> Any:
    """A value of Spark's REST API in one call over the gateway, instead of one for each of its fields."""
    return json.loads(_mapper(context).writeValueAsString(value))


@lru_cache(maxsize=4)
def _mapper(context: SparkContext) -> JavaObject:
    return jvm_of(context).org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()
