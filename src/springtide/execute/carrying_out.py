"""What an allocation becomes when actions are carried out: the same arithmetic for every backend."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from springtide.errors import InvalidValue, nearest, require
from springtide.model.action import MoveShards, SetReplicas
from springtide.model.allocation import OperatorAllocation


def operator_after(action: SetReplicas | MoveShards, placed: Mapping[str, OperatorAllocation]) -> OperatorAllocation:
    """The operator's allocation after an action; `placed` holds every operator's allocation before it."""
    name = action.operator
    require_operator(name, placed)
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


def require_operator(name: str, known: Iterable[str]) -> None:
    names = set(known)
    if name not in names:
        raise InvalidValue(f"there is no operator {name!r}; {nearest(name, names)}")


def carry_out_so_far(requested: OperatorAllocation, before: OperatorAllocation, missing: Collection[str]) -> OperatorAllocation:
    """What can be done of a request while some of its hosts have not come yet.

    Hosts that are there are used at once: a batch that begins without them may last longer than they took to come. The shards
    of the others wait where there is least, if possible where they are. A request that leaves a host waits until all have come.
    """
    there = [r for r, host in enumerate(requested.replica_hosts) if host not in missing]
    hosts = tuple(requested.replica_hosts[r] for r in there)
    if len(there) == requested.replicas:
        return requested
    if not set(before.replica_hosts) <= set(hosts) or (not requested.shard_replicas and len(hosts) < before.replicas):
        return before
    if not requested.shard_replicas:
        return OperatorAllocation(hosts)
    number = {replica: i for i, replica in enumerate(there)}
    routes = [number.get(replica, -1) for replica in requested.shard_replicas]
    served = [routes.count(i) for i in range(len(hosts))]
    by_host = {host: sum(n for n, other in zip(served, hosts, strict=True) if other == host) for host in hosts}
    for shard, replica in enumerate(routes):
        if replica >= 0:
            continue
        home = before.shard_host(shard)
        host = min(by_host, key=lambda one: (by_host[one], one != home))
        routes[shard] = min((i for i, other in enumerate(hosts) if other == host), key=served.__getitem__)
        served[routes[shard]] += 1
        by_host[host] += 1
    return OperatorAllocation(hosts, tuple(routes))
