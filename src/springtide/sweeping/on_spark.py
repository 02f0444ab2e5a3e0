"""All cases as one Spark job, a task for each: on all cores of this machine, or on those of any session.

Rules: what all cases share is sent once, not with every case: let `attempt` hold it. Outcomes are the same wherever cases run,
and in whatever order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from pyspark import Accumulator, AccumulatorParam
from pyspark.sql import SparkSession

Case = TypeVar("Case")
Outcome = TypeVar("Outcome")

_POLL_S = 0.3


def run_on_spark(
    cases: Sequence[Case], attempt: Callable[[Case], Outcome], spark: SparkSession, note: Callable[[str], None]
) -> list[Outcome]:
    """The outcome of every case, in their order; `note` is told of each that is done, while the others run.

    `attempt` must not raise, and must be made of what pickle takes. An interrupt ends those that run.
    """
    context = spark.sparkContext
    shared = context.broadcast(attempt)
    done = context.accumulator((), _Names())

    def run(case: Case) -> Outcome:
        outcome = shared.value(case)
        done.add((str(case),))
        return outcome

    tasks = context.parallelize(cases, len(cases)).map(run)
    with ThreadPoolExecutor(max_workers=1) as thread:
        job = thread.submit(tasks.collect)
        try:
            _follow(job, done, note)
        except BaseException:
            context.cancelAllJobs()
            raise
        finally:
            shared.unpersist()
    return job.result()


class _Names(AccumulatorParam[tuple[str, ...]]):
    """Names of what is done, in the order in which it became known."""

    def zero(self, value: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ARG002 - Spark's signature
        return ()

    def addInPlace(self, value1: tuple[str, ...], value2: tuple[str, ...]) -> tuple[str, ...]:
        return (*value1, *value2)


def _follow(job: Future[Any], done: Accumulator[tuple[str, ...]], note: Callable[[str], None]) -> None:
    told = 0
    while True:
        over = wait([job], timeout=_POLL_S).done
        names = done.value
        for name in names[told:]:
            note(name)
        told = len(names)
        if over:
            return
