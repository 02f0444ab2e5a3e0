"""All hosts together: all are relieved when they are too busy on average, the idlest goes when they are too idle.

T. Heinze, V. Pappalardo, Z. Jerzak, C. Fetzer, "Auto-scaling Techniques for Elastic Data Stream Processing", ICDE Workshops
2014, pp. 296-302, section IV.B; placement as in section II (see `thresholds.relocation` and `placement`). Symbols: see
`thresholds.judging`.

Departures from the paper:

* n and the grace period are not given there. They are 3 intervals and 60 s here (see `Thresholds`).
* The grace period is one per host, as with local thresholds: a host in it neither gives nor is released, but it may
  receive, and counts in the average.
* A host that is starting or being released, or that began to run in this interval, is not in the average.
* The amount of load to move is calculated for each host above the target utilisation: what is above it.
* FUGU's operators are single-threaded and stay as many as they are. Here a saturated operator gets more replicas, and
  one whose replicas would fit in fewer gets fewer (see `thresholds.resizing`).
* Further departures are said where they are made: `thresholds.relocation`, `placement.packing`, `placement.loads`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from springtide.model.decision import Decision
from springtide.model.protocols import View
from springtide.plan.thresholds.judging import AVERAGE, Marked, ThresholdMemory, Thresholds, after_change, counted, judged_hosts
from springtide.plan.thresholds.response import respond
from springtide.plan.thresholds.wording import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalThresholds(Thresholds):
    """Heinze et al. 2014, section IV.B: a threshold for the average of all running hosts.

    When the average is above `upper` for `consecutive` intervals, every host above `target` gives away what brings it
    there; when it is below `lower` for as many, the host with the least load is released if everything on it fits
    elsewhere. A host that gave, or is new, is left alone for `grace_s`.
    """

    name: ClassVar[str] = "global-thresholds"
    summary: ClassVar[str] = "adds hosts when all are too busy on average, releases the idlest when they are too idle"
    reference: ClassVar[str] = (
        "T. Heinze, V. Pappalardo, Z. Jerzak, C. Fetzer. Auto-scaling Techniques for Elastic Data Stream Processing. "
        "IEEE 30th International Conference on Data Engineering Workshops (ICDEW), 2014, pp. 296-302. Section IV.B."
    )

    def start(self) -> ThresholdMemory:
        return ThresholdMemory()

    def decide(self, view: View, memory: ThresholdMemory) -> tuple[Decision, ThresholdMemory]:
        memory = after_change(view, memory, self.grace_s)
        hosts = judged_hosts(view, memory)
        verdicts = {AVERAGE: self.verdict(_average(hosts))} if hosts else {}
        memory = replace(memory, streaks=counted(memory.streaks, verdicts))
        return respond(view, memory, self._mark(hosts, memory), self)

    def _mark(self, hosts: Mapping[str, float], memory: ThresholdMemory) -> Marked:
        if not hosts:
            return Marked(overloaded={}, underloaded={}, otherwise="no host has run for a whole interval yet")
        streak = memory.streaks.get(AVERAGE, 0)
        who = f"average of {plural(len(hosts), 'host')}"
        finding = self.finding(who, _average(hosts), streak)
        idlest = min(hosts, key=lambda host: (host in memory.grace_until_s, hosts[host]))
        return Marked(
            overloaded={h: f"{h} at {u:.2f}" for h, u in hosts.items() if streak >= self.consecutive and u > self.target},
            underloaded={idlest: f"{idlest} at {hosts[idlest]:.2f}"} if streak <= -self.consecutive else {},
            headline=finding,
            otherwise=f"hold: {finding}" if streak else self._calm(who, hosts),
        )

    def _calm(self, who: str, hosts: Mapping[str, float]) -> str:
        busiest = max(hosts, key=lambda host: hosts[host])
        return f"{who} at {_average(hosts):.2f} is {self.between()}: busiest {busiest} at {hosts[busiest]:.2f}"


def _average(hosts: Mapping[str, float]) -> float:
    return sum(hosts.values()) / len(hosts)
