"""What is run twice, live and simulated: an application, the rows it is offered, and who is in charge.

Every row of the micro-benchmark waits, as for a service, so that few cores are no narrower than the executors on them.

What can be compared is where the same cause has about the same effect twice. A policy that is overloaded at once chases a
backlog, and does one thing or another by chance, live as simulated. With 60 to 450 rows/s in one step, local thresholds were
off by 7 to 15 % in replicas and by 19 to 23 % in latency in four runs; with 100 to 500 rows/s and windows of 8 s, DS2 had 2.9
and 3.7 replicas on average in two live runs. So loads rise by what hosts can carry until more are there, and DS2 measures for
longer than batches take.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from springtide.applications import registry
from springtide.applications.shipped import ShippedApplication

_WAITING = {"waits": True, "cost_us_per_tuple": 3000.0, "max_rows_per_batch": 1200, "keys": 2000, "buckets": 16}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """`options` are the application's; with those of `calibration` it is the short run that the simulator learns from."""

    name: str
    application: str
    options: Mapping[str, object]
    calibration: Mapping[str, object]
    policy: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    max_rows_per_batch: int = 1200

    def shipped(self, *, calibrating: bool) -> ShippedApplication:
        return registry.kind(self.application)(**{**self.options, **(self.calibration if calibrating else {})})


# Up and down within seconds, so that batches of all sizes, from a few rows to full ones, are seen with each number of replicas.
_LEARNING = {"trace": "generator:steps:levels=10/60/350/20/450/30/200/450/30/300/20/500/60/150/10,hold_s=6.5"}

PAIRS = (
    Pair(
        name="steps",
        application="micro-benchmark",
        options={**_WAITING, "trace": "generator:steps:levels=80/240/80/240,hold_s=40"},
        calibration=_LEARNING,
        policy="local-thresholds",
        parameters={"upper": 0.6, "target": 0.5, "lower": 0.2, "consecutive": 2, "grace_s": 6.0},
    ),
    Pair(
        name="waves",
        application="micro-benchmark",
        options={**_WAITING, "trace": "generator:steps:levels=60/120/180/240/180/120/60,hold_s=20", "zipf": 0.0},
        calibration=_LEARNING,
        policy="ds2",
        # The autoscaler's windows are quarters of an hour, the run takes minutes.
        parameters={
            "metrics_window_s": 16.0,
            "stabilisation_interval_s": 2.0,
            "scale_down_interval_s": 15.0,
            "catch_up_duration_s": 20.0,
            "restart_time_s": 2.0,
            "backlog_lag_threshold_s": 60.0,
        },
    ),
    Pair(
        name="requests",
        application="dns",
        options={"rates": "generator:bursty-day", "peak_rows_per_s": 1500.0, "duration_s": 120.0},
        calibration={"duration_s": 90.0, "seed": 11},
        policy="global-thresholds",
        max_rows_per_batch=2000,
    ),
)
