"""How long hosts take to start, as seen: a pool says what it expects, and a busy machine takes longer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from springtide.model.observation import HostState
from springtide.model.protocols import View

_LEARNING = 0.3  # the share of a new start in what is learned


@dataclass(frozen=True, slots=True, kw_only=True)
class Starts:
    """When each host that starts was first seen to, and how long starts have taken, None before the first."""

    since_s: Mapping[str, float] = field(default_factory=dict)
    mean_s: float | None = None

    def then(self, view: View) -> Starts:
        seen = view.observation
        since_s, mean_s = {}, self.mean_s
        for host in seen.hosts.values():
            began_s = self.since_s.get(host.name)
            if host.state is HostState.STARTING:
                since_s[host.name] = seen.start_s if began_s is None else began_s
            elif host.state is HostState.RUNNING and began_s is not None:
                took_s = seen.end_s - seen.interval_s / 2 - began_s
                mean_s = took_s if mean_s is None else mean_s + _LEARNING * (took_s - mean_s)
        return Starts(since_s=since_s, mean_s=mean_s)

    def takes_s(self, expected_s: float) -> float:
        """What a start takes: as expected until one was seen."""
        return expected_s if self.mean_s is None else max(0.0, self.mean_s)
