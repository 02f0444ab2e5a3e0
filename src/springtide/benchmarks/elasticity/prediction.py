"""Case `prediction`: the latency that follows from learned costs, beside the measured one, for rates and numbers of hosts.

A prediction is made when the window begins in which latency is measured: with what `tide` had learned by then, at other rates
and on other hosts, for the rate that comes in the window. Batches follow one another at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from springtide.backends.spark.backend import SparkBackend
from springtide.backends.spark.query import BatchRecord
from springtide.benchmarks.elasticity.running import Trial, steps
from springtide.benchmarks.figures import Bar, Figure, figure
from springtide.benchmarks.spark.bed import Bed
from springtide.errors import require
from springtide.model.decision import Decision
from springtide.model.observation import FloatArray
from springtide.model.protocols import View
from springtide.plan.horizon.work import coming_work
from springtide.plan.placement.counts import allocate
from springtide.plan.placement.sharing import sharing_replicas
from springtide.plan.sizing.batches import BatchModel
from springtide.plan.tide.learning import TideMemory, learned

CASE = "prediction"
_PERCENTILE = 0.9
_WITHIN = 0.25
# Hosts and rows/s, up to about three quarters of what the hosts can do. The first is for learning, and not counted.
_COMBINATIONS = (
    *((1, 30.0), (1, 20.0), (1, 45.0), (1, 35.0), (2, 40.0), (2, 90.0)),
    *((3, 50.0), (3, 140.0), (4, 60.0), (4, 120.0), (4, 190.0)),
)
_HOLD_S, _SETTLING_S = 48.0, 24.0  # a new host needs about 12 s


@dataclass
class Stretch:
    """One combination: what was predicted as its window began, and what was measured in it."""

    hosts: int
    begins_s: float
    ends_s: float
    model: BatchModel | None = None
    bias: float = 1.0
    ages_s: list[FloatArray] = field(default_factory=list)
    rows: list[FloatArray] = field(default_factory=list)

    @property
    def measured_s(self) -> float:
        ages, rows = np.concatenate(self.ages_s), np.concatenate(self.rows)
        order = np.argsort(ages)
        reached = np.cumsum(rows[order]) >= _PERCENTILE * rows.sum()
        return float(ages[order][int(reached.argmax())])

    @property
    def rows_per_s(self) -> float:
        return float(np.concatenate(self.rows).sum()) / (self.ends_s - self.begins_s)

    @property
    def predicted_s(self) -> float:
        assert self.model is not None
        total = float(self.model.rows_per_s.sum())
        slots = np.array([float(self.hosts)])
        return self.bias * float(self.model.latency_s(_PERCENTILE, slots, self.rows_per_s / total)[0])


@dataclass(eq=False)
class Timetable:
    """A policy that has as many hosts as its stretch says, and notes the latencies of rows. Times are the trace's."""

    name: ClassVar[str] = "timetable"

    stretches: list[Stretch]

    def __post_init__(self) -> None:
        self._trace_from_s = math.inf  # by everybody's calendar
        self._backend: SparkBackend | None = None

    def began(self, backend: SparkBackend) -> None:
        self._backend = backend
        backend.told_of_batch = self._batch

    def _batch(self, _operator: str, record: BatchRecord, _tasks: object) -> None:
        times_s = record.ingested.times_s
        if not len(times_s):
            return
        if math.isinf(self._trace_from_s):
            self._trace_from_s = float(times_s.min())
        for stretch in self.stretches:
            within = (times_s >= self._trace_from_s + stretch.begins_s) & (times_s < self._trace_from_s + stretch.ends_s)
            if within.any():
                stretch.ages_s.append(record.ingested.ages_s(record.finished_s)[within])
                stretch.rows.append(record.ingested.rows[within])

    def start(self) -> TideMemory:
        return TideMemory()

    def decide(self, view: View, memory: TideMemory) -> tuple[Decision, TideMemory]:
        assert self._backend is not None
        memory = learned(view, memory, coming_work(view, 1), 1 - _PERCENTILE)
        now_s = self._backend.clock.epoch_s(view.now_s) - self._trace_from_s
        held = [s for s in self.stretches if now_s >= s.begins_s - _SETTLING_S] or self.stretches[:1]
        stretch = held[-1]
        if now_s >= stretch.begins_s and stretch.model is None:
            model = BatchModel.of(view)
            stretch.model = None if model is None else replace(model, trigger_s=0.0)
            stretch.bias = memory.bias
        hosts = stretch.hosts
        if hosts == len(view.requested.hosts):
            return Decision(planned=view.requested, reason=f"the timetable has {hosts} hosts"), memory
        planned = allocate(view, sharing_replicas(view, hosts), hosts)
        return Decision(planned=planned, reason=f"the timetable has {hosts} hosts from now on"), memory


def measure(bed: Bed) -> list[Figure]:
    combinations = _COMBINATIONS[:4] if bed.quick else _COMBINATIONS
    stretches = [
        Stretch(hosts=hosts, begins_s=i * _HOLD_S + _SETTLING_S, ends_s=(i + 1) * _HOLD_S)
        for i, (hosts, _) in enumerate(combinations)
    ]
    timetable = Timetable(stretches)
    bed.say(f"{CASE}: {len(combinations)} combinations of rate and hosts, in {len(combinations) * _HOLD_S / 60:.0f} minutes")
    trace = steps([rate for _, rate in combinations], _HOLD_S)
    Trial(trace=trace, policy=timetable, slo_s=60.0).run(bed, CASE, began=timetable.began)
    figures, within = [], []
    for stretch, (hosts, rate) in list(zip(stretches, combinations, strict=True))[1:]:
        known = stretch.model is not None and bool(stretch.rows)
        require(known, f"{CASE}: nothing was measured at {rate:g} rows/s on {hosts} hosts")
        ratio = stretch.predicted_s / stretch.measured_s
        within.append(abs(ratio - 1) <= _WITHIN)
        what = f"{rate:g} rows/s on {hosts} host{'s' * (hosts > 1)}: predicted p90 / measured ({stretch.measured_s:.2f} s)"
        figures.append(figure(CASE, what, "x", [ratio]))
        bed.say(f"{CASE}: {what}: {ratio:.2f}")
    share = sum(within) / len(within)
    return [*figures, figure(CASE, "predictions within 25 %", "of all", [share], Bar(limit=0.8, at_least=True))]
