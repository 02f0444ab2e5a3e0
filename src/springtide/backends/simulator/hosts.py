"""The simulated hosts: when they come and go, what they are billed, and how far apart they are."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from springtide.backends.simulator.arrays import Floats
from springtide.backends.simulator.settings import SimulatorSettings
from springtide.model.allocation import HostType
from springtide.model.observation import HostState


@dataclass(slots=True, kw_only=True)
class SimulatedHost:
    """One host and its place in the kernel's arrays. It is billed from the moment it is asked for until it is gone."""

    name: str
    slot: int
    state: HostState
    ready_s: float
    needed_until_s: float = 0.0  # state leaves it, or a micro-batch runs on it, until then
    network_free_s: float = 0.0  # its link is taken by state transfers until then


class Fleet:
    """All hosts that exist, by name. Slots are used again after a host is gone."""

    def __init__(self, host_type: HostType) -> None:
        self.host_type = host_type
        self._free: list[int] = []
        self._hosts: dict[str, SimulatedHost] = {}
        self._billed_core_s = 0.0
        self._billed_until_s = 0.0

    def __contains__(self, name: str) -> bool:
        return name in self._hosts

    def __getitem__(self, name: str) -> SimulatedHost:
        return self._hosts[name]

    def all(self) -> list[SimulatedHost]:
        return list(self._hosts.values())

    def running(self) -> list[SimulatedHost]:
        return [h for h in self._hosts.values() if h.state is HostState.RUNNING]

    def add(self, name: str, now_s: float, *, ready_s: float) -> SimulatedHost:
        self._bill(now_s)
        slot = self._free.pop() if self._free else len(self._hosts)
        host = SimulatedHost(name=name, slot=slot, state=HostState.STARTING, ready_s=ready_s)
        self._hosts[name] = host
        return host

    def remove(self, name: str, now_s: float) -> None:
        self._bill(now_s)
        self._free.append(self._hosts.pop(name).slot)

    def take_billed_core_s(self, now_s: float) -> float:
        """Core-seconds billed since the last call."""
        self._bill(now_s)
        billed, self._billed_core_s = self._billed_core_s, 0.0
        return billed

    def _bill(self, now_s: float) -> None:
        self._billed_core_s += len(self._hosts) * self.host_type.cores * (now_s - self._billed_until_s)
        self._billed_until_s = now_s


class Network:
    """Delays between hosts: one figure for all pairs, spread by the seed, with named exceptions."""

    def __init__(self, settings: SimulatorSettings, seed: int) -> None:
        self._base_s = settings.network_delay_s
        self._spread = settings.network_delay_spread
        self._seed = seed
        self._named = {frozenset(d.between): d.delay_s for d in settings.delays}

    def delay_s(self, one: str, other: str) -> float:
        if one == other:
            return 0.0
        pair = frozenset((one, other))
        if pair in self._named:
            return self._named[pair]
        if self._spread == 0.0:
            return self._base_s
        digest = zlib.crc32("|".join([str(self._seed), *sorted(pair)]).encode())
        return self._base_s * (1.0 + self._spread * (2.0 * digest / 0xFFFFFFFF - 1.0))

    def matrix(self, hosts: list[SimulatedHost], slots: int) -> Floats:
        delays = np.zeros((slots, slots))
        for one in hosts:
            for other in hosts:
                delays[one.slot, other.slot] = self.delay_s(one.name, other.name)
        return delays
