"""The paper's three kinds of load, and the windows that models learn from and are judged by.

The periodic and the fluctuating load are the paper's own recordings where they are at hand, and made up in the same shape
where they are not. The stable load was not published, and is always made up.

Rules: what was not recorded is filled as the forecasting pipeline fills it, learnt by nobody as a future rate, and judges
nobody. Parts, lengths and scales are those of the pipeline, so that errors here are errors there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from springtide.errors import SpringtideError
from springtide.forecast.pipeline.filling import filled_rates
from springtide.forecast.pipeline.parts import Bounds, Lengths, Part, lengths_for, usual_split
from springtide.forecast.pipeline.windowing import origins_in
from springtide.model.observation import FloatArray
from springtide.model.windows import Scale, Windows
from springtide.workload.generators import bursty_day, day_cycle, stable_stand_in
from springtide.workload.recordings import data_folder, recording_in
from springtide.workload.tables import open_table
from springtide.workload.traces import Trace

RECORDED, MADE_UP = "recorded", "made up"
LOADS = ("stable", "periodic", "fluctuating")
SERIES: Mapping[str, str] = {
    "stable": "stable-stand-in",
    "periodic": "bgelasor-periodic",
    "fluctuating": "bgelasor-fluctuating",
}

_MOST_WINDOWS = 4_000
_DAYS = 60
_START = "2024-01-01T00:00:00"
_LEVEL_SPREAD = 0.4  # of the logarithms of a made-up fluctuating load's weekly levels


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Load:
    """Rates of one source, interval after interval; `filled` tells which were made up to close a gap."""

    name: str
    origin: str
    interval_s: float
    start: str
    rates_per_s: FloatArray
    filled: NDArray[np.bool_]

    @property
    def bounds(self) -> Bounds:
        """40 days to train, 10 to validate, the rest to test, as in the paper."""
        return usual_split(len(self.rates_per_s), self.interval_s).bounds(len(self.rates_per_s), self.interval_s)

    @property
    def lengths(self) -> Lengths:
        return lengths_for(self.bounds, self.interval_s, None, None)

    @property
    def scale(self) -> Scale:
        learnt = slice(0, self.bounds.validation)
        recorded = self.rates_per_s[learnt][~self.filled[learnt]]
        return Scale(
            low_per_s=float(recorded.min()),
            high_per_s=float(recorded.max()),
            mean_per_s=float(recorded.mean()),
            deviation_per_s=float(recorded.std()),
        )

    def with_mean(self, rows_per_s: float) -> Load:
        """The same shape with another mean rate."""
        return replace(self, rates_per_s=self.rates_per_s * (rows_per_s / float(self.rates_per_s.mean())))

    def windows(self, part: Part) -> Windows:
        origins = origins_in(self.bounds, part, self.lengths, _MOST_WINDOWS)
        # The pipeline keeps windows as 32-bit numbers.
        scaled = self.scale.scaled(self.rates_per_s).astype(np.float32).astype(np.float64)
        known = np.where(self.filled, np.nan, scaled)
        return Windows(
            interval_s=self.interval_s,
            origins=origins,
            past=scaled[origins[:, None] + np.arange(1 - self.lengths.past, 1)],
            future=known[origins[:, None] + np.arange(1, self.lengths.future + 1)],
        )

    def begin_of(self, interval: int) -> str:
        """When an interval begins, as an ISO time in UTC."""
        start = datetime.fromisoformat(self.start).replace(tzinfo=UTC)
        return (start + timedelta(seconds=interval * self.interval_s)).isoformat()


def load_named(name: str) -> Load:
    """One of `LOADS`: as it was recorded if the recording is there, else made up."""
    if name == "stable":
        return _made_up(name, stable_stand_in(seed=0))
    folder = data_folder()
    try:
        recording = recording_in(folder, SERIES[name])
    except SpringtideError:
        return _made_up(name, _periodic() if name == "periodic" else _fluctuating())
    return _recorded(name, folder / recording.file, recording.read(folder))


def _recorded(name: str, file: Path, trace: Trace) -> Load:
    """A trace has straight lines where nothing was recorded; the file itself tells where."""
    table = open_table(file)
    times = table.column(table.names.index("timestamp")).times()
    filled = np.ones(trace.steps, np.bool_)
    filled[np.rint(times.offsets_s / trace.step_s).astype(np.int64)] = False
    rates = np.where(filled, np.nan, trace.counts / trace.step_s)
    return Load(
        name=name,
        origin=RECORDED,
        interval_s=trace.step_s,
        start=trace.start or _START,
        rates_per_s=filled_rates(rates, trace.step_s),
        filled=filled,
    )


def _made_up(name: str, trace: Trace) -> Load:
    return Load(
        name=name,
        origin=MADE_UP,
        interval_s=trace.step_s,
        start=_START,
        rates_per_s=trace.counts / trace.step_s,
        filled=np.zeros(trace.steps, np.bool_),
    )


def _periodic() -> Trace:
    return day_cycle(seed=0, noise=0.1, days=_DAYS, step_s=300.0)


def _fluctuating() -> Trace:
    """Days with bursts and a flash crowd each, at a level that another week changes."""
    levels = np.exp(_LEVEL_SPREAD * np.random.default_rng(0).standard_normal(-(-_DAYS // 7)))
    days = [bursty_day(seed=day).resampled(600.0).counts * levels[day // 7] for day in range(_DAYS)]
    return Trace(name="fluctuating", step_s=600.0, counts=np.concatenate(days))
