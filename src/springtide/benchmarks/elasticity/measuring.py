"""All cases, one after the other, each on a cluster of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.table import Table

from springtide.benchmarks.elasticity import constant, pacing, prediction, steps
from springtide.benchmarks.figures import Figure
from springtide.benchmarks.spark import measuring as spark
from springtide.benchmarks.spark.bed import Bed

CASES: dict[str, Callable[[Bed], list[Figure]]] = {
    steps.CASE: steps.measure,
    constant.CASE: constant.measure,
    prediction.CASE: prediction.measure,
    pacing.CASE: pacing.measure,
}


def measure(cases: Sequence[str] = (), *, quick: bool = False, say: Callable[[str], None] = print) -> spark.Report:
    """The cases of these names, or all of them."""
    return spark.measure_cases(CASES, cases, quick=quick, say=say)


def table(report: spark.Report) -> Table:
    return spark.table(report)
