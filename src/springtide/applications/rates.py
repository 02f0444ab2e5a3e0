"""How many rows come when: a recording, or a generator, brought to the length and the peak of a run.

Of a recording the stretch is taken in which the rate varies most, as the experiments of PSPS do (section V-A 2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import springtide
from springtide.errors import require
from springtide.workload.loading import load
from springtide.workload.recordings import RECORDINGS, data_folder, recording_in

GENERATOR = "generator:"
_WITHOUT_RECORDING = "generator:bursty-day"
_STRETCHES_BEGIN_EVERY = 0.25  # of their length


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """`rates` is the name of a recording, or `generator:NAME[:PARAMETER=VALUE,...]`.

    A recording that is not in the data folder is replaced by a generated day with bursts. `duration_s` and
    `peak_rows_per_s` are of the replay's clock, on which `speed_up` seconds of the trace pass in one.
    """

    rates: str
    peak_rows_per_s: float
    duration_s: float
    speed_up: float
    seed: int

    def __post_init__(self) -> None:
        for what in ("peak_rows_per_s", "duration_s", "speed_up"):
            value = getattr(self, what)
            require(math.isfinite(value) and value > 0, f"{what} must be above 0, not {value}")
        require(self.seed >= 0, f"seed must be 0 or more, not {self.seed}")
        known = self.rates in RECORDINGS or self.rates.startswith(GENERATOR)
        require(known, f"rates must be the name of a recording or {GENERATOR}NAME, not {self.rates!r}; {_names()}")

    def trace(self) -> springtide.Trace:
        """Steps last at least a second of the replay: what is shorter is noise at such a pace."""
        whole = self._whole()
        whole = whole.resampled(self.speed_up) if whole.step_s < self.speed_up else whole
        return _liveliest(whole, self.duration_s * self.speed_up).scaled_to_peak(self.peak_rows_per_s / self.speed_up)

    def data(self) -> str:
        """Where the rates come from, for people."""
        rows = f"{self.trace().rows:,.0f} rows"
        if self.rates.startswith(GENERATOR):
            return f"rates from {self.rates}, seed {self.seed}: {rows}"
        file = RECORDINGS[self.rates].file
        if not self._recorded():
            return f"rates from {_WITHOUT_RECORDING}, seed {self.seed}: {rows}; no {file} in {data_folder()}"
        return f"rates from {file} ({self.rates}), its liveliest {self.duration_s * self.speed_up:,.0f} s: {rows}"

    def _recorded(self) -> bool:
        return self.rates in RECORDINGS and (data_folder() / RECORDINGS[self.rates].file).is_file()

    def _whole(self) -> springtide.Trace:
        if self._recorded():
            return recording_in(data_folder(), self.rates).read(data_folder())
        return load(self.rates if self.rates.startswith(GENERATOR) else _WITHOUT_RECORDING, seed=self.seed)


def _liveliest(trace: springtide.Trace, duration_s: float) -> springtide.Trace:
    """The stretch of that length whose counts vary most; the whole trace, if it is no longer."""
    if trace.duration_s <= duration_s:
        return trace
    length = max(1, math.ceil(duration_s / trace.step_s))
    begins = np.arange(0, trace.steps - length + 1, max(1, round(length * _STRETCHES_BEGIN_EVERY)))
    spreads = [float(np.std(trace.counts[begin : begin + length])) for begin in begins]
    begin = int(begins[int(np.argmax(spreads))])
    return trace.cut(begin * trace.step_s, (begin + length) * trace.step_s)


def _names() -> str:
    return f"known: {', '.join(sorted(RECORDINGS))}"
