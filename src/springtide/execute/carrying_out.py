"""What an allocation becomes when actions are carried out: the same arithmetic for every backend."""

from __future__ import annotations

from collections.abc import Mapping

from springtide.errors import InvalidValue, nearest, require
from springtide.model.action import MoveShards, SetReplicas
from springtide.model.allocation import OperatorAllocation


def operator_after(action: SetReplicas | MoveShards, placed: Mapping[str, OperatorAllocation]) -> OperatorAllocation:
    """The operator's allocation after an action; `placed` holds every operator's allocation before it."""
    name = action.operator
    if name not in placed:
        raise InvalidValue(f"there is no operator {name!r}; {nearest(name, placed)}")
    before = placed[name]
    if isinstance(action, MoveShards):
        routes = dict(enumerate(before.shard_replicas))
        for shard, replica in action.routes.items():
            require(shard in routes, f"operator {name!r} has no shard {shard}: it has {len(routes)}")
            routes[shard] = replica
        return OperatorAllocation(before.replica_hosts, tuple(routes.values()))
    # Routes to replicas that go away are corrected by the MoveShards that follows; until then they lead to the first.
    kept = tuple(r if r < len(action.replica_hosts) else 0 for r in before.shard_replicas)
    return OperatorAllocation(action.replica_hosts, kept)
