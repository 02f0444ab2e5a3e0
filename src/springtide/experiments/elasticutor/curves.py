"""Figures of one executor by the cores it has: what could be done with so many, and how much of it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from springtide.experiments.elasticutor import world
from springtide.experiments.elasticutor.wording import milliseconds, thousands
from springtide.experiments.study import Finding, Values

Curve = dict[int, float]  # by cores
Key = TypeVar("Key")

EFFICIENT = 0.75  # of what could be done: theta allows a core 1.2 times the mean, which alone is 0.83
AS_GOOD = 0.98  # of another's throughput


def could_do_per_s(cores: int, service_time_s: float) -> float:
    """What the cores could do, or less: all rows of the most frequent key are served by one core.

    >>> could_do_per_s(8, 0.001)
    8000.0
    """
    return min(cores, 1.0 / world.hottest_key_share()) / service_time_s


def efficiency(curve: Mapping[int, float], service_time_s: float) -> Curve:
    """The part of what could be done.

    >>> efficiency({1: 1000.0, 4: 2000.0}, 0.001)
    {1: 1.0, 4: 0.5}
    """
    return {cores: rows_per_s / could_do_per_s(cores, service_time_s) for cores, rows_per_s in curve.items()}


def most_efficient_cores(curve: Mapping[int, float], service_time_s: float) -> int:
    """The most cores that are used efficiently, as are all fewer ones.

    >>> most_efficient_cores({1: 1000.0, 4: 3900.0, 8: 4000.0}, 0.001)
    4
    """
    found = 0
    for cores, part in sorted(efficiency(curve, service_time_s).items()):
        if part < EFFICIENT:
            break
        found = cores
    return found


def curves(findings: Sequence[Finding], key: Callable[[Values], Key], what: str) -> dict[Key, Curve]:
    found: dict[Key, Curve] = {}
    for finding in findings:
        found.setdefault(key(finding.run.parameters), {})[finding.run.parameters["cores"]] = finding.found[what]
    return found


def told(figures: Mapping[str, float] | Mapping[str, str], written: str) -> str:
    return "; ".join(f"{name}: {written.format(figure)}" for name, figure in figures.items())


def cores_text(count: int) -> str:
    return f"{count} core" + "s" * (count > 1)


def thousands_cell(rows_per_s: float | None) -> str:
    """Empty where nothing was measured."""
    return "" if rows_per_s is None else thousands(rows_per_s)


def milliseconds_cell(latency_s: float | None) -> str:
    return "" if latency_s is None else milliseconds(latency_s * 1e3)
