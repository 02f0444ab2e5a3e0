"""Fewer or more replicas of one operator, moving as few shards as an even split allows.

Rules: replicas that are kept keep their number, so that their routes stay as they are. Ties go to the lowest number.
"""

from __future__ import annotations

import heapq

from springtide.model.allocation import OperatorAllocation


def shrink(operator: OperatorAllocation, replicas: int) -> OperatorAllocation:
    """The operator with its first `replicas` replicas; the others' shards go evenly to those that are kept."""
    shard_replicas = list(operator.shard_replicas)
    by_replica = shards_by_replica(operator)
    fewest_first = [(len(shards), r) for r, shards in enumerate(by_replica[:replicas])]
    heapq.heapify(fewest_first)
    for shard in (s for shards in by_replica[replicas:] for s in shards):
        count, taker = fewest_first[0]
        shard_replicas[shard] = taker
        heapq.heapreplace(fewest_first, (count + 1, taker))
    return OperatorAllocation(operator.replica_hosts[:replicas], tuple(shard_replicas))


def grow(operator: OperatorAllocation, hosts: tuple[str, ...]) -> OperatorAllocation:
    """The operator with one more replica on each of `hosts`, which takes shards from those that serve the most."""
    replica_hosts = (*operator.replica_hosts, *hosts)
    shard_replicas = list(operator.shard_replicas)
    by_replica = shards_by_replica(operator)
    most_first = [(-len(shards), r) for r, shards in enumerate(by_replica)]
    heapq.heapify(most_first)
    fair_shards = len(shard_replicas) // len(replica_hosts)
    for taker in range(operator.replicas, len(replica_hosts)):
        for _ in range(fair_shards):
            count, giver = most_first[0]
            shard_replicas[by_replica[giver].pop()] = taker
            heapq.heapreplace(most_first, (count + 1, giver))
    return OperatorAllocation(replica_hosts, tuple(shard_replicas))


def shards_by_replica(operator: OperatorAllocation) -> list[list[int]]:
    """The shards of every replica, in one pass over the routes: an operator may have tens of thousands of shards."""
    shards: list[list[int]] = [[] for _ in range(operator.replicas)]
    for shard, replica in enumerate(operator.shard_replicas):
        shards[replica].append(shard)
    return shards
