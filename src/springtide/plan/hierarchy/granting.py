"""Which of the operators' requests are granted: a token each, the best ratio of gain to cost first.

V. Cardellini, F. Lo Presti, M. Nardelli, G. Russo Russo, "Towards Hierarchical Autonomous Control for Elastic Data Stream
Processing in the Fog", Euro-Par 2017 Workshops: the global policy of section 3.2 with the settings of section 4.

| symbol | here | unit |
|---|---|---|
| T, control interval | `view.observation.interval_s` | s |
| bucket capacity | `capacity` | tokens |
| token generation rate above beta R_max | `tokens_per_minute` | 1/min |
| token generation rate below it | `calm_tokens_per_minute` | 1/min |
| beta | `beta` | share of R_max, 0 to 1 |
| R_max | `view.application.slo.latency_s` | s |
| response time | `view.observation.latency.slo_s` | s |

A request is all that a plan changes of one operator. Rules: whatever is granted, the plan stays valid and within the pool.

Departures from the paper:

* Section 4 generates no token while the response time is below beta R_max, so that what was scaled out then stays. Section 2.1
  has the SLA say how often an application may be reconfigured "when its response time is far from the critical value":
  that is `calm_tokens_per_minute`. It gives no number; one token in two minutes is the default, and 0 is section 4.
* Hosts are given in the paper. Here a host comes with the request that is placed on it, and goes when nothing is left on it;
  neither takes a token, because neither stops an operator. Hosts without a replica come and go as the plan says.
* A request that would need more hosts than the pool has, because others were refused, is refused as well.
* The bucket starts full. A part of a token may be held, for intervals shorter than a token takes to be generated.
* An interval in which rows wait and none leaves has no response time, and counts as slow. beta = 0 is slow always.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from springtide.errors import require
from springtide.model.allocation import Allocation
from springtide.model.change import change
from springtide.model.decision import Decision
from springtide.model.protocols import View
from springtide.plan.guards.partial import refuse
from springtide.plan.hierarchy.worth import Request, valued

_ROUNDING = 1e-9  # ten tenths of a token are a token, whatever floating point makes of their sum


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """How many reconfigurations an application is allowed, and by what they are chosen."""

    name: ClassVar[str]

    capacity: int = 1
    tokens_per_minute: float = 1.0
    calm_tokens_per_minute: float = 0.5
    beta: float = 0.5
    pause_s: float = 0.5

    def __post_init__(self) -> None:
        require(self.capacity >= 1, f"{self.name}: capacity must be at least 1, not {self.capacity}")
        for what in ("tokens_per_minute", "calm_tokens_per_minute"):
            rate = getattr(self, what)
            require(math.isfinite(rate) and rate >= 0, f"{self.name}: {what} must be 0 or more, not {rate}")
        require(0 <= self.beta <= 1, f"{self.name}: beta must lie between 0 and 1, not {self.beta}")
        require(math.isfinite(self.pause_s) and self.pause_s > 0, f"{self.name}: pause_s must be above 0, not {self.pause_s}")

    def granted(self, view: View, decision: Decision, tokens: float) -> tuple[Decision, float]:
        """The decision with what is granted of its plan, and the tokens that are left for the next."""
        tokens = self._refilled(view, tokens)
        wanted = decision.planned
        if wanted is view.requested:
            return decision, tokens
        base = _with_least_hosts(view, wanted)
        requests = valued(view, wanted, change(base, wanted).operators, self.pause_s)
        affordable = requests[: int(tokens + _ROUNDING)]
        chosen, surplus = _within_pool(view, base, wanted, affordable)
        no_host = f"it would take more than the {view.pool.max_hosts} hosts of the pool"
        operators = {r.operator: no_host for r in affordable if r not in chosen}
        operators |= {r.operator: self._no_token(view, r, len(requests), tokens) for r in requests[len(affordable) :]}
        decision = refuse(decision, base, self.name, operators=operators, hosts=dict.fromkeys(surplus, no_host))
        return decision, max(0.0, tokens - len(chosen))

    def _refilled(self, view: View, tokens: float) -> float:
        rate = self.tokens_per_minute if self._is_slow(view) else self.calm_tokens_per_minute
        return min(float(self.capacity), tokens + rate * view.observation.interval_s / 60)

    def _is_slow(self, view: View) -> bool:
        latency = view.observation.latency
        stalled = latency.rows == 0 and view.observation.backlog_rows > 0
        return self.beta == 0 or stalled or latency.slo_s > self.beta * view.application.slo.latency_s

    def _no_token(self, view: View, request: Request, requests: int, tokens: float) -> str:
        held = f"the bucket held {tokens:.3g} token{'' if tokens == 1 else 's'} for {requests} request{'s' * (requests > 1)}"
        worth = f"this {request.gain} gains {int(request.gain)} for {request.cost_s:.2g} s of downtime"
        if self._is_slow(view):
            return f"{held}, and {worth}"
        response_s, slow_s = view.observation.latency.slo_s, self.beta * view.application.slo.latency_s
        return f"{held}, and {worth}; tokens come slowly, as a response time of {response_s:.3g} s is not above {slow_s:.3g} s"


def _with_least_hosts(view: View, wanted: Allocation) -> Allocation:
    """What was requested, with as many of the plan's new hosts as the pool keeps at least: they need no permission."""
    base = view.requested
    new = [host for host in wanted.hosts if host not in base.hosts]
    missing = max(0, view.pool.min_hosts - len(base.hosts))
    return base.with_hosts((*base.hosts, *new[:missing])) if missing and new else base


def _within_pool(
    view: View, base: Allocation, wanted: Allocation, requests: Sequence[Request]
) -> tuple[list[Request], list[str]]:
    """The requests that can be granted with no more hosts than the pool has, and the new hosts that must not come.

    Hosts that stay because requests were refused leave less room for new ones: those that serve nothing do without, and
    then the least valuable request that needs one.
    """
    chosen = list(requests)
    known = set(base.hosts)
    idle = [host for host in wanted.hosts if host not in known and not wanted.replicas_on(host)]
    surplus: list[str] = []
    while _host_count(base, wanted, chosen) + len(idle) > view.pool.max_hosts:
        adding = [r for r in chosen if not known.issuperset(wanted.operators[r.operator].replica_hosts)]
        if idle:
            surplus.append(idle.pop())
        elif adding:
            chosen.remove(adding[-1])
        else:
            break  # there are too many already
    return chosen, surplus


def _host_count(base: Allocation, wanted: Allocation, chosen: Collection[Request]) -> int:
    """How many hosts there are once these requests are granted, but for those that serve nothing."""
    granted = {request.operator for request in chosen}
    placed = [(wanted if name in granted else base).operators[name] for name in base.operators]
    used = {host for operator in placed for host in operator.replica_hosts}
    return len(used | (set(base.hosts) & set(wanted.hosts)))
