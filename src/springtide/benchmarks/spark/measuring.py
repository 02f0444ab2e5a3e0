"""All cases, one after the other, each on a cluster of its own."""

from __future__ import annotations

import os
import platform
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import pyspark
from rich.table import Table

from springtide.benchmarks.spark import chain, control, pauses, skew
from springtide.benchmarks.spark.bed import CORES, EXECUTORS, MEMORY_MB, Bed, made_up
from springtide.benchmarks.spark.figures import Figure
from springtide.errors import SpringtideError, nearest

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
    for name in cases:
        if name not in CASES:
            raise SpringtideError(f"there is no case {name!r}; {nearest(name, CASES)}")
    figures: list[Figure] = []
    load: dict[str, float] = {}
    failed: dict[str, str] = {}
    with _ended_politely():
        for name, case in CASES.items():
            if not cases or name in cases:
                load[name] = os.getloadavg()[0]
                try:
                    with made_up(name, say, quick=quick) as bed:
                        figures += case(bed)
                except SpringtideError as error:  # what the other cases have taken half an hour to find is not thrown away
                    failed[name] = str(error)
                    say(f"{name}: failed: {error}")
    return Report(
        machine=f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
        spark=pyspark.__version__,
        executors=f"{EXECUTORS} x {CORES} core, {MEMORY_MB} MB",
        quick=quick,
        load=load,
        figures=figures,
        failed=failed,
        within_bars=not failed and all(f.met is not False for f in figures),
    )


@contextmanager
def _ended_politely() -> Iterator[None]:
    """A polite kill ends the session and removes the folders, as Ctrl-C does."""

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def table(report: Report) -> Table:
    """One row for each figure: the median of n samples, and between what the middle half of them lie."""
    found = Table(title=f"Spark {report.spark}, {report.executors}, on {report.machine}")
    for column in ("figure", "median", "middle half", "n", "bar"):
        found.add_column(column, justify="left" if column == "figure" else "right", no_wrap=True)
    for case in dict.fromkeys(f.case for f in report.figures):
        found.add_section()
        found.add_row(f"[bold]{case}[/bold]")
        for f in (f for f in report.figures if f.case == case):
            spread = f"{_short(f.low)} to {_short(f.high)}" if len(f.samples) > 1 else ""
            bar = "" if f.bar is None else f"{f.bar} {'met' if f.met else 'missed'}"
            found.add_row(f.what, f"{_short(f.value)} {f.unit}", spread, str(len(f.samples)), bar)
    for case, why in report.failed.items():
        found.add_section()
        found.add_row(f"[bold]{case}[/bold]: failed: {why}")
    return found


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
