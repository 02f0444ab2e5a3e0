"""Runs as pictures: load, backlog, latency against the SLO, hosts and replicas over time.

This module imports matplotlib, which takes a second: import it when something is to be drawn, not before.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from springtide.report.summary import Point, RunSummary
from springtide.report.tables import did


def plot_runs(runs: Sequence[tuple[RunSummary, list[Point]]], path: Path) -> None:
    """Draw all runs into one picture."""
    figure = Figure(figsize=(11, 12), layout="constrained")
    axes = figure.subplots(5, 1, sharex=True)
    longest_s = max(summary.duration_s for summary, _ in runs)
    unit_s, unit = (3600.0, "hours") if longest_s > 7200 else (60.0, "minutes") if longest_s > 300 else (1.0, "seconds")
    for number, (summary, points) in enumerate(runs):
        _draw_run(axes, summary, points, unit_s, f"C{number}")
    _label(axes, runs, unit)
    handles, names = axes[2].get_legend_handles_labels()
    who = "each policy" if len(runs) > 1 else "the policy"
    title = f"{runs[0][0].application}: what {who} {did([summary for summary, _ in runs])}"
    figure.legend(handles, names, loc="outside upper center", ncols=2, fontsize="small", title=title, frameon=False)
    write_whole(figure, path)


def _draw_run(axes: Sequence[Axes], summary: RunSummary, points: list[Point], unit_s: float, colour: str) -> None:
    time = [p.time_s / unit_s for p in points]
    load, backlog, latency, resources, utilisation = axes
    name = f"{summary.policy}, live" if summary.live else f"{summary.policy} on {summary.trace}"
    style: dict[str, Any] = {"color": colour, "linewidth": 1.2}
    load.plot(time, [p.offered_per_s for p in points], **style, label=name)
    backlog.plot(time, [p.backlog_rows for p in points], **style, label=name)
    some_left = [p for p in points if p.latency_p90_s > 0]  # while no row leaves, there is no latency
    left_at = [p.time_s / unit_s for p in some_left]
    floor_s = 1e-3
    latency.plot(left_at, [max(floor_s, p.latency_p90_s) for p in some_left], **style, label=name)
    latency.plot(left_at, [max(floor_s, p.latency_p50_s) for p in some_left], **style | {"linewidth": 0.6}, linestyle=":")
    resources.step(time, [p.hosts for p in points], **style, where="post", label=name)
    resources.step(time, [p.replicas for p in points], **style | {"linewidth": 0.7}, where="post", linestyle="--")
    utilisation.plot(time, [p.utilisation for p in points], **style, label=name)
    utilisation.fill_between(
        time, [p.utilisation for p in points], [p.utilisation_max for p in points], color=colour, alpha=0.15
    )


def _label(axes: Sequence[Axes], runs: Sequence[tuple[RunSummary, list[Point]]], unit: str) -> None:
    load, backlog, latency, resources, utilisation = axes
    load.set_ylabel("rows offered / s")
    load.set_ylim(bottom=0)
    backlog.set_ylabel("backlog, rows")
    backlog.set_ylim(bottom=0)
    latency.set_ylabel("latency, s\n(p90; dotted: p50)")
    latency.set_yscale("log")
    latency.axhline(runs[0][0].slo_latency_s, color="black", linewidth=0.8, linestyle="-.", label="SLO")
    resources.set_ylabel("hosts\n(dashed: replicas)")
    resources.set_ylim(bottom=0)
    utilisation.set_ylabel("host utilisation\n(mean to busiest)")
    utilisation.set_ylim(0, 1.05)
    utilisation.set_xlabel(f"{unit} from the start")
    for ax in axes:
        ax.grid(alpha=0.3)
        ax.margins(x=0.01)
    for ax in (load, backlog):
        ax.yaxis.set_major_formatter(EngFormatter())
    resources.yaxis.set_major_locator(MaxNLocator(integer=True))


def write_whole(figure: Figure, path: Path) -> None:
    """Write a picture; the file appears whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=path.absolute().parent, suffix=path.suffix)
    os.close(handle)
    try:
        figure.savefig(temporary, dpi=110)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
