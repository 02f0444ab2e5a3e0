"""How figures are shown: the same table and the same two panels for every figure from 4 to 9."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from springtide.experiments.heinze.cases import Figures
from springtide.experiments.study import PageTable

_COLUMNS = (
    "load min",
    "load mean",
    "load max",
    "latency p10, ms",
    "median, ms",
    "p90, ms",
    "hosts",
    "queries moved",
    "hosts added",
    "paper: load mean",
    "paper: p90, ms",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One row of a table, or one group of bars: our figures, and what the paper's text has of its own."""

    names: tuple[str, ...]
    figures: Figures
    paper_load: float = math.nan
    paper_p90_ms: float = math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Groups of bars that share a picture."""

    title: str
    shown: Sequence[Shown] = field(default_factory=tuple)


def table(names: tuple[str, ...], shown: Sequence[Shown], caption: str = "") -> PageTable:
    return PageTable(columns=(*names, *_COLUMNS), rows=tuple((*one.names, *_cells(one)) for one in shown), caption=caption)


def _cells(shown: Shown) -> tuple[str, ...]:
    figures = shown.figures
    return (
        load(figures.load_min),
        load(figures.load_mean),
        load(figures.load_max),
        number(figures.latency_p10_ms),
        number(figures.latency_p50_ms),
        number(figures.latency_p90_ms),
        f"{figures.hosts:.2f}",
        number(figures.moves),
        number(figures.hosts_added),
        load(shown.paper_load),
        number(shown.paper_p90_ms),
    )


def load(share: float) -> str:
    return "" if math.isnan(share) else f"{share:.2f}"


def number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:,.0f}"


def ms(value: float) -> str:
    return f"{value:,.0f} ms"


def drawing(bundles: Sequence[Bundle]) -> Callable[[Path], None]:
    """Two panels for each bundle: loads of hosts, and latencies."""

    def draw_all(path: Path) -> None:
        from springtide.experiments.drawing import Bars, draw  # noqa: PLC0415 - matplotlib is slow

        panels = []
        for bundle in bundles:
            groups = [one.names[-1] for one in bundle.shown]
            figures = [one.figures for one in bundle.shown]
            panels += [
                Bars(
                    title=f"{bundle.title}: load of hosts",
                    y_label="share of a host",
                    groups=groups,
                    series=[
                        ("min", [f.load_min for f in figures]),
                        ("mean", [f.load_mean for f in figures]),
                        ("max", [f.load_max for f in figures]),
                        *_of_paper("mean (paper)", [one.paper_load for one in bundle.shown]),
                    ],
                    of_paper=frozenset({"mean (paper)"}),
                ),
                Bars(
                    title=f"{bundle.title}: latency",
                    y_label="ms",
                    groups=groups,
                    series=[
                        ("p10", [f.latency_p10_ms for f in figures]),
                        ("median", [f.latency_p50_ms for f in figures]),
                        ("p90", [f.latency_p90_ms for f in figures]),
                        *_of_paper("p90 (paper)", [one.paper_p90_ms for one in bundle.shown]),
                    ],
                    of_paper=frozenset({"p90 (paper)"}),
                    log_y=True,
                ),
            ]
        draw(panels, path, columns=2)

    return draw_all


def _of_paper(name: str, values: Sequence[float]) -> list[tuple[str, Sequence[float]]]:
    """The paper's bars, where its text has any of them."""
    return [] if all(map(math.isnan, values)) else [(name, values)]
