"""What a case reports: figures with their unit, their spread, and a bar where there is one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from springtide.errors import SpringtideError, nearest, require


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What a figure has to be: at most `limit`, or at least."""

    limit: float
    at_least: bool = False

    def met(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.limit:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """The median of what was measured again and again; half of the samples lie between `low` and `high`."""

    case: str
    what: str
    unit: str
    value: float
    low: float
    high: float
    samples: list[float]
    bar: Bar | None
    met: bool | None


def figure(case: str, what: str, unit: str, samples: Sequence[float], bar: Bar | None = None) -> Figure:
    """A figure from its samples.

    >>> figure("pauses", "one shard", "s", [1.0, 5.0, 2.0], Bar(limit=2.0)).met
    True
    """
    require(bool(samples), f"{case}: {what} was never measured")
    value = float(median(samples))
    low, high = np.percentile(samples, [25, 75]).tolist()
    return Figure(
        case=case,
        what=what,
        unit=unit,
        value=value,
        low=low,
        high=high,
        samples=[float(s) for s in samples],
        bar=bar,
        met=None if bar is None else bar.met(value),
    )


def chosen(names: Sequence[str], cases: Collection[str]) -> list[str]:
    """The cases of these names, or all, in the order in which they are measured.

    >>> chosen(["skew"], ["pauses", "skew"]), chosen([], ["pauses", "skew"])
    (['skew'], ['pauses', 'skew'])
    """
    for name in names:
        if name not in cases:
            raise SpringtideError(f"there is no case {name!r}; {nearest(name, cases)}")
    return [name for name in cases if not names or name in names]


def figures_table(title: str, figures: Sequence[Figure], failed: Mapping[str, str] | None = None) -> Table:
    """One row for each figure: the median of n samples, and between what the middle half of them lie."""
    found = Table(title=title, box=SIMPLE_HEAD, pad_edge=False)
    found.add_column("figure")
    for column in ("median", "middle half", "n", "bar"):
        found.add_column(column, justify="right", no_wrap=True)
    for case in dict.fromkeys(f.case for f in figures):
        found.add_section()
        found.add_row(f"[bold]{case}[/bold]")
        for f in (f for f in figures if f.case == case):
            spread = f"{_short(f.low)} to {_short(f.high)}" if len(f.samples) > 1 else ""
            bar = "" if f.bar is None else f"{f.bar} {'met' if f.met else 'missed'}"
            found.add_row(f.what, f"{_short(f.value)} {f.unit}", spread, str(len(f.samples)), bar)
    for case, why in (failed or {}).items():
        found.add_section()
        found.add_row(f"[bold]{case}[/bold]: failed: {why}")
    return found


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}" if abs(value) >= 0.1 or not value else f"{value:.2g}"
