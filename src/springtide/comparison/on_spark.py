"""All cases as one Spark job, a task for each: on all cores of this machine, or on those of any session.

Rules: the traces are sent once, not with every case. Outcomes are the same wherever cases run, and in whatever order.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

from pyspark import Accumulator, AccumulatorParam
from pyspark.sql import SparkSession

from springtide.comparison.sweep import Case, Outcome, Sweep, attempt

_POLL_S = 0.3


def run_on_spark(sweep: Sweep, spark: SparkSession, note: Callable[[str], None]) -> list[Outcome]:
    """Run all cases; `note` is told of each that is done, while the others run. An interrupt ends those that run."""
    context = spark.sparkContext
    shared = context.broadcast(sweep)
    done = context.accumulator((), _Names())

    def run(case: Case) -> Outcome:
        outcome = attempt(shared.value, case)
        done.add((str(case),))
        return outcome

    tasks = context.parallelize(sweep.cases, len(sweep.cases)).map(run)
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


def _follow(job: Future[list[Outcome]], done: Accumulator[tuple[str, ...]], note: Callable[[str], None]) -> None:
    told = 0
    while True:
        over = wait([job], timeout=_POLL_S).done
        names = done.value
        for name in names[told:]:
            note(name)
        told = len(names)
        if over:
            return
