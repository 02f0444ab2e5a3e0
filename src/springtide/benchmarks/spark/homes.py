"""The places of shards before and after the changes that are measured: pure.

A shard's home is a host. Each host in use has the same number of replicas, over which its shards are dealt. A shard is
moved to where it has not been for the longest time: what an executor still holds of it would make a move look cheap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from springtide.model.allocation import OperatorAllocation

_NEVER = -1
_NOWHERE = ""


@dataclass(frozen=True, slots=True)
class Homes:
    """`of[s]` is the home of shard s; `left[s, host]` is the change at which it left a host, counted in `changes`."""

    of: tuple[str, ...]
    replicas_per_host: int = 1
    changes: int = 0
    left: dict[tuple[int, str], int] = field(default_factory=dict)

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(sorted(set(self.of)))

    def placed(self) -> OperatorAllocation:
        replica_hosts = tuple(h for h in self.hosts for _ in range(self.replicas_per_host))
        dealt = dict.fromkeys(self.hosts, 0)
        routes = []
        for home in self.of:
            first = replica_hosts.index(home)
            routes.append(first + dealt[home] % self.replicas_per_host)
            dealt[home] += 1
        return OperatorAllocation(replica_hosts, tuple(routes))

    def with_replicas(self, per_host: int) -> Homes:
        """Other tasks for the same shards in the same places."""
        return replace(self, replicas_per_host=per_host)

    def moved(self, count: int) -> Homes:
        """`count` shards elsewhere, on the same hosts as evenly as can be."""
        after = self
        untouched = set(range(len(self.of)))
        for _ in range(count):
            choices = [(s, h) for s in sorted(untouched) for h in self.hosts if h != self.of[s]]
            shard, host = min(choices, key=lambda c: (after._fullest(*c), self.left.get(c, _NEVER)))
            untouched.remove(shard)
            after = after._with(shard, host)
        return self._become(after.of)

    def all_moved(self) -> Homes:
        """Every shard on the host of its neighbours: those that it has left the longest ago."""
        hosts = self.hosts
        turns = [{h: hosts[(i + k) % len(hosts)] for i, h in enumerate(hosts)} for k in range(1, len(hosts))]
        choices = [tuple(turn[home] for home in self.of) for turn in turns]
        return self._become(min(choices, key=lambda homes: max(self.left.get(c, _NEVER) for c in enumerate(homes))))

    def on(self, hosts: Sequence[str]) -> Homes:
        """On these hosts, evenly; as many shards as can stay where they are."""
        most = -(-len(self.of) // len(hosts))
        homes: list[str] = []
        for home in self.of:
            homes.append(home if home in hosts and homes.count(home) < most else _NOWHERE)
        for shard in (s for s, home in enumerate(homes) if home == _NOWHERE):
            homes[shard] = min(hosts, key=lambda h: (homes.count(h), self.left.get((shard, h), _NEVER)))
        return self._become(tuple(homes))

    def _fullest(self, shard: int, host: str) -> int:
        """Shards of the fullest host once a shard has moved."""
        after = self._with(shard, host).of
        return max(after.count(h) for h in after)

    def _with(self, shard: int, host: str) -> Homes:
        return replace(self, of=(*self.of[:shard], host, *self.of[shard + 1 :]))

    def _become(self, homes: tuple[str, ...]) -> Homes:
        gone = {(s, was): self.changes for s, (was, now) in enumerate(zip(self.of, homes, strict=True)) if was != now}
        return replace(self, of=homes, changes=self.changes + 1, left={**self.left, **gone})
