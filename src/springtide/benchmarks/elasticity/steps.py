"""Case `steps`: a burst of 4.5 times the load, which one host carries before and after it and three to four carry meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from springtide.benchmarks.elasticity.running import Trial, steps
from springtide.benchmarks.figures import Bar, Figure, figure
from springtide.benchmarks.spark.bed import Bed
from springtide.errors import require
from springtide.plan.policies.tide import Tide
from springtide.report.summary import Point

CASE = "steps"
_LEVELS, _HOLD_S = (40.0, 40.0, 180.0, 180.0, 40.0, 40.0, 40.0), 35.0
_BURST_PER_S = 110.0  # between the two rates


def measure(bed: Bed) -> list[Figure]:
    rounds = 1 if bed.quick else 2
    hosts, late, until_one_s = [], [], []
    for turn in range(rounds):
        bed.say(f"{CASE}: run {turn + 1} of {rounds}, in some five minutes")
        result = Trial(trace=steps(_LEVELS, _HOLD_S), policy=Tide()).run(bed, f"{CASE}-{turn}")
        hosts.append(result.summary.mean_hosts)
        late.append(100 * result.summary.slo_violation_share)
        until_one_s.append(time_until_one_host_s(result.points))
        bed.say(f"{CASE}: {hosts[-1]:.2f} hosts on average, {late[-1]:.1f} % late, one host after {until_one_s[-1]:.0f} s")
    return [
        figure(CASE, "hosts on average", "hosts", hosts, Bar(limit=2.2)),
        figure(CASE, "rows later than 5 s", "%", late, Bar(limit=10.0)),
        figure(CASE, "from the end of the burst until one host is left", "s", until_one_s, Bar(limit=40.0)),
    ]


def time_until_one_host_s(points: Sequence[Point]) -> float:
    """From the end of the last interval of the burst; until the end of the run if more than one host is left then."""
    bursts = [i for i, p in enumerate(points) if p.offered_per_s > _BURST_PER_S]
    require(bool(bursts), "no interval of the run had the rate of the burst")
    over_s = points[bursts[-1]].time_s
    after = [p for p in points[bursts[-1] :] if p.hosts == 1]
    return (after[0].time_s if after else points[-1].time_s) - over_s
