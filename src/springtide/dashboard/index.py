"""What a dashboard keeps of a journal: a row of figures for each interval, and where each record stands in the file.

Bytes go in, in any number of pieces; nothing here opens a file. Records themselves are not kept: they are read again, one at a
time, when somebody looks at them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import msgspec
import numpy as np

from springtide.dashboard.parts import (
    ControlPart,
    DecisionPart,
    EndPart,
    ForecastPart,
    HostLoad,
    Kind,
    Number,
    ObservationPart,
    OutcomePart,
    Part,
    RunPart,
)
from springtide.dashboard.table import Table
from springtide.dashboard.work import Work
from springtide.errors import SpringtideError
from springtide.journal.controls import ControlRequest, followed
from springtide.journal.records import FORMAT
from springtide.model.steering import UNSTEERED

FIGURES = (
    "time_s",
    "start_s",
    "offered_per_s",
    "forecast_per_s",
    "forecast_low_per_s",
    "forecast_high_per_s",
    "capacity_per_s",
    "backlog_rows",
    "latency_p50_s",
    "latency_slo_s",
    "latency_p99_s",
    "hosts",
    "replicas",
    "utilisation",
    "core_h",
    "changed",
    "late_share",
    "cores",
    "core_s_per_row",
)
_KINDS = frozenset({"run", "observation", "decision", "outcome", "control", "end"})
_decoder: msgspec.json.Decoder[Part] = msgspec.json.Decoder(Part)
_UNKNOWN = (math.nan, math.nan, math.nan)


class DamagedJournal(SpringtideError):
    """A line that cannot be read, and what to do about it."""


class Totals:
    """Counts over the whole run."""

    def __init__(self) -> None:
        self.core_s = 0.0
        self.downtime_s = 0.0
        self.late_intervals = 0
        self.decisions = 0
        self.changes = 0
        self.vetoes = 0
        self.reconfigurations: Counter[str] = Counter()


class Index:
    """A journal as far as it has been read: `whole_bytes` of it, up to the end of a line."""

    def __init__(self) -> None:
        self.whole_bytes = 0
        self.lines = 0
        self.run: RunPart | None = None
        self.end: EndPart | None = None
        self.rows: Table[np.float64] = Table(FIGURES, np.float64)
        # An allocation that is as it was is left out of a record: `observed_at` is the row of the record that has it.
        self.places: Table[np.int64] = Table(("offset", "length", "interval", "observed_at", "requested_at"), np.int64)
        self.entries: Table[np.int64] = Table(("offset", "length", "interval", "shown", "control"), np.int64)
        self.outcomes: dict[int, tuple[int, int]] = {}  # of an entry: offset and length
        self.controls: list[ControlPart] = []
        self.steering = UNSTEERED
        self.totals = Totals()
        self.ahead: list[ForecastPart] = []  # the last decision's forecast
        self.work: Work | None = None
        self.hosts: list[HostLoad] = []  # of the newest interval
        self.left_at: int | None = None  # the newest row in whose interval rows left the application

    def __len__(self) -> int:
        return len(self.rows)

    def feed(self, block: bytes) -> None:
        """Take in the whole lines of a block that begins at `whole_bytes`. What follows the last newline is not looked at."""
        start = 0
        while (end := block.find(b"\n", start)) >= 0:
            self._line(block[start:end])
            self.lines += 1
            self.whole_bytes += end + 1 - start
            start = end + 1

    def row_of(self, interval: int) -> int | None:
        """The newest row of an interval."""
        rows = np.flatnonzero(self.places["interval"] == interval)
        return int(rows[-1]) if len(rows) else None

    def _line(self, line: bytes) -> None:
        if self.run is None:
            self._begin(line)
            return
        try:
            part = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if not _is_of_another_kind(line):
                raise DamagedJournal(f"line {self.lines + 1} is damaged ({error})") from error
            return
        if type(part) is ObservationPart:
            self._observation(part, len(line))
        elif type(part) is DecisionPart:
            self._decision(part, len(line))
        elif type(part) is OutcomePart:
            if len(self.entries):
                self.outcomes[self._last_decision] = (self.whole_bytes, len(line))
        elif type(part) is ControlPart:
            self._control(part, len(line))
        elif type(part) is EndPart:
            self.end = part
        else:
            raise DamagedJournal(f"line {self.lines + 1} is damaged (a second run begins there, and a journal holds one)")

    def _begin(self, line: bytes) -> None:
        try:
            kind = msgspec.json.decode(line, type=Kind)
        except (msgspec.DecodeError, UnicodeDecodeError):
            kind = Kind(kind="")
        if kind.kind != "run":
            raise DamagedJournal("this is not a journal: its first line is not a 'run' record")
        if kind.format > FORMAT:
            raise DamagedJournal(f"its format is {kind.format}, and this version reads up to {FORMAT}: upgrade springtide")
        try:
            self.run = msgspec.json.decode(line, type=RunPart)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DamagedJournal(f"line 1 is damaged ({error})") from error
        self.work = Work(self.run.application)

    def _observation(self, seen: ObservationPart, length: int) -> None:
        assert self.run is not None
        assert self.work is not None
        row, self.end = len(self.rows), None
        self._observed_at = row if seen.observed is not None else self._observed_at
        self._requested_at = row if seen.requested is not None else self._requested_at
        if self._observed_at is None or self._requested_at is None:
            raise DamagedJournal(f"line {self.lines + 1} is damaged (it leaves out an allocation that no earlier record has)")
        self.places.append((self.whole_bytes, length, seen.interval, self._observed_at, self._requested_at))
        self._count(seen)
        self.rows.append(self._figures(seen))

    def _count(self, seen: ObservationPart) -> None:
        assert self.run is not None
        totals = self.totals
        totals.core_s += seen.core_s or 0.0
        totals.downtime_s += seen.downtime_s or 0.0
        totals.late_intervals += (seen.latency.slo_s or 0.0) > self.run.application.slo.latency_s
        for done in seen.reconfigurations:
            totals.reconfigurations[done.kind] += done.count
        self.hosts = seen.hosts

    def _figures(self, seen: ObservationPart) -> tuple[float, ...]:
        """The row of an interval, in the order of `FIGURES`."""
        assert self.work is not None
        seconds = seen.end_s - seen.start_s
        source_rows = {source.name: source.rows or 0.0 for source in seen.sources}
        self.work.then(seen.operators, source_rows)
        per_row, latency = self.work.core_s_per_row, seen.latency
        any_left = (latency.rows or 0.0) > 0
        self.left_at = len(self.rows) if any_left else self.left_at
        hosts, backlog_rows, replicas = HostSums(seen.hosts), 0.0, 0
        for operator in seen.operators:
            backlog_rows += operator.backlog_rows or 0.0
            replicas += operator.replicas
        return (
            seen.end_s,
            seen.start_s,
            sum(source_rows.values()) / seconds,
            *foreseen(self.ahead, 0),
            hosts.running_cores / per_row if per_row > 0 else math.nan,
            backlog_rows,
            _or_nan(latency.p50_s) if any_left else math.nan,
            _or_nan(latency.slo_s) if any_left else math.nan,
            _or_nan(latency.p99_s) if any_left else math.nan,
            len(seen.hosts),
            replicas,
            hosts.mean_utilisation,
            self.totals.core_s / 3600,
            any(done.count for done in seen.reconfigurations),
            _or_nan(latency.violation_share) if any_left else math.nan,
            hosts.cores,
            per_row,
        )

    def _decision(self, made: DecisionPart, length: int) -> None:
        self.ahead = made.forecast
        self.totals.decisions += 1
        self.totals.changes += made.change is not None
        self.totals.vetoes += len(made.why_not)
        self._last_decision = len(self.entries)
        self.entries.append((self.whole_bytes, length, made.interval, made.change is not None, -1))

    def _control(self, control: ControlPart, length: int) -> None:
        asked = ControlRequest(do=control.do, operator=control.operator, host=control.host, replicas=control.replicas)
        self.steering = followed(self.steering, asked)
        self.entries.append((self.whole_bytes, length, control.interval, True, len(self.controls)))
        self.controls.append(control)

    _last_decision = 0
    _observed_at: int | None = None
    _requested_at: int | None = None


def foreseen(forecasts: Iterable[ForecastPart], step: int) -> tuple[float, float, float]:
    """Mean, low and high of all sources together, so many steps ahead; unknown if it is of one of them."""
    mean = low = high = 0.0
    known = False
    for forecast in forecasts:
        if step >= len(forecast.mean) or step >= len(forecast.low) or step >= len(forecast.high):
            return _UNKNOWN
        mean += _or_nan(forecast.mean[step])
        low += _or_nan(forecast.low[step])
        high += _or_nan(forecast.high[step])
        known = True
    return (mean, low, high) if known else _UNKNOWN


def _or_nan(value: Number) -> float:
    return math.nan if value is None else value


class HostSums:
    """Over all hosts, and over those that run."""

    __slots__ = ("cores", "mean_utilisation", "running_cores")

    def __init__(self, hosts: Iterable[HostLoad]) -> None:
        self.cores = self.running_cores = running = 0
        utilisation = 0.0
        for host in hosts:
            self.cores += host.cores
            if host.state == "running":
                running += 1
                self.running_cores += host.cores
                utilisation += host.utilisation or 0.0
        self.mean_utilisation = utilisation / running if running else math.nan


def _is_of_another_kind(line: bytes) -> bool:
    """A record that this version does not know is passed over: the format says so by keeping its number."""
    try:
        return msgspec.json.decode(line, type=Kind).kind not in _KINDS
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
