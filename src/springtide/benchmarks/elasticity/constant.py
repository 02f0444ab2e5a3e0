"""Case `constant`: a load that one host carries, for five minutes. Costs that are learned must not be taken for work."""

from __future__ import annotations

from springtide.benchmarks.elasticity.running import Trial, steps
from springtide.benchmarks.figures import Bar, Figure, figure
from springtide.benchmarks.spark.bed import Bed
from springtide.plan.policies.tide import Tide

CASE = "constant"
_ROWS_PER_S, _SETTLED_S = 40.0, 60.0


def measure(bed: Bed) -> list[Figure]:
    lasts_s = 120.0 if bed.quick else 300.0
    bed.say(f"{CASE}: {_ROWS_PER_S:g} rows/s for {lasts_s:.0f} s")
    result = Trial(trace=steps((_ROWS_PER_S,), lasts_s), policy=Tide()).run(bed, CASE)
    settled = [point for point in result.points if point.time_s > _SETTLED_S]
    return [
        figure(CASE, "most hosts from the second minute on", "hosts", [float(max(p.hosts for p in settled))], Bar(limit=1.0)),
        figure(CASE, "hosts on average", "hosts", [result.summary.mean_hosts]),
        figure(CASE, "rows later than 5 s", "%", [100 * result.summary.slo_violation_share]),
    ]
