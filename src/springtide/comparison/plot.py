"""A comparison as a picture: core-hours against late rows, for all traces together and for each of them.

Policies are numbered by their overall cost. Those that no other dominates are in colour, on a line; the oracle is a star.
This module imports matplotlib, which takes a second: import it when something is to be drawn, not before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator
from matplotlib.transforms import Bbox

from springtide.comparison.standing import ORACLE, Comparison, Standing
from springtide.report.plots import write_whole

FLOOR = 1e-4  # on a logarithmic axis, no late row is as good as one in ten thousand
_SMALL_PER_ROW = 4
_DOT = 8.0  # pixels, as is the gap
_GAP = 1.0


def plot_comparison(comparison: Comparison, path: Path) -> None:
    """Draw the means over all traces and, where there are several, every trace as a small picture below."""
    numbers = {s.policy: number for number, s in enumerate(comparison.overall, start=1)}
    small = comparison.traces if len(comparison.traces) > 1 else ()
    rows = math.ceil(len(small) / _SMALL_PER_ROW)
    figure = Figure(figsize=(11, 6.5 + 2.6 * rows), layout="constrained")
    grid = figure.add_gridspec(1 + rows, _SMALL_PER_ROW, height_ratios=[6.5, *[2.6] * rows])
    means = figure.add_subplot(grid[0, :])
    what = f"means over {len(small)} traces" if small else comparison.traces[0].trace
    _draw(means, comparison.overall, comparison)
    means.set_title(f"{comparison.application}: what policies cost and how late they are, {what}")
    means.set_xlabel("core-hours a day")
    means.set_ylabel(f"rows later than {comparison.slo_latency_s:g} s")
    panels: list[tuple[Axes, Sequence[Standing]]] = []
    for number, trace in enumerate(small):
        ax = figure.add_subplot(grid[1 + number // _SMALL_PER_ROW, number % _SMALL_PER_ROW])
        _draw(ax, trace.policies, comparison)
        ax.set_title(trace.trace, fontsize="small")
        ax.tick_params(labelsize="x-small")
        panels.append((ax, trace.policies))
    figure.canvas.draw()  # only then is it known where the points are
    _label(means, comparison.overall, {policy: f"{number} {policy}" for policy, number in numbers.items()}, "small")
    for ax, standings in panels:
        _label(ax, standings, {policy: str(number) for policy, number in numbers.items()}, "xx-small")
    write_whole(figure, path)


def _draw(ax: Axes, standings: Sequence[Standing], comparison: Comparison) -> None:
    front = sorted(_place(s) for s in standings if not s.dominated_by and s.policy != ORACLE)
    ax.plot(*zip(*front, strict=True), color="C0", linewidth=1, drawstyle="steps-post", alpha=0.6)
    for standing in standings:
        marker, colour = ("*", "C1") if standing.policy == ORACLE else ("o", "0.6" if standing.dominated_by else "C0")
        ax.plot(*_place(standing), marker=marker, color=colour, markersize=9 if marker == "*" else 5, linestyle="none")
    ax.axhline(1 - comparison.slo_percentile, color="black", linewidth=0.8, linestyle="-.")
    ax.set_yscale("log")
    heights = [_place(s)[1] for s in standings]
    ax.set_ylim(min(heights) / 2, 2 * max(heights))
    ax.yaxis.set_major_formatter(FuncFormatter(_share))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.margins(x=0.08)
    ax.grid(alpha=0.3)


def _place(standing: Standing) -> tuple[float, float]:
    return standing.core_hours_per_day, max(FLOOR, standing.slo_violation_share)


def _share(value: float, _: float) -> str:
    return f"{'≤ ' if value <= FLOOR else ''}{100 * value:g} %"


def _label(ax: Axes, standings: Sequence[Standing], names: Mapping[str, str], size: str) -> None:
    """Every point's name at the nearest place where it covers no point and no other name."""
    assert ax.figure is not None
    points_per_pixel = 72 / ax.figure.get_dpi()
    points = [ax.transData.transform(_place(s)) for s in standings]
    taken = [Bbox.from_bounds(x - _DOT / 2, y - _DOT / 2, _DOT, _DOT) for x, y in points]
    for standing, (x, y) in zip(standings, points, strict=True):
        text = ax.annotate(
            names[standing.policy],
            _place(standing),
            xytext=(0, 0),
            textcoords="offset points",
            fontsize=size,
            color="0.4" if standing.dominated_by else "black",
            ha="center",
            va="center",
            arrowprops={"arrowstyle": "-", "color": "0.7", "linewidth": 0.6},
        )
        text.set_in_layout(False)
        place = _free_place(text.get_window_extent(), (x, y), taken, ax.get_window_extent())
        taken.append(place)
        offset = (place.x0 + place.x1) / 2 - x, (place.y0 + place.y1) / 2 - y
        text.set_position((offset[0] * points_per_pixel, offset[1] * points_per_pixel))


def _free_place(size: Bbox, point: tuple[float, float], taken: Sequence[Bbox], within: Bbox) -> Bbox:
    """A box of that size near the point that overlaps no other; beside the point if there is none."""
    width, height = size.width + 2 * _GAP, size.height + 2 * _GAP
    for radius in range(4, 400, 4):
        for angle in range(0, 360, 30):
            x = point[0] + (radius + width / 2) * math.cos(math.radians(angle))
            y = point[1] + (radius + height / 2) * math.sin(math.radians(angle))
            box = Bbox.from_bounds(x - width / 2, y - height / 2, width, height)
            inside = within.x0 <= box.x0 and box.x1 <= within.x1 and within.y0 <= box.y0 and box.y1 <= within.y1
            if inside and not any(box.overlaps(other) for other in taken):
                return box
    return Bbox.from_bounds(point[0] + _DOT, point[1] - height / 2, width, height)
