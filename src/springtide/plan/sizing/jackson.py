"""Queues behind one another, a Jackson network: the mean time rows take through all of them, and the fewest servers for it.

L. Wang, T. Z. J. Fu, R. T. B. Ma, M. Winslett, Z. Zhang, "Elasticutor: Rapid Elasticity for Realtime Stateful Stream
Processing", SIGMOD 2019, pp. 573-588, section 4.1. The greedy algorithm and its proof: T. Z. J. Fu et al., "DRS: Dynamic
Resource Scheduling for Real-Time Analytics over Fast Streams", ICDCS 2015, pp. 411-420.

| symbol | argument | unit |
|---|---|---|
| j = 1..m | the position in every sequence: an executor, or an operator | |
| lambda_0 | `source_per_s` | rows/s |
| lambda_j | `arrivals_per_s[j]` | rows/s |
| mu_j | `service_per_s[j]`: what one core of j can do | rows/s |
| k_j | `servers[j]` | cores |
| E[T] | `Sizing.sojourn_s`, `network_sojourn_s(...)` | s |
| T_max | `t_max_s` | s |

Every queue gets what makes it stable, floor(lambda_j / mu_j) + 1. Then one server after the other goes to where it lowers E[T]
most, until E[T] is at most T_max, or the servers there are have all been given away. What one more server brings falls with
each server (E[T_j] is convex in k_j), so no other way of giving away as many has a lower E[T].

Departures from the paper:

* A queue may have a limit of its own, `most_servers[j]`. One that cannot be stable within it gets the limit, is said to be
  saturated, and is left out of E[T]: no server elsewhere could make up for it.
* The paper does not say what to do when there are too few servers to make every queue stable. Each gets one here, and the
  rest go one by one to the queue whose servers are busiest, which makes the highest utilisation as low as it can be.
* Servers are not given away while they bring nothing: T_max may be below what service alone takes.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from springtide.errors import require
from springtide.plan.sizing.queueing import erlang_b, mean_sojourn_s, next_erlang_b, sojourn_given_s

_LEAST_GAIN = 1e-9  # of E[T]: less is not worth a server


@dataclass(frozen=True, kw_only=True)
class Network:
    """Queues and what flows into them. Without rows from the sources there is nothing to wait for."""

    source_per_s: float
    arrivals_per_s: Sequence[float]
    service_per_s: Sequence[float]
    most_servers: Sequence[int]

    def __post_init__(self) -> None:
        lengths = {len(self.arrivals_per_s), len(self.service_per_s), len(self.most_servers)}
        require(len(lengths) == 1, f"a network needs one figure of each kind per queue, not {sorted(lengths)}")

    @cached_property
    def offered(self) -> list[float]:
        """The servers of each queue that are busy on average, if there are as many."""
        return [arrivals / service for arrivals, service in zip(self.arrivals_per_s, self.service_per_s, strict=True)]

    @cached_property
    def stable_servers(self) -> list[int]:
        """The fewest servers with which each queue is stable, where its limit allows them: 1 at least."""
        return [min(int(load) + 1, most) for load, most in zip(self.offered, self.most_servers, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """Servers for each queue, and what E[T] is with them: infinite if there were too few to go round.

    `saturated` are the queues that their own limit keeps from being stable; `sojourn_s` is without them.
    """

    servers: tuple[int, ...]
    sojourn_s: float
    saturated: tuple[int, ...] = ()


@dataclass(slots=True)
class _Queue:
    """One queue while servers are given away."""

    position: int
    arrivals_per_s: float
    service_per_s: float
    offered: float
    servers: int
    blocking: float

    def weighted_s(self) -> float:
        """lambda_j E[T_j], a term of Eq. (1)."""
        return self.arrivals_per_s * sojourn_given_s(self.blocking, self.offered, self.service_per_s, self.servers)

    def grow(self) -> None:
        self.servers += 1
        self.blocking = next_erlang_b(self.blocking, self.offered, self.servers)

    def gain(self) -> float:
        """By how much one more server lowers the term."""
        blocking = next_erlang_b(self.blocking, self.offered, self.servers + 1)
        after_s = sojourn_given_s(blocking, self.offered, self.service_per_s, self.servers + 1)
        return self.weighted_s() - self.arrivals_per_s * after_s


def network_sojourn_s(network: Network, servers: Sequence[int]) -> float:
    """E[T](k): the mean time from a source through all queues, a queue counting as often as rows pass it.

    >>> chain = Network(source_per_s=1.0, arrivals_per_s=[1.0, 2.0], service_per_s=[2.0, 4.0], most_servers=[9, 9])
    >>> network_sojourn_s(chain, [1, 1])  # 1 s in the first, and twice half a second in the second
    2.0
    """
    if not network.source_per_s > 0:
        return 0.0
    times_s = map(mean_sojourn_s, network.arrivals_per_s, network.service_per_s, servers)
    passed = zip(network.arrivals_per_s, times_s, strict=True)
    return sum(arrivals * time_s for arrivals, time_s in passed if arrivals > 0) / network.source_per_s  # Eq. (1)


def fewest_servers(network: Network, t_max_s: float, available: int) -> Sizing:
    """The fewest servers with which E[T] is at most T_max; if `available` do not reach that, the lowest E[T] they can have."""
    servers, offered = network.stable_servers, network.offered
    saturated = tuple(j for j, load in enumerate(offered) if load >= servers[j])
    if sum(servers) > available:
        return Sizing(servers=tuple(_shared_out(network, available)), sojourn_s=math.inf, saturated=saturated)
    if not network.source_per_s > 0:
        return Sizing(servers=tuple(servers), sojourn_s=0.0, saturated=saturated)
    queues = [_queue(network, j) for j, load in enumerate(offered) if 0 < load < servers[j]]
    total_s = _give_away(queues, t_max_s * network.source_per_s, available - sum(servers), network.most_servers)
    given = list(servers)
    for queue in queues:
        given[queue.position] = queue.servers
    return Sizing(servers=tuple(given), sojourn_s=total_s / network.source_per_s, saturated=saturated)  # Eq. (1)


def _queue(network: Network, j: int) -> _Queue:
    offered, servers = network.offered[j], network.stable_servers[j]
    return _Queue(j, network.arrivals_per_s[j], network.service_per_s[j], offered, servers, erlang_b(offered, servers))


def _give_away(queues: Sequence[_Queue], limit_s: float, spare: int, most: Sequence[int]) -> float:
    """One server at a time to the queue whose term it lowers most, until the terms' sum is at most `limit_s`: that sum."""
    total_s = _total_s(queues)
    if total_s <= limit_s:
        return total_s
    best = [(-queue.gain(), i) for i, queue in enumerate(queues) if queue.servers < most[queue.position]]
    heapq.heapify(best)
    while total_s > limit_s and spare > 0 and best:
        gain, queue = -best[0][0], queues[best[0][1]]
        if gain <= _LEAST_GAIN * total_s:
            break
        queue.grow()
        spare -= 1
        if queue.servers < most[queue.position]:
            heapq.heapreplace(best, (-queue.gain(), best[0][1]))
        else:
            heapq.heappop(best)
        total_s -= gain
        if total_s <= limit_s:
            total_s = _total_s(queues)  # without what rounding has added up to
    return _total_s(queues)


def _total_s(queues: Sequence[_Queue]) -> float:
    return math.fsum(queue.weighted_s() for queue in queues)


def _shared_out(network: Network, available: int) -> list[int]:
    """One server each, and the others one by one to the queue whose servers are busiest."""
    offered, wanted = network.offered, network.stable_servers
    servers = [1] * len(offered)
    busiest = [(-load, j) for j, load in enumerate(offered) if wanted[j] > 1]
    heapq.heapify(busiest)
    for _ in range(available - len(servers)):
        _, j = busiest[0]
        servers[j] += 1
        if servers[j] < wanted[j]:
            heapq.heapreplace(busiest, (-offered[j] / servers[j], j))
        else:
            heapq.heappop(busiest)
    return servers
