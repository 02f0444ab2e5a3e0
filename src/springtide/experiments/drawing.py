"""Lines and bars of experiments' pictures, the paper's beside ours: several panels in one PNG.

This module imports matplotlib, which takes a second: import it when something is to be drawn, not before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from springtide.report.plots import write_whole

_LEGEND_COLUMNS = 3  # of bars: it lies above them, and should be low


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A curve. One `of_paper` is dashed and grey around its points; one with `steps` holds each value until the next."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    of_paper: bool = False
    steps: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """A panel of curves."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """A panel of bars: for every group one of each series, side by side. Those of the paper are hatched."""

    title: str
    y_label: str
    groups: Sequence[str]
    series: Sequence[tuple[str, Sequence[float]]]
    of_paper: frozenset[str] = frozenset()
    log_y: bool = False


Panel = Lines | Bars


def draw(panels: Sequence[Panel], path: Path, *, columns: int = 2) -> None:
    """All panels in one picture."""
    columns = min(columns, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(5.6 * columns, 3.6 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, panel in zip(axes, panels, strict=False):
        _draw_lines(ax, panel) if isinstance(panel, Lines) else _draw_bars(ax, panel)
        ax.set_title(panel.title, fontsize="medium")
        ax.set_ylabel(panel.y_label)
        ax.grid(alpha=0.3)
        if panel.log_y:
            ax.set_yscale("log")
        elif ax.get_ylim()[0] > 0:
            ax.set_ylim(bottom=0)
        if len(ax.get_legend_handles_labels()[0]) > 1:
            ax.legend(fontsize="x-small", ncols=1 if isinstance(panel, Lines) else _LEGEND_COLUMNS)
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    write_whole(figure, path)


def _draw_lines(ax: Axes, panel: Lines) -> None:
    colours = _colours([line.name.removesuffix(" (paper)") for line in panel.lines])
    for line in panel.lines:
        colour = colours[line.name.removesuffix(" (paper)")]
        few = len(line.x) <= 40
        style = {"linestyle": "--", "marker": "o" if few else "", "alpha": 0.55, "markerfacecolor": "white"}
        ours = {"linestyle": "-", "marker": "o" if few else ""}
        ax.plot(
            line.x,
            line.y,
            label=line.name,
            color=colour,
            linewidth=1.2,
            markersize=4,
            drawstyle="steps-post" if line.steps else "default",
            **(style if line.of_paper else ours),
        )
    ax.set_xlabel(panel.x_label)
    if panel.log_x:
        ax.set_xscale("log")


def _draw_bars(ax: Axes, panel: Bars) -> None:
    places = np.arange(len(panel.groups))
    width = 0.8 / max(1, len(panel.series))
    colours = _colours([name.removesuffix(" (paper)") for name, _ in panel.series])
    for number, (name, values) in enumerate(panel.series):
        paper = name in panel.of_paper
        colour = colours[name.removesuffix(" (paper)")]
        ax.bar(
            places - 0.4 + (number + 0.5) * width,
            values,
            width,
            label=name,
            color="white" if paper else colour,
            edgecolor=colour,
            hatch="///" if paper else "",
            linewidth=0.8,
        )
    if not panel.log_y:
        ax.margins(y=0.25)  # for the legend
    ax.set_xticks(places, panel.groups, fontsize="small", rotation=20 if sum(map(len, panel.groups)) > 50 else 0)


def _colours(names: Sequence[str]) -> dict[str, str]:
    """A paper's curve has the colour of ours of the same name: `tide` and `tide (paper)`."""
    return {name: f"C{number % 10}" for number, name in enumerate(dict.fromkeys(names))}
