"""Who runs where: hosts, replicas, and the routing of shards to replicas.

Allocations have three names, always: `planned` (should be), `requested` (asked for), `observed` (is).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from springtide.errors import InvalidValue, nearest, require
from springtide.model.application import Application


@dataclass(frozen=True, slots=True, kw_only=True)
class HostType:
    """What one host offers, and how long it takes to come and to go."""

    cores: int = 4
    memory_bytes: int = 16 * 2**30
    bandwidth_bytes_per_s: float = 125e6
    start_s: float = 30.0
    release_s: float = 5.0

    def __post_init__(self) -> None:
        require(self.cores >= 1, f"hosts: cores must be at least 1, not {self.cores}")
        require(self.memory_bytes > 0, f"hosts: memory_bytes must be above 0, not {self.memory_bytes}")
        require(
            math.isfinite(self.bandwidth_bytes_per_s) and self.bandwidth_bytes_per_s > 0,
            f"hosts: bandwidth_bytes_per_s must be above 0, not {self.bandwidth_bytes_per_s}",
        )
        for what in ("start_s", "release_s"):
            value = getattr(self, what)
            require(math.isfinite(value) and value >= 0, f"hosts: {what} must be 0 or more, not {value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The hosts that may be rented: all of one type, between `min_hosts` and `max_hosts` of them."""

    host: HostType = HostType()
    min_hosts: int = 1
    max_hosts: int = 10

    def __post_init__(self) -> None:
        require(self.min_hosts >= 1, f"hosts: min_hosts must be at least 1, not {self.min_hosts}")
        require(
            self.max_hosts >= self.min_hosts,
            f"hosts: max_hosts ({self.max_hosts}) must not be below min_hosts ({self.min_hosts})",
        )


@dataclass(frozen=True, slots=True)
class OperatorAllocation:
    """One operator's replicas and routing.

    `replica_hosts[r]` is the host of replica r. `shard_replicas[s]` is the replica that serves shard s; it is empty
    for an operator without shards, whose rows go to any replica.
    """

    replica_hosts: tuple[str, ...]
    shard_replicas: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        require(bool(self.replica_hosts), "an operator needs at least one replica")
        if self.shard_replicas:
            low, high = min(self.shard_replicas), max(self.shard_replicas)
            if low < 0 or high >= len(self.replica_hosts):
                raise InvalidValue(
                    f"a shard is routed to replica {low if low < 0 else high}, but there are {len(self.replica_hosts)} replicas"
                )

    @property
    def replicas(self) -> int:
        return len(self.replica_hosts)

    def shard_host(self, shard: int) -> str:
        return self.replica_hosts[self.shard_replicas[shard]]

    def shards_of(self, replica: int) -> tuple[int, ...]:
        return tuple(s for s, r in enumerate(self.shard_replicas) if r == replica)


@dataclass(frozen=True)
class Allocation:
    """The hosts in use and every operator's place on them. A replica on a host that is not there cannot be built."""

    hosts: tuple[str, ...]
    operators: Mapping[str, OperatorAllocation]

    def __post_init__(self) -> None:
        require(bool(self.hosts), "an allocation needs at least one host")
        known = set(self.hosts)
        require(len(known) == len(self.hosts), "an allocation names a host twice")
        for name, operator in self.operators.items():
            if not known.issuperset(operator.replica_hosts):
                missing = next(h for h in operator.replica_hosts if h not in known)
                raise InvalidValue(
                    f"operator {name!r} has a replica on {missing!r}, which is not allocated; {nearest(missing, known)}"
                )

    def check(self, application: Application) -> None:
        """Refuse an allocation that does not fit the application: operators, shards and replica limits."""
        if len(self.operators) > len(application.operators):
            known = {o.name for o in application.operators}
            stranger = next(name for name in self.operators if name not in known)
            raise InvalidValue(f"operator {stranger!r} is placed, but is not in the application; {nearest(stranger, known)}")
        for operator in application.operators:
            placed = self.operators.get(operator.name)
            require(placed is not None, f"operator {operator.name!r} is not placed")
            assert placed is not None
            shards = operator.shards if operator.keyed else 0
            require(
                len(placed.shard_replicas) == shards,
                f"operator {operator.name!r} has {shards} shards, but {len(placed.shard_replicas)} are routed",
            )
            require(
                placed.replicas <= operator.replica_limit,
                f"operator {operator.name!r} may have at most {operator.replica_limit} replicas, not {placed.replicas}",
            )

    def with_operator(self, name: str, operator: OperatorAllocation) -> Allocation:
        return Allocation(self.hosts, {**self.operators, name: operator})

    def with_hosts(self, hosts: tuple[str, ...]) -> Allocation:
        return Allocation(hosts, self.operators)

    @cached_property
    def replicas(self) -> int:
        return sum(o.replicas for o in self.operators.values())

    def operators_on(self, host: str) -> Iterator[str]:
        return (name for name, placed in self.operators.items() if host in placed.replica_hosts)

    def replicas_on(self, host: str) -> int:
        return sum(placed.replica_hosts.count(host) for placed in self.operators.values())


def new_host_names(taken: frozenset[str], count: int) -> tuple[str, ...]:
    """The next `count` host names that are not taken: `host-0`, `host-1`, ... Names are not used again while taken.

    >>> new_host_names(frozenset({"host-0", "host-4"}), 2)
    ('host-5', 'host-6')
    """
    numbers = [int(h.removeprefix("host-")) for h in taken if h.removeprefix("host-").isdigit()]
    first = max(numbers, default=-1) + 1
    return tuple(f"host-{first + i}" for i in range(count))


def spread(application: Application, hosts: tuple[str, ...], replicas: Mapping[str, int] | None = None) -> Allocation:
    """Deal replicas over hosts in turn and shards over replicas in turn: the allocation an application starts with."""
    wanted = replicas or {}
    placed: dict[str, OperatorAllocation] = {}
    turn = 0
    for operator in application.operators:
        count = min(max(1, wanted.get(operator.name, 1)), operator.replica_limit)
        replica_hosts = tuple(hosts[(turn + i) % len(hosts)] for i in range(count))
        turn += count
        shard_replicas = tuple(s % count for s in range(operator.shards)) if operator.keyed else ()
        placed[operator.name] = OperatorAllocation(replica_hosts, shard_replicas)
    return Allocation(hosts, placed)
