"""Case `pacing`: what batches cost beside their rows, if they start as seldom as the objective allows, and if at once.

`tide` has two hosts and an objective of 10 s at a load that is far below what they can do. In every other window of the run its
trigger intervals are carried out; in the others batches follow one another at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from springtide.benchmarks.elasticity.running import Trial, steps
from springtide.benchmarks.figures import Bar, Figure, figure
from springtide.benchmarks.spark.bed import Bed
from springtide.model.decision import Decision
from springtide.model.observation import Observation
from springtide.model.protocols import View
from springtide.plan.policies.tide import Tide

CASE = "pacing"
_ROWS_PER_S, _SLO_S, _HOSTS = 30.0, 10.0, 2
_WINDOW_S, _SETTLING_S = 36.0, 9.0
_WARM_S = 60.0


@dataclass(frozen=True, kw_only=True)
class InTurns:
    """`tide`, whose trigger intervals are carried out in every other window; `seen` is what each window showed of each kind."""

    name: ClassVar[str] = "tide"
    looks_ahead: ClassVar[bool] = True

    tide: Tide = field(default_factory=Tide)
    seen: dict[bool, list[Observation]] = field(default_factory=lambda: {True: [], False: []})

    def start(self) -> Any:
        return self.tide.start()

    def decide(self, view: View, memory: Any) -> tuple[Decision, Any]:
        window, within_s = divmod(max(0.0, view.now_s - _WARM_S), _WINDOW_S)
        paced = window % 2 == 0
        if view.now_s > _WARM_S and within_s > _SETTLING_S + view.observation.interval_s:
            self.seen[paced].append(view.observation)
        decision, memory = self.tide.decide(view, memory)
        return decision if paced else replace(decision, trigger_s={}), memory


def measure(bed: Bed) -> list[Figure]:
    pairs = 1 if bed.quick else 4
    lasts_s = _WARM_S + 2 * pairs * _WINDOW_S
    bed.say(f"{CASE}: {pairs} pairs of windows, in {lasts_s / 60:.0f} minutes")
    policy = InTurns()
    Trial(trace=steps((_ROWS_PER_S,), lasts_s), policy=policy, slo_s=_SLO_S, hosts=(_HOSTS, _HOSTS)).run(bed, CASE)
    busy = {paced: [_busy_cores(seen) for seen in each] for paced, each in policy.seen.items()}
    late_s = {paced: [s.latency.slo_s for s in each if s.latency.rows > 0] for paced, each in policy.seen.items()}
    ratio = sum(busy[True]) / len(busy[True]) / (sum(busy[False]) / len(busy[False]))
    return [
        figure(CASE, "busy cores, batches at once", "cores", busy[False]),
        figure(CASE, "busy cores, batches as seldom as the objective allows", "cores", busy[True]),
        figure(CASE, "busy cores, seldom / at once", "x", [ratio], Bar(limit=1.0)),
        figure(CASE, "p90 latency, batches at once", "s", late_s[False]),
        figure(CASE, "p90 latency, batches as seldom as the objective allows", "s", late_s[True], Bar(limit=_SLO_S)),
    ]


def _busy_cores(seen: Observation) -> float:
    return sum(host.busy_share * host.cores for host in seen.hosts.values())
