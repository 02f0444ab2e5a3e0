"""The four things that can be asked of a backend. Nothing else changes an allocation."""

from __future__ import annotations

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


Action = AddHosts | ReleaseHosts | SetReplicas | MoveShards
