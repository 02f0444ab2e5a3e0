"""Forecasts as pictures: how models stand, and what a model foresees.

This module imports matplotlib, which takes a second: import it when something is to be drawn, not before.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from springtide.forecast.mixing.calibration import LEVELS
from springtide.forecast.standings import SeriesStandings
from springtide.model.observation import FloatArray
from springtide.report.plots import write_whole

_BANDS = ((0.05, 0.95), (0.25, 0.75))
_SHOWN_PAST = 4  # times as long as what is foreseen


def plot_errors(all_series: Sequence[SeriesStandings], path: Path) -> None:
    """One row for each series: the RMSE of every model at each distance, with its spread."""
    figure = Figure(figsize=(11, 1.2 + 3.0 * len(all_series)), layout="constrained")
    rows = figure.subplots(len(all_series), 1, squeeze=False)[:, 0]
    for axes, series in zip(rows, all_series, strict=True):
        _draw_errors(axes, series)
    handles, names = rows[0].get_legend_handles_labels()
    title = "Errors on days that no model has seen, in standard deviations of the load"
    figure.legend(handles, names, loc="outside upper center", ncols=6, fontsize="small", title=title, frameon=False)
    write_whole(figure, path)


def _draw_errors(axes: Axes, series: SeriesStandings) -> None:
    distances = sorted({error.distance for model in series.models for error in model.errors})
    width = 0.8 / max(1, len(series.models))
    for number, model in enumerate(series.models):
        errors = {error.distance: error for error in model.errors}
        at = [i + (number + 0.5) * width - 0.4 for i, d in enumerate(distances) if d in errors]
        there = [errors[d] for d in distances if d in errors]
        axes.bar(
            at,
            [error.rmse for error in there],
            width,
            yerr=[error.rmse_spread for error in there] if model.repetitions > 1 else None,
            color=f"C{number % 10}" if number < 10 else "black",
            label=model.model,
        )
    axes.set_xticks(range(len(distances)), [f"{d:,} ahead" for d in distances])
    axes.set_ylabel("RMSE")
    axes.set_title(series.series, loc="left", fontsize="medium")
    axes.grid(axis="y", alpha=0.3)


def plot_prediction(
    name: str, recent: FloatArray, interval_s: float, mean: FloatArray, levels: FloatArray | None, path: Path
) -> None:
    """The newest rates, what is foreseen, and how sure that is."""
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    axes = figure.subplots()
    shown = recent[-max(_SHOWN_PAST * len(mean), 48) :]
    hours = interval_s / 3600
    axes.plot((np.arange(len(shown)) - len(shown) + 1) * hours, shown, color="black", linewidth=1.0, label="recorded")
    ahead = np.arange(len(mean) + 1) * hours
    axes.plot(ahead, np.append(shown[-1], mean), color="C0", linewidth=1.4, label="foreseen")
    if levels is not None:
        for low, high in _BANDS:
            below, above = (np.append(shown[-1], levels[LEVELS.index(level)]) for level in (low, high))
            axes.fill_between(
                ahead, below, above, color="C0", alpha=0.18, label=f"{100 * low:g} % to {100 * high:g} %", linewidth=0
            )
    axes.yaxis.set_major_formatter(EngFormatter())
    axes.set_xlabel("hours from now")
    axes.set_ylabel("rows / s")
    axes.set_ylim(bottom=0)
    axes.set_title(name, loc="left", fontsize="medium")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", frameon=False, loc="upper left")
    write_whole(figure, path)
