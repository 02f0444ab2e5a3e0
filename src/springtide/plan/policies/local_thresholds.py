"""Each host by itself: relieved when it is too busy, released when it is nearly idle.

T. Heinze, V. Pappalardo, Z. Jerzak, C. Fetzer, "Auto-scaling Techniques for Elastic Data Stream Processing", ICDE Workshops
2014, pp. 296-302, section IV.A; placement as in section II (see `thresholds.relocation` and `placement`). Symbols: see
`thresholds.judging`.

Departures from the paper:

* n and the grace period are not given there. They are 3 intervals and 60 s here (see `Thresholds`).
* Which hosts rest is said in `thresholds.judging`. A host in its grace period is neither relieved nor released, but may
  receive.
* A host that is starting or being released, or that began to run in this interval, is not judged.
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
from springtide.plan.thresholds.judging import Marked, ThresholdMemory, Thresholds, after_change, counted, judged_hosts
from springtide.plan.thresholds.response import respond

_NAMED_HOSTS = 3  # a reason that lists more than these is not read


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalThresholds(Thresholds):
    """Heinze et al. 2014, section IV.A: a threshold for each host.

    A host above `upper` for `consecutive` intervals gives away what brings it to `target`; one below `lower` for as many
    is released if everything on it fits elsewhere. A host that gave, or is new, is left alone for `grace_s`.
    """

    name: ClassVar[str] = "local-thresholds"
    summary: ClassVar[str] = "relieves each host that is too busy, releases each that is nearly idle"
    reference: ClassVar[str] = (
        "T. Heinze, V. Pappalardo, Z. Jerzak, C. Fetzer. Auto-scaling Techniques for Elastic Data Stream Processing. "
        "IEEE 30th International Conference on Data Engineering Workshops (ICDEW), 2014, pp. 296-302. Section IV.A."
    )

    def start(self) -> ThresholdMemory:
        return ThresholdMemory()

    def decide(self, view: View, memory: ThresholdMemory) -> tuple[Decision, ThresholdMemory]:
        memory = after_change(view, memory, self.grace_s)
        hosts = judged_hosts(view, memory)
        streaks = counted(memory.streaks, {host: self.verdict(utilisation) for host, utilisation in hosts.items()})
        return respond(view, replace(memory, streaks=streaks), self._mark(hosts, streaks), self)

    def _mark(self, hosts: Mapping[str, float], streaks: Mapping[str, int]) -> Marked:
        findings = {host: self.finding(host, hosts[host], streak) for host, streak in streaks.items()}
        underloaded = [host for host, streak in streaks.items() if streak <= -self.consecutive]
        return Marked(
            overloaded={host: findings[host] for host, streak in streaks.items() if streak >= self.consecutive},
            underloaded={host: findings[host] for host in sorted(underloaded, key=lambda h: hosts[h])},
            otherwise=self._calm(hosts, list(findings.values())),
        )

    def _calm(self, hosts: Mapping[str, float], findings: list[str]) -> str:
        if not hosts:
            return "no host has run for a whole interval yet"
        if findings:
            more = f" and {len(findings) - _NAMED_HOSTS} more" if len(findings) > _NAMED_HOSTS else ""
            return f"hold: {', '.join(findings[:_NAMED_HOSTS])}{more}"
        busiest = max(hosts, key=lambda host: hosts[host])
        if len(hosts) == 1:
            return f"{busiest} at {hosts[busiest]:.2f} is {self.between()}"
        return f"all {len(hosts)} hosts {self.between()}: busiest {busiest} at {hosts[busiest]:.2f}"
