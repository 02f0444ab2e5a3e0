"""All cases, one after the other, each on a cluster of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyspark
from rich.table import Table

from springtide.benchmarks.figures import Figure, chosen, figures_table
from springtide.benchmarks.machine import ended_politely, machine
from springtide.benchmarks.spark import chain, control, pauses, skew
from springtide.benchmarks.spark.bed import CORES, EXECUTORS, MEMORY_MB, Bed, made_up
from springtide.errors import SpringtideError

CASES: dict[str, Callable[[Bed], list[Figure]]] = {
    pauses.CASE: pauses.measure,
    chain.CASE: chain.measure,
    control.CASE: control.measure,
    skew.CASE: skew.measure,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """`load` is the machine's mean number of running processes before each case: above 0, others were at work too.

    A case that failed has no figures, and its error is in `failed`.
    """

    machine: str
    spark: str
    executors: str
    quick: bool
    load: dict[str, float]
    figures: list[Figure]
    failed: dict[str, str]
    within_bars: bool


def measure(cases: Sequence[str] = (), *, quick: bool = False, say: Callable[[str], None] = print) -> Report:
    """The cases of these names, or all of them."""
    return measure_cases(CASES, cases, quick=quick, say=say)


def measure_cases(
    known: Mapping[str, Callable[[Bed], list[Figure]]], cases: Sequence[str], *, quick: bool, say: Callable[[str], None]
) -> Report:
    """Those of some known cases that are named, or all of them."""
    names = chosen(cases, known.keys())
    figures: list[Figure] = []
    load: dict[str, float] = {}
    failed: dict[str, str] = {}
    with ended_politely():
        for name in names:
            load[name] = os.getloadavg()[0]
            try:
                with made_up(name, say, quick=quick) as bed:
                    found = known[name](bed)
                figures += found
                for one in found:
                    say(f"{name}: {one.what}: {one.value:.3g} {one.unit}")
            except SpringtideError as error:  # what the other cases have taken half an hour to find is not thrown away
                failed[name] = str(error)
                say(f"{name}: failed: {error}")
    return Report(
        machine=machine(),
        spark=pyspark.__version__,
        executors=f"{EXECUTORS} x {CORES} core, {MEMORY_MB} MB",
        quick=quick,
        load=load,
        figures=figures,
        failed=failed,
        within_bars=not failed and all(f.met is not False for f in figures),
    )


def table(report: Report) -> Table:
    title = f"Spark {report.spark}, {report.executors}, on {report.machine}"
    return figures_table(title, report.figures, report.failed)
