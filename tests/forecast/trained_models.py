"""A folder of small trained models, made without training: a day cycle in intervals of an hour."""

from pathlib import Path

import numpy as np

from springtide.forecast.models.auto import Auto
from springtide.forecast.models.yesterday import Yesterday
from springtide.forecast.storage import encoded
from springtide.forecast.trained import Trained, TrainedModel, TrainedSeries, recent_file, weights_file, write_trained
from springtide.model.allocation import Allocation
from springtide.model.observation import Latency, Observation
from springtide.model.windows import Scale, windows_of

INTERVAL_S = 3600.0
PAST_DAYS = 2
FUTURE = 24
END = "2024-05-01T00:00:00+00:00"

_LOW, _HIGH = 20.0, 180.0


def day_cycle(days: int, noise: float = 0.0, seed: int = 0) -> np.ndarray:
    """Rows per second, from 20 at night to 180 at noon."""
    hours = np.arange(24 * days)
    chance = np.random.default_rng(seed).normal(size=len(hours))
    return np.maximum(0.0, 100.0 - 80.0 * np.cos(hours * 2 * np.pi / 24) * (1 + noise * chance))


def scale() -> Scale:
    rates = day_cycle(10)
    return Scale(low_per_s=_LOW, high_per_s=_HIGH, mean_per_s=float(rates.mean()), deviation_per_s=float(rates.std()))


def mixture(lag: int = 24) -> Auto:
    """The last value, and the rate of `lag` hours ago."""
    validation = windows_of(scale().scaled(day_cycle(10, 0.1)), interval_s=INTERVAL_S, past=24 * PAST_DAYS, future=FUTURE)
    return Auto().of([Yesterday(cycle=lag)], validation)


def trained_folder(folder: Path, series: list[str]) -> Path:
    """Models of these series, all alike."""
    for name in series:
        file = weights_file(folder, name, "auto", 0)
        file.parent.mkdir(parents=True)
        file.write_bytes(encoded(mixture()))
        np.save(recent_file(folder, name), day_cycle(PAST_DAYS))
    write_trained(
        Trained(
            folder=folder,
            prepared="prepared",
            at=END,
            series=tuple(
                TrainedSeries(
                    name=name,
                    interval_s=INTERVAL_S,
                    past=24 * PAST_DAYS,
                    future=FUTURE,
                    scale=scale(),
                    end=END,
                    models=(TrainedModel(model="auto", repetition=0, seconds=1.0),),
                )
                for name in series
            ),
        )
    )
    return folder


def observation(index: int, rates_per_s: dict[str, float], interval_s: float = INTERVAL_S) -> Observation:
    nothing = Allocation(hosts=("host-0",), operators={})
    return Observation(
        index=index,
        start_s=index * interval_s,
        end_s=(index + 1) * interval_s,
        source_rows={name: rate * interval_s for name, rate in rates_per_s.items()},
        operators={},
        hosts={},
        latency=Latency(),
        observed=nothing,
        requested=nothing,
        core_s=0.0,
        downtime_s=0.0,
        reconfigurations={},
    )
