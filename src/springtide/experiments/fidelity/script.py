"""A policy that follows a script: so many hosts, with a replica of every operator on each core, for so long.

Batches of every size are seen meanwhile, so that what a replica, a shard and a row cost can be told apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from springtide.model.decision import Decision
from springtide.model.protocols import View
from springtide.plan.policies.static import Static


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """`hosts[i]` hosts for `hold_s`, one after the other, the last to the end."""

    name: ClassVar[str] = "script"

    hosts: tuple[int, ...]
    hold_s: float

    def start(self) -> None:
        return None

    def decide(self, view: View, memory: None) -> tuple[Decision, None]:
        hosts = self.hosts[min(int(view.now_s / self.hold_s), len(self.hosts) - 1)]
        decision, _ = Static(hosts=hosts, replicas=hosts * view.pool.host.cores).decide(view, None)
        return decision, memory
