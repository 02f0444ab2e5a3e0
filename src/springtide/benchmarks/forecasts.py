"""How long a forecast takes: of many sources at once, each with trained models of its own, and beside a process that trains.

Every interval of the models is over with every decision, which is the most there can be to do; the sources take turns then
(see `serving`). Models have learnt from made-up
days, a few of each kind; how good they are does not matter here, how large they are does.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from springtide.errors import SpringtideError
from springtide.forecast.models.arima import Arima
from springtide.forecast.models.auto import Auto
from springtide.forecast.models.bigru import BiGru
from springtide.forecast.models.boosted_lags import BoostedLags
from springtide.forecast.models.singles import RegisteredModel
from springtide.forecast.models.yesterday import Yesterday
from springtide.forecast.running.online import OnlineForecaster
from springtide.forecast.running.serving import Served, ServedForecaster
from springtide.forecast.trained import TrainedSeries
from springtide.model.allocation import Allocation
from springtide.model.observation import FloatArray, Latency, Observation
from springtide.model.windows import Scale, windows_of

SOURCES = 1000
FORECAST_BAR_MS = 50.0
# The median forecast while models are trained beside it, against the median without: two cores share the work of three.
BESIDE_TRAINING_BAR = 2.0

_INTERVAL_S = 300.0
_DAY = 288
_PAST, _FUTURE = 7 * _DAY, 32
_VARIANTS = 4
_RUNS, _QUICK_RUNS = 60, 10
_FIRST = 10  # forecasts that are not counted: each source has its first turn, and memory is allocated

_TRAIN_FOR_EVER = """
import os
os.nice(19)
from springtide.benchmarks.forecasts import train_for_ever
train_for_ever()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Milliseconds of one forecast of all sources."""

    case: str
    sources: int
    runs: int
    p50_ms: float
    p95_ms: float
    bar_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """`beside_training` is the median while a process trains, as a multiple of the median without."""

    python: str
    load_before: float
    results: list[Result]
    beside_training: float
    bars: dict[str, float]
    within_bars: bool


def measure(*, quick: bool = False, say: Callable[[str], None] = print) -> Report:
    load = os.getloadavg()[0]
    runs = _QUICK_RUNS if quick else _RUNS
    say("Training a few models")
    kinds = _learnt(quick=quick)
    results = []
    for name, members in kinds.items():
        say(f"A forecast of {SOURCES:,} sources: {name}")
        results.append(_timed(name, _served(members), runs))
    results.append(_timed("no models, the online forecast alone", OnlineForecaster(_INTERVAL_S), runs))
    say("The same beside a process that trains")
    everything = list(kinds)[-1]
    beside = _beside_training(_served(kinds[everything]), runs)
    alone = next(result for result in results if result.case == everything)
    results.append(beside)
    ratio = beside.p50_ms / alone.p50_ms
    return Report(
        python=platform.python_version(),
        load_before=load,
        results=results,
        beside_training=ratio,
        bars={"forecast_p95_ms": FORECAST_BAR_MS, "beside_training": BESIDE_TRAINING_BAR},
        within_bars=ratio <= BESIDE_TRAINING_BAR and all(r.bar_ms is None or r.p95_ms <= r.bar_ms for r in results),
    )


def table(report: Report) -> Table:
    shown = Table("forecast of all sources", "sources", "half of them within", "95 % within", "bar")
    for result in report.results:
        bar = "-" if result.bar_ms is None else f"{result.bar_ms:g} ms"
        shown.add_row(result.case, f"{result.sources:,}", f"{result.p50_ms:.1f} ms", f"{result.p95_ms:.1f} ms", bar)
    shown.caption = f"Beside training: {report.beside_training:.2f} times the median alone (bar {BESIDE_TRAINING_BAR:g})"
    return shown


def train_for_ever() -> None:
    """What a process does that trains anew, without an end."""
    series = _rates(60, seed=9)
    windows = windows_of(series, interval_s=_INTERVAL_S, past=_PAST, future=_FUTURE, stride=4)
    while True:
        BoostedLags().fit(windows, windows, 0)


def _learnt(*, quick: bool) -> dict[str, list[Auto]]:
    """Mixtures of more and more members, some variants of each."""
    found: dict[str, list[Auto]] = {"day before and ARIMA": [], "and boosted trees": []}
    if not quick:
        found["and BiGRU"] = []
    for seed in range(_VARIANTS):
        series = _rates(50, seed)
        train = windows_of(series[: 40 * _DAY], interval_s=_INTERVAL_S, past=_PAST, future=_FUTURE, stride=4)
        validation = windows_of(series[40 * _DAY - _PAST :], interval_s=_INTERVAL_S, past=_PAST, future=_FUTURE, stride=4)
        members: list[RegisteredModel] = [Yesterday().fit(train, validation, seed), Arima().fit(train, validation, seed)]
        for name, more in zip(found, ([], [BoostedLags()], [BiGru()]), strict=False):
            members += [model.fit(train, validation, seed) for model in more]  # type: ignore[attr-defined]
            found[name].append(Auto().of(members, validation))
    return found


def _rates(days: int, seed: int) -> FloatArray:
    chance = np.random.default_rng(seed)
    cycle = 0.5 + 0.4 * np.sin(np.arange(days * _DAY) * 2 * np.pi / _DAY)
    noisy: FloatArray = cycle + 0.05 * chance.normal(size=len(cycle))
    return noisy


def _served(mixtures: Sequence[Auto]) -> ServedForecaster:
    scale = Scale(low_per_s=0.0, high_per_s=1000.0, mean_per_s=500.0, deviation_per_s=280.0)
    found = []
    for number in range(SOURCES):
        name = f"source-{number}"
        series = TrainedSeries(
            name=name,
            interval_s=_INTERVAL_S,
            past=_PAST,
            future=_FUTURE,
            scale=scale,
            end="2000-01-01T00:00:00+00:00",
            models=(),
        )
        recent = 1000.0 * _rates(8, number)[-_PAST:]
        found.append(Served(source=name, series=series, auto=mixtures[number % len(mixtures)], recent_per_s=recent))
    forecaster = ServedForecaster(_INTERVAL_S)
    forecaster.use(found, {})
    return forecaster


def _timed(case: str, forecaster: Callable[[Observation], object], runs: int) -> Result:
    took_ms = []
    rates = 1000.0 * np.stack([_rates(2, number) for number in range(SOURCES)])
    for index in range(_FIRST + runs):
        seen = _observation(index, rates[:, index % rates.shape[1]])
        began_s = time.perf_counter()
        forecaster(seen)
        took_ms.append(1e3 * (time.perf_counter() - began_s))
    half, most = np.percentile(took_ms[_FIRST:], [50, 95])
    return Result(case=case, sources=SOURCES, runs=runs, p50_ms=float(half), p95_ms=float(most), bar_ms=FORECAST_BAR_MS)


def _beside_training(forecaster: ServedForecaster, runs: int) -> Result:
    with subprocess.Popen([sys.executable, "-c", _TRAIN_FOR_EVER]) as process:
        try:
            time.sleep(5.0)  # it imports what it trains with
            if process.poll() is not None:
                raise SpringtideError("the process that trains has ended at once: run this from an installed Springtide")
            timed = _timed("the last, beside a process that trains", forecaster, runs)
        finally:
            process.terminate()
    return Result(case=timed.case, sources=timed.sources, runs=runs, p50_ms=timed.p50_ms, p95_ms=timed.p95_ms, bar_ms=None)


def _observation(index: int, rates_per_s: FloatArray) -> Observation:
    nothing = Allocation(hosts=("host",), operators={})
    return Observation(
        index=index,
        start_s=index * _INTERVAL_S,
        end_s=(index + 1) * _INTERVAL_S,
        source_rows={f"source-{i}": float(rate) * _INTERVAL_S for i, rate in enumerate(rates_per_s)},
        operators={},
        hosts={},
        latency=Latency(),
        observed=nothing,
        requested=nothing,
        core_s=0.0,
        downtime_s=0.0,
        reconfigurations={},
    )
