"""The five things that can be asked of a backend. Nothing else changes an allocation, or how often batches start."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from springtide.errors import require


@dataclass(frozen=True, slots=True)
class AddHosts:
    hosts: tuple[str, ...]

    def __post_init__(self) -> None:
        require(bool(self.hosts), "AddHosts names no host")

    def __str__(self) -> str:
        return f"add {', '.join(self.hosts)}"


@dataclass(frozen=True, slots=True)
class ReleaseHosts:
    """Let hosts go once nothing runs on them any more."""

    hosts: tuple[str, ...]

    def __post_init__(self) -> None:
        require(bool(self.hosts), "ReleaseHosts names no host")

    def __str__(self) -> str:
        return f"release {', '.join(self.hosts)}"


@dataclass(frozen=True, slots=True)
class SetReplicas:
    """Give an operator these replicas: `replica_hosts[r]` is the host of replica r."""

    operator: str
    replica_hosts: tuple[str, ...]
    before: int

    def __post_init__(self) -> None:
        require(bool(self.replica_hosts), f"SetReplicas leaves operator {self.operator!r} without a replica")

    def __str__(self) -> str:
        after = len(self.replica_hosts)
        if after == self.before:
            return f"{self.operator}: {after} replica{'s' * (after > 1)} placed anew"
        return f"{self.operator}: {self.before} -> {after} replicas"


@dataclass(frozen=True, slots=True)
class MoveShards:
    """Route shards of an operator to other replicas: shard -> replica."""

    operator: str
    routes: Mapping[int, int]

    def __post_init__(self) -> None:
        require(bool(self.routes), f"MoveShards moves nothing of operator {self.operator!r}")

    def __str__(self) -> str:
        return f"{self.operator}: {len(self.routes)} shards re-routed"


@dataclass(frozen=True, slots=True)
class SetTriggerInterval:
    """Start the batches of an operator no more often than every `trigger_s` seconds; 0: each as soon as the last has ended.

    It takes effect at once, without a restart. The user's own trigger interval stays the lower bound.
    """

    operator: str
    trigger_s: float

    def __post_init__(self) -> None:
        valid = math.isfinite(self.trigger_s) and self.trigger_s >= 0
        require(valid, f"SetTriggerInterval of operator {self.operator!r}: seconds must be 0 or more, not {self.trigger_s}")

    def __str__(self) -> str:
        return describe_trigger(self.operator, self.trigger_s)


def describe_trigger(operator: str, trigger_s: float) -> str:
    """
    >>> describe_trigger("count", 2.5), describe_trigger("count", 0.0)
    ('count: a batch every 2.5 s', 'count: batches follow one another at once')
    """
    if trigger_s <= 0:
        return f"{operator}: batches follow one another at once"
    return f"{operator}: a batch every {trigger_s:.3g} s"


Action = AddHosts | ReleaseHosts | SetReplicas | MoveShards | SetTriggerInterval
