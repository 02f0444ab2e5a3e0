"""One live run of the micro-benchmark, each of whose rows occupies a slot for 10 ms without using a processor.

So four hosts fit on two cores: what is measured is how hosts are sized, not how fast this machine is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from springtide.applications.micro_benchmark.application import MicroBenchmark
from springtide.backends.spark.application import Application
from springtide.backends.spark.backend import SparkBackend
from springtide.backends.spark.fusion import pool_of
from springtide.benchmarks.spark.bed import CORES, MEMORY_MB, Bed
from springtide.errors import SpringtideError
from springtide.live import LiveResult, LiveRun
from springtide.model.application import SLO
from springtide.model.protocols import AnyPolicy, Recorder

ROW_S = 0.010


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A load for `policy`, with an objective and between how many hosts it may choose."""

    trace: str
    policy: AnyPolicy
    slo_s: float = 5.0
    hosts: tuple[int, int] = (1, 4)
    interval_s: float = 3.0

    def run(
        self,
        bed: Bed,
        name: str,
        recorders: Sequence[Recorder] = (),
        began: Callable[[SparkBackend], None] = lambda _: None,
    ) -> LiveResult:
        """Run until the trace is over, and compare every key with the right answer."""
        folder = bed.folder / name
        shipped = MicroBenchmark(trace=self.trace, waits=True, cost_us_per_tuple=ROW_S * 1e6, shuffles_per_minute=0.0)
        least, most = self.hosts
        live = LiveRun(
            application=_with_objective(shipped.application(folder), self.slo_s),
            pool=pool_of(CORES, MEMORY_MB * 2**20, least, most),
            policy=self.policy,
            policy_name=str(getattr(self.policy, "name", type(self.policy).__name__)),
            folder=str(folder),
            hosts=least,
            interval_s=self.interval_s,
        )
        result = live.run(bed.spark, recorders, until_drained=True, silence_s=10.0, began=began)
        for operator, why in result.failures.items():
            raise SpringtideError(f"{name}: operator {operator!r} has stopped: {why}")
        for checked in shipped.check(bed.spark, folder):
            if checked.wrong:
                raise SpringtideError(f"{name}: the answer is wrong: {checked}")
        return result


def _with_objective(application: Application, latency_s: float) -> Application:
    application.slo = SLO(latency_s=latency_s, percentile=application.slo.percentile)
    return application


def steps(levels: Sequence[float], hold_s: float) -> str:
    """The trace that holds one rate after the other.

    >>> steps([40, 180], 35)
    'generator:steps:levels=40/180,hold_s=35'
    """
    return f"generator:steps:levels={'/'.join(f'{level:g}' for level in levels)},hold_s={hold_s:g}"
