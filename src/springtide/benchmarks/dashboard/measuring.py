"""Both cases, one after the other, in a folder that is gone afterwards."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.table import Table

from springtide.benchmarks.dashboard import opening, watching
from springtide.benchmarks.figures import Figure, chosen, figures_table
from springtide.benchmarks.machine import ended_politely, machine

CASES = {opening.CASE: opening.measure, watching.CASE: watching.measure}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """`load` is the machine's mean number of running processes before each case: above 0, others were at work too."""

    machine: str
    python: str
    quick: bool
    load: dict[str, float]
    figures: list[Figure]
    within_bars: bool


def measure(cases: Sequence[str] = (), *, quick: bool = False, say: Callable[[str], None] = print) -> Report:
    """The cases of these names, or both."""
    names = chosen(cases, CASES)
    figures: list[Figure] = []
    load: dict[str, float] = {}
    with ended_politely(), TemporaryDirectory(prefix="springtide-dashboard-") as folder:
        for name in names:
            load[name] = os.getloadavg()[0]
            figures += CASES[name](Path(folder), say, quick=quick)
    return Report(
        machine=machine(),
        python=platform.python_version(),
        quick=quick,
        load=load,
        figures=figures,
        within_bars=all(f.met is not False for f in figures),
    )


def table(report: Report) -> Table:
    return figures_table(f"The dashboard on {report.machine}", report.figures)
