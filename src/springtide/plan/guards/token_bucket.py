"""Every reconfiguration takes a token, and tokens come only while the application is slow.

V. Cardellini, F. Lo Presti, M. Nardelli, G. Russo Russo, "Towards Hierarchical Autonomous Control for Elastic Data Stream
Processing in the Fog", 2017: the global policy of section 3.2 with the settings of section 4.

| symbol | argument | unit |
|---|---|---|
| beta | `beta` | share of R_max, 0 to 1 |
| R_max | `view.application.slo.latency_s` | s |
| response time | `view.observation.latency.slo_s` | s |
| T | `view.observation.interval_s` | s |

Departures from the paper:

* The paper orders reconfigurations by their ratio of gain to cost, and gives the gain as an order only: scale-out >
  migration > scale-in. Accordingly the cost (its downtime; here the bytes of state that change host, which cause it)
  decides among reconfigurations of one kind.
* Hosts are not reconfigured in the paper. A host that a granted operator is placed on comes with it, without a token;
  any other host that comes or goes takes one, as a scale-out or as the last of the scale-ins. A host cannot go before the
  operators on it have, and takes no token while it cannot.
* The bucket starts full. A part of a token may be held, for intervals shorter than a token takes to be generated.
* beta = 0 generates tokens always. An interval in which rows wait and none leaves has no response time, and counts as slow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from enum import IntEnum
from typing import Any, ClassVar

from springtide.errors import require
from springtide.model.allocation import Allocation
from springtide.model.change import Change, change
from springtide.model.decision import Decision
from springtide.model.protocols import AnyPolicy, View
from springtide.plan.guards.partial import accept, refuse

# Ten tenths of a token are a token, whatever floating point makes of their sum.
_ROUNDING = 1e-9


class Gain(IntEnum):
    """The kinds of reconfiguration (section 3.1), the most valuable first."""

    SCALE_OUT = 0
    MIGRATION = 1
    SCALE_IN = 2


@dataclass(frozen=True, slots=True, order=True)
class Request:
    """One reconfiguration, ordered by value: of an operator, or of a host that comes or goes on its own."""

    gain: Gain
    is_host: bool
    cost_bytes: float
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBucketMemory:
    inner: Any
    tokens: float


@dataclass(frozen=True, slots=True)
class TokenBucket:
    """At most `capacity` reconfigurations at once, and `tokens_per_minute` more while the response time is above
    `beta` times what the SLO allows. When there are fewer tokens than changes, the most valuable are granted."""

    name: ClassVar[str] = "token-bucket"
    summary: ClassVar[str] = "every reconfiguration takes a token, and tokens come while the application is slow (EDF)"

    policy: AnyPolicy
    _: KW_ONLY
    capacity: int = 1
    tokens_per_minute: float = 1.0
    beta: float = 0.5

    def __post_init__(self) -> None:
        require(self.capacity >= 1, f"{self.name}: capacity must be at least 1, not {self.capacity}")
        require(self.tokens_per_minute >= 0, f"{self.name}: tokens_per_minute must be 0 or more, not {self.tokens_per_minute}")
        require(0 <= self.beta <= 1, f"{self.name}: beta must lie between 0 and 1, not {self.beta}")

    def start(self) -> TokenBucketMemory:
        return TokenBucketMemory(inner=self.policy.start(), tokens=self.capacity)

    def decide(self, view: View, memory: TokenBucketMemory) -> tuple[Decision, TokenBucketMemory]:
        decision, inner = self.policy.decide(view, memory.inner)
        tokens = self._refilled(memory.tokens, view)
        granted, refused = _by_value(view, decision.planned, int(tokens + _ROUNDING))
        memory = TokenBucketMemory(inner=inner, tokens=max(0.0, tokens - len(granted)))
        if not refused:
            return decision, memory
        needed = len(granted) + len(refused)
        why = f"the plan takes {needed} token{'s' if needed > 1 else ''} and the bucket held {tokens:.3g}"
        why += "" if self._is_slow(view) else f"; none came, as {self._pace(view)}"
        operators = {request.name: why for request in refused if not request.is_host}
        hosts = {request.name: why for request in refused if request.is_host}
        return refuse(decision, view.requested, self.name, operators=operators, hosts=hosts), memory

    def _refilled(self, tokens: float, view: View) -> float:
        if not self._is_slow(view):
            return tokens
        return min(self.capacity, tokens + self.tokens_per_minute * view.observation.interval_s / 60)

    def _is_slow(self, view: View) -> bool:
        latency = view.observation.latency
        stalled = latency.rows == 0 and view.observation.backlog_rows > 0
        return self.beta == 0 or stalled or latency.slo_s > self.beta * view.application.slo.latency_s

    def _pace(self, view: View) -> str:
        observed_s, allowed_s = view.observation.latency.slo_s, view.application.slo.latency_s
        return f"a response time of {observed_s:.3g} s is not above {self.beta:g} x {allowed_s:g} s"


def _by_value(view: View, planned: Allocation, tokens: int) -> tuple[list[Request], list[Request]]:
    """The reconfigurations the tokens are enough for, the most valuable first, and the others."""
    wanted = change(view.requested, planned)
    requests = sorted([*_operator_requests(view, wanted), *_spare_host_requests(planned, wanted)])
    granted = {request.name for request in requests[:tokens] if not request.is_host}
    remaining = accept(view.requested, planned, operators=granted, hosts=wanted.hosts_released).hosts
    requests += [Request(Gain.SCALE_IN, True, 0.0, host) for host in wanted.hosts_released if host not in remaining]
    return requests[:tokens], requests[tokens:]


def _operator_requests(view: View, wanted: Change) -> Iterator[Request]:
    for name in wanted.operators:
        before, after = wanted.replicas.get(name, (0, 0))
        gain = Gain.MIGRATION if before == after else Gain.SCALE_OUT if after > before else Gain.SCALE_IN
        cost_bytes = wanted.moved_shards.get(name, 0) * view.application.operator(name).state_bytes_per_shard
        yield Request(gain, False, cost_bytes, name)


def _spare_host_requests(planned: Allocation, wanted: Change) -> Iterator[Request]:
    """New hosts that no operator is placed on; all others come with the operators they are for."""
    return (Request(Gain.SCALE_OUT, True, 0.0, host) for host in wanted.hosts_added if not planned.replicas_on(host))
