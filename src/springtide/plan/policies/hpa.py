"""Kubernetes' HorizontalPodAutoscaler on a Deployment of executors: as many as bring their mean CPU utilisation to a target.

What a user gets who puts Spark's executors, or any workers, into a Deployment and writes a HorizontalPodAutoscaler for it. A
pod is a host here. Kubernetes documentation, "Horizontal Pod Autoscaling", section "Algorithm details"; source:
`pkg/controller/podautoscaler/replica_calculator.go` (`GetResourceReplicas`, `groupPods`), `horizontal.go`
(`stabilizeRecommendationWithBehaviors`, `calculateScaleUpLimitWithScalingRules`), defaults in
`pkg/apis/autoscaling/v2/defaults.go` and `pkg/controller/podautoscaler/config/v1alpha1/defaults.go`.

| Kubernetes | here | default | unit |
|---|---|---|---|
| target.averageUtilization | `target_utilisation` | 0.8 | share of the cores |
| --horizontal-pod-autoscaler-tolerance | `tolerance` | 0.1 | share |
| scaleDown.stabilizationWindowSeconds | `scale_down_window_s` | 300 | s |
| scaleUp.policies: Percent | `scale_up_percent` | 100 | % per period |
| scaleUp.policies: Pods | `scale_up_hosts` | 4 | hosts per period |
| scaleUp.policies: periodSeconds | `scale_up_period_s` | 15 | s |
| minReplicas, maxReplicas | the pool's `min_hosts`, `max_hosts` | | hosts |

A host that is starting is a pending pod, and one that began to run within the interval is not ready: its utilisation says
nothing, and when the others ask for more it counts as idle. A host being released is a pod being deleted: not counted. A
host that was lost is replaced at once, as a Deployment does.

Departures:

* It decides once per control interval, not every 15 s, and utilisation is the interval's, not the metrics server's.
* Utilisation is not rounded down to whole percents, and of the cores there are, not of a request.
* A host is ready once it has run for a whole interval, which stands for the initial readiness delay and the CPU
  initialisation period. Every pod has metrics, so there are no missing ones.
* `scaleUp.stabilizationWindowSeconds` and the scale-down policy are at their defaults, which limit nothing (0 s; all pods
  within 15 s).
* Pods know nothing of operators. Here operators share the cores there are by demand (see `placement.sharing`), also while
  the number of hosts stays.
* Hosts that go are the idlest (see `placement.counts`); a ReplicaSet takes them by age and by node.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from springtide.errors import require
from springtide.model.allocation import Pool
from springtide.model.decision import Decision, Expectation, WhyNot
from springtide.model.observation import HostState
from springtide.model.protocols import View
from springtide.plan.placement.counts import allocate
from springtide.plan.placement.filling import busiest_utilisation
from springtide.plan.placement.sharing import sharing_replicas, short_of_replicas
from springtide.plan.thresholds.wording import plural

_ROUNDING = 1e-9  # what a quotient of two rounded numbers may be off by


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaMemory:
    """What the autoscaler remembers: the Deployment's number of pods, and what led to it.

    `running` are the hosts that ran when the last interval ended (None before the first, when those that run are taken to
    have been there); `recommended` and `added` hold a time and a number of hosts each, oldest first.
    """

    hosts: int | None = None
    running: frozenset[str] | None = None
    recommended: tuple[tuple[float, int], ...] = ()
    added: tuple[tuple[float, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pods:
    """The utilisation of the ready ones, how many are not ready yet, and how many the Deployment should have."""

    ready: Sequence[float]
    unready: int
    current: int

    @property
    def utilisation(self) -> float:
        return sum(self.ready) / len(self.ready)


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizontalPodAutoscaler:
    """`hosts * utilisation / target_utilisation` hosts, rounded up.

    Nothing changes while that quotient is within `tolerance` of 1. Hosts fall only to the most that was recommended within
    `scale_down_window_s`, and grow within `scale_up_period_s` by at most `scale_up_percent` or `scale_up_hosts`, whichever
    is more.
    """

    name: ClassVar[str] = "hpa"
    summary: ClassVar[str] = "as many hosts as bring their mean utilisation to a target, as Kubernetes does"
    reference: ClassVar[str] = (
        "The Kubernetes Authors. Horizontal Pod Autoscaling. Kubernetes documentation, "
        "https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/. Section Algorithm details."
    )

    target_utilisation: float = 0.8
    tolerance: float = 0.1
    scale_down_window_s: float = 300.0
    scale_up_percent: float = 100.0
    scale_up_hosts: int = 4
    scale_up_period_s: float = 15.0

    def __post_init__(self) -> None:
        require(
            0 < self.target_utilisation <= 1,
            f"{self.name}: target_utilisation must be above 0 and at most 1, not {self.target_utilisation}",
        )
        require(self.scale_up_hosts >= 1, f"{self.name}: scale_up_hosts must be at least 1, not {self.scale_up_hosts}")
        for what in ("tolerance", "scale_down_window_s", "scale_up_percent", "scale_up_period_s"):
            value = getattr(self, what)
            require(math.isfinite(value) and value >= 0, f"{self.name}: {what} must be 0 or more, not {value}")

    def start(self) -> HpaMemory:
        return HpaMemory()

    def decide(self, view: View, memory: HpaMemory) -> tuple[Decision, HpaMemory]:
        pods = _pods(view, memory)
        # The controller begins with the size it finds, so that nothing goes before it has watched for a whole window.
        memory = replace(memory, recommended=memory.recommended or ((view.observation.start_s, pods.current),))
        wanted = self.desired(pods)
        memory = self._remembering(view, memory, wanted)
        stable = wanted if wanted >= pods.current else min(pods.current, max(n for _, n in memory.recommended))
        limit = self._scale_up_limit(pods.current, memory)
        hosts = _within(view.pool, min(stable, limit))
        if hosts > pods.current:
            memory = replace(memory, added=(*memory.added, (view.now_s, hosts - pods.current)))
        memory = replace(memory, hosts=hosts, running=frozenset(h.name for h in view.observation.running_hosts))
        return self._decision(view, pods, hosts, self._why_not(view.pool, pods, wanted, stable, limit)), memory

    def desired(self, pods: Pods) -> int:
        """How many pods the utilisation asks for (`GetResourceReplicas`)."""
        if not pods.ready:
            return pods.current
        ratio = pods.utilisation / self.target_utilisation
        counted = len(pods.ready)
        if pods.unready and ratio > 1:
            # Pods that are not ready count as idle when it is about growing: they will take their part.
            counted += pods.unready
            ratio *= len(pods.ready) / counted
            if ratio < 1:
                return pods.current
        if abs(1 - ratio) <= self.tolerance + _ROUNDING:
            return pods.current
        wanted = math.ceil(ratio * counted - _ROUNDING)
        return max(wanted, pods.current) if ratio > 1 else max(wanted, 1)

    def _remembering(self, view: View, memory: HpaMemory, wanted: int) -> HpaMemory:
        """With the new recommendation, without what is too old: what is as old as the window does not count any more."""
        recommended = (*memory.recommended, (view.now_s, wanted))
        return replace(
            memory,
            recommended=tuple(r for r in recommended if r[0] > view.now_s - self.scale_down_window_s) or recommended[-1:],
            added=tuple(a for a in memory.added if a[0] > view.now_s - self.scale_up_period_s),
        )

    def _scale_up_limit(self, current: int, memory: HpaMemory) -> int:
        before = current - sum(n for _, n in memory.added)
        doubled = math.ceil(before * (1 + self.scale_up_percent / 100) - _ROUNDING)
        return max(before + self.scale_up_hosts, doubled, current)

    def _decision(self, view: View, pods: Pods, hosts: int, why_not: tuple[WhyNot, ...]) -> Decision:
        present = len(view.requested.hosts)
        dealt_anew = hosts != present or short_of_replicas(view, hosts)
        replicas = sharing_replicas(view, hosts) if dealt_anew else None
        planned = view.requested if replicas is None else allocate(view, replicas, hosts)
        if not pods.ready:
            finding = "no host has run for a whole interval yet"
        else:
            finding = (
                f"mean of {plural(len(pods.ready), 'host')} at {pods.utilisation:.2f}, target {self.target_utilisation:.2f}"
            )
        if hosts != present:
            verdict = f"{present} -> {hosts} hosts"
        else:
            verdict = f"keep {plural(hosts, 'host')}" + ("" if replicas is None else ", deal their cores anew")
        return Decision(
            planned=planned,
            reason=f"{finding}: {verdict}",
            expected=Expectation(utilisation=busiest_utilisation(view, planned)),
            why_not=why_not,
        )

    def _why_not(self, pool: Pool, pods: Pods, wanted: int, stable: int, limit: int) -> tuple[WhyNot, ...]:
        refused = []
        if stable > wanted:
            refused.append((wanted, f"up to {stable} were recommended within {self.scale_down_window_s:.0f} s"))
        if stable > limit:
            rule = f"{self.scale_up_percent:.0f} % or {self.scale_up_hosts} hosts"
            refused.append((stable, f"growth is limited to {rule} within {self.scale_up_period_s:.0f} s"))
        if _within(pool, min(stable, limit)) != min(stable, limit):
            refused.append((min(stable, limit), f"the pool has between {pool.min_hosts} and {pool.max_hosts}"))
        return tuple(WhyNot(self.name, f"{pods.current} -> {plural(hosts, 'host')}", why) for hosts, why in refused)


def _pods(view: View, memory: HpaMemory) -> Pods:
    seen = view.observation.hosts
    present = view.requested.hosts
    ready = [
        seen[host].utilisation
        for host in present
        if host in seen and seen[host].state is HostState.RUNNING and (memory.running is None or host in memory.running)
    ]
    leaving = sum(host in seen and seen[host].state is HostState.RELEASING for host in present)
    current = _within(view.pool, len(present) if memory.hosts is None else memory.hosts)
    return Pods(ready=ready, unready=max(len(present), current) - len(ready) - leaving, current=current)


def _within(pool: Pool, hosts: int) -> int:
    return min(max(hosts, pool.min_hosts), pool.max_hosts)
