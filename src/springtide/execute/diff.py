"""From what has been asked for to what is planned, in the fewest actions and in an order that is always safe.

Hosts are added before anything is put on them, and released after everything has been taken off them.
"""

from __future__ import annotations

from collections.abc import Mapping

from springtide.model.action import Action, AddHosts, MoveShards, ReleaseHosts, SetReplicas, SetTriggerInterval
from springtide.model.allocation import Allocation
from springtide.model.change import change
from springtide.model.observation import Observation


def actions(requested: Allocation, planned: Allocation) -> tuple[Action, ...]:
    """What to ask a backend for so that `requested` becomes `planned`."""
    wanted = change(requested, planned)
    found: list[Action] = []
    if wanted.hosts_added:
        found.append(AddHosts(wanted.hosts_added))
    for name in wanted.operators:
        old, new = requested.operators[name], planned.operators[name]
        if old.replica_hosts != new.replica_hosts:
            found.append(SetReplicas(name, new.replica_hosts, before=old.replicas))
        routes = {s: r for s, (r, was) in enumerate(zip(new.shard_replicas, old.shard_replicas, strict=True)) if r != was}
        if routes:
            found.append(MoveShards(name, routes))
    if wanted.hosts_released:
        found.append(ReleaseHosts(wanted.hosts_released))
    return tuple(found)


def trigger_actions(observation: Observation, planned_s: Mapping[str, float]) -> tuple[SetTriggerInterval, ...]:
    """What to ask a backend for so that batches start as often as planned, as far as their bounds allow."""
    found = []
    for name, seen in observation.operators.items():
        least_s, most_s = seen.trigger_bounds_s
        trigger_s = min(max(planned_s.get(name, 0.0), least_s), most_s)
        if trigger_s != seen.trigger_s:
            found.append(SetTriggerInterval(name, trigger_s))
    return tuple(found)
