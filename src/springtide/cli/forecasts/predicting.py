"""What the next intervals will bring, by a model that has been trained."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from springtide.cli.results import check_plot_path
from springtide.errors import SpringtideError
from springtide.forecast.mixing.calibration import LEVELS
from springtide.forecast.mixing.following import Following
from springtide.forecast.models.auto import Auto
from springtide.forecast.trained import TrainedSeries, open_trained
from springtide.model.observation import FloatArray
from springtide.report.units import count

SHOWN_LEVELS = (0.05, 0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    models: Path
    series: str | None
    model: str
    recent: Path | None
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """One interval that is to come: when it begins, and its rate; `quantiles` by level, of a model that knows them."""

    time: str
    rate_per_s: float
    quantiles: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    series: str
    model: str
    interval_s: float
    intervals: tuple[Interval, ...]


def predict(wishes: Wishes, *, plot: Path | None, as_json: bool) -> None:
    if plot is not None:
        check_plot_path(plot)
    trained = open_trained(wishes.models)
    series = _chosen(trained.series, wishes)
    if not 1 <= wishes.steps <= series.future:
        raise SpringtideError(
            f"--steps must be between 1 and {series.future}, which is how far the models look, not {wishes.steps}"
        )
    model = trained.load(series.name, wishes.model)
    recent, end = (
        _recent(wishes, series) if wishes.recent else (trained.recent(series.name), datetime.fromisoformat(series.end))
    )
    past = series.scale.scaled(recent[-series.past :])[None]
    levels: FloatArray | None = None
    if isinstance(model, Auto):
        said = np.stack([member.predict(past, wishes.steps) for member in model.members], axis=1)
        following = Following([model.known], wishes.steps)
        foreseen = following.says(said)
        mean, levels = foreseen.mean[0], series.scale.rates_per_s(foreseen.quantiles[0])
    else:
        mean = model.predict(past, wishes.steps)[0]
    prediction = _prediction(wishes.model, series, end, series.scale.rates_per_s(mean), levels)
    if plot is not None:
        from springtide.report.forecasts import plot_prediction  # matplotlib takes a second to import

        plot_prediction(series.name, recent, series.interval_s, series.scale.rates_per_s(mean), levels, plot)
    _show(prediction, as_json=as_json)


def _chosen(all_series: tuple[TrainedSeries, ...], wishes: Wishes) -> TrainedSeries:
    if wishes.series is None:
        if len(all_series) == 1:
            return all_series[0]
        raise SpringtideError(f"{wishes.models}: has models of {len(all_series)} series; choose one with --series")
    return open_trained(wishes.models).named(wishes.series)


def _recent(wishes: Wishes, series: TrainedSeries) -> tuple[FloatArray, datetime]:
    """The newest rates of a file, on the model's intervals."""
    from springtide.workload.loading import load

    trace = load(str(wishes.recent), seed=0)
    resampled = trace.resampled(series.interval_s)
    rates = resampled.counts / series.interval_s
    if len(rates) < series.past:
        raise SpringtideError(
            f"{wishes.recent}: has {len(rates):,} intervals of {series.interval_s:g} s, and models look back {series.past:,}"
        )
    start = datetime.fromisoformat(trace.start) if trace.start else datetime.fromisoformat(series.end)
    return rates, start + timedelta(seconds=resampled.duration_s)


def _prediction(model: str, series: TrainedSeries, end: datetime, mean: FloatArray, levels: FloatArray | None) -> Prediction:
    intervals = []
    for i, rate in enumerate(mean):
        quantiles = {} if levels is None else {f"{level:g}": float(levels[at, i]) for at, level in enumerate(LEVELS)}
        time = (end + timedelta(seconds=i * series.interval_s)).isoformat(timespec="seconds")
        intervals.append(Interval(time=time, rate_per_s=float(rate), quantiles=quantiles))
    return Prediction(series=series.name, model=model, interval_s=series.interval_s, intervals=tuple(intervals))


def _show(prediction: Prediction, *, as_json: bool) -> None:
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(prediction), indent=2).decode())
        return
    with_levels = bool(prediction.intervals[0].quantiles)
    table = Table(title=f"{prediction.series} by {prediction.model}, rows/s", title_justify="left")
    table.add_column("interval from")
    table.add_column("rate", justify="right")
    for level in SHOWN_LEVELS if with_levels else ():
        table.add_column(f"{100 * level:g} %", justify="right")
    for interval in prediction.intervals:
        quantiles = [count(interval.quantiles[f"{level:g}"]) for level in SHOWN_LEVELS] if with_levels else []
        table.add_row(interval.time, count(interval.rate_per_s), *quantiles)
    Console().print(table)
