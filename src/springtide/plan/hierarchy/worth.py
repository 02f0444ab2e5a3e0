"""What a reconfiguration of one operator is worth: its gain, and the downtime it costs.

V. Cardellini, F. Lo Presti, M. Nardelli, G. Russo Russo, "Towards Hierarchical Autonomous Control for Elastic Data Stream
Processing in the Fog", Euro-Par 2017 Workshops, section 3.1.

| in the paper | here | unit |
|---|---|---|
| reconfiguration gain | `Request.gain` | |
| reconfiguration cost: application downtime | `Request.cost_s` | s |
| time to add or remove a replica, and to relocate its code | `pause_s` | s |
| time to migrate internal state | moved bytes / a host's bandwidth | s |

Departures from the paper:

* It gives the gain as an order only: scale-out > migration > scale-in. A ratio needs numbers: 3, 2 and 1 here.
* State counts as migrated when it changes host: regrouping shards inside a host moves none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.model.protocols import View


class Gain(IntEnum):
    """The three kinds of reconfiguration, by how much they help."""

    SCALE_IN = 1
    MIGRATION = 2
    SCALE_OUT = 3

    def __str__(self) -> str:
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One operator's wish to be reconfigured."""

    operator: str
    gain: Gain
    cost_s: float

    @property
    def value(self) -> float:
        """The gain to cost ratio."""
        return self.gain / self.cost_s


def valued(view: View, wanted: Allocation, operators: Iterable[str], pause_s: float) -> list[Request]:
    """A request for each of these operators, the most valuable first; of equal ones, in the order given."""
    found = []
    for name in operators:
        before, after = view.requested.operators[name], wanted.operators[name]
        found.append(Request(operator=name, gain=_gain(before, after), cost_s=downtime_s(view, name, after, pause_s)))
    return sorted(found, key=lambda request: -request.value)


def _gain(before: OperatorAllocation, after: OperatorAllocation) -> Gain:
    if after.replicas == before.replicas:
        return Gain.MIGRATION
    return Gain.SCALE_OUT if after.replicas > before.replicas else Gain.SCALE_IN


def downtime_s(view: View, name: str, after: OperatorAllocation, pause_s: float) -> float:
    """How long the operator stands still while it becomes `after`."""
    return pause_s + _moved_bytes(view, name, after) / view.pool.host.bandwidth_bytes_per_s


def _moved_bytes(view: View, name: str, after: OperatorAllocation) -> float:
    before, operator = view.requested.operators[name], view.application.operator(name)
    seen = view.observation.operators.get(name)
    units = len(after.shard_replicas) or min(before.replicas, after.replicas)
    if seen is not None and len(seen.shards.state_bytes) >= units:
        state_bytes = seen.shards.state_bytes[:units]
    else:
        state_bytes = np.full(units, float(operator.state_bytes_per_shard))
    if not state_bytes.any():
        return 0.0
    number = {host: i for i, host in enumerate({*before.replica_hosts, *after.replica_hosts})}
    moved = _unit_hosts(before, number)[:units] != _unit_hosts(after, number)[:units]
    return float(state_bytes[moved].sum())


def _unit_hosts(placed: OperatorAllocation, number: Mapping[str, int]) -> NDArray[np.intp]:
    """The host, by number, of every shard; of every replica where there are none."""
    hosts = np.array([number[host] for host in placed.replica_hosts], dtype=np.intp)
    return hosts[np.array(placed.shard_replicas, dtype=np.intp)] if placed.shard_replicas else hosts
