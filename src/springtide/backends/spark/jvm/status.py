"""What Spark's status store knows of the tasks that were run. A store keeps a bounded number of jobs, so reading it
does too.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from pyspark import SparkContext

from springtide.backends.spark.jvm.scala import JavaObject, jvm_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task that succeeded or still runs: then `ended_s` is None, and what it has taken is not known to Spark yet.

    `last_stage` tells tasks of a job's last stage, which serve replicas, from those that fed them.
    """

    index: int
    executor: str
    began_s: float
    ended_s: float | None
    run_s: float
    last_stage: bool

    def busy_between(self, start_s: float, end_s: float) -> float:
        """How much of its run time lies between two times."""
        until_s = end_s if self.ended_s is None else self.ended_s
        overlap_s = max(0.0, min(end_s, until_s) - max(start_s, self.began_s))
        if self.ended_s is None or overlap_s == 0.0:
            return overlap_s
        return self.run_s * overlap_s / (until_s - self.began_s)


def tasks_by_tag(context: SparkContext, tags: Collection[str]) -> dict[str, list[Task]]:
    """The tasks of every job that was run, or runs, under one of these job tags."""
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
    return [_task(task, last_stage=last_stage) for task in tasks if task["status"] in ("SUCCESS", "RUNNING")]


def _task(task: Mapping[str, Any], *, last_stage: bool) -> Task:
    began_s = _epoch_s(task["launchTime"])
    running = task["status"] == "RUNNING"
    return Task(
        index=int(task["index"]),
        executor=task["executorId"],
        began_s=began_s,
        ended_s=None if running else began_s + task.get("duration", 0) / 1000,
        run_s=(task.get("taskMetrics") or {}).get("executorRunTime", 0) / 1000,
        last_stage=last_stage,
    )


def _epoch_s(text: str) -> float:
    """
    >>> _epoch_s("1970-01-01T00:01:00.500GMT")
    60.5
    """
    return datetime.fromisoformat(text.replace("GMT", "+00:00")).timestamp()


_MOST_TASKS = 10_000


def as_json(context: SparkContext, value: JavaObject) -> Any:
    """A value of Spark's REST API in one call over the gateway, instead of one for each of its fields."""
    return json.loads(_mapper(context).writeValueAsString(value))


@lru_cache(maxsize=4)
def _mapper(context: SparkContext) -> JavaObject:
    return jvm_of(context).org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()
