"""Accepting part of a plan: some operators' and hosts' changes, and not the others'.

Rules: the result is always a valid allocation. A host that still holds a replica stays, and a host that an accepted
operator is placed on comes, whoever objects to it. `base` is what has been requested, `wanted` what was planned.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.model.change import Change, change
from springtide.model.decision import Decision, WhyNot


def accept(base: Allocation, wanted: Allocation, *, operators: Collection[str], hosts: Collection[str]) -> Allocation:
    """`base` with the changes `wanted` makes to these operators and these hosts, and no other change."""
    placed = {name: (wanted if name in operators else base).operators[name] for name in wanted.operators}
    used = {host for operator in placed.values() for host in operator.replica_hosts}
    kept = [h for h in base.hosts if h in used or h in wanted.hosts or h not in hosts]
    added = [h for h in wanted.hosts if h not in base.hosts and (h in used or h in hosts)]
    return Allocation((*kept, *added), placed)


def refuse(
    decision: Decision, base: Allocation, who: str, *, operators: Mapping[str, str], hosts: Mapping[str, str]
) -> Decision:
    """The decision without the changes of these operators and hosts; the mappings say why each one is refused.

    Hosts follow the operators: a new host that only refused operators would have used is left out, and a host that a
    refused operator stays on is not released. Each of these leaves a `WhyNot` too.
    """
    wanted = decision.planned
    difference = change(base, wanted)
    refused = {name: why for name, why in operators.items() if name in difference.operators}
    unwanted = {h for h in difference.hosts_added if _users(wanted, h) and _users(wanted, h) <= refused.keys()}
    planned = accept(
        base,
        wanted,
        operators=wanted.operators.keys() - refused.keys(),
        hosts={*difference.hosts_added, *difference.hosts_released} - hosts.keys() - unwanted,
    )
    vetoes = [WhyNot(who, _described(difference, name), why) for name, why in refused.items()]
    vetoes += _host_vetoes(who, wanted, planned, difference, hosts)
    for veto in vetoes:
        decision = decision.refused(planned, veto)
    return decision


def _host_vetoes(
    who: str, wanted: Allocation, planned: Allocation, difference: Change, reasons: Mapping[str, str]
) -> Iterator[WhyNot]:
    for host in difference.hosts_added:
        if host not in planned.hosts:
            why = reasons.get(host) or f"it would have served nothing but {_listed(_users(wanted, host))}"
            yield WhyNot(who, f"add {host}", why)
    for host in difference.hosts_released:
        if host in planned.hosts:
            why = reasons.get(host) or f"it still serves {_listed(_users(planned, host))}"
            yield WhyNot(who, f"release {host}", why)


def _described(difference: Change, operator: str) -> str:
    """What a change does to one operator, in the words of the change: `parse 4 -> 6 replicas`."""
    only = replace(
        difference,
        hosts_added=(),
        hosts_released=(),
        replicas={name: counts for name, counts in difference.replicas.items() if name == operator},
        moved_shards={name: count for name, count in difference.moved_shards.items() if name == operator},
        operators=(operator,),
    )
    return str(only)


def keep_hosts(base: Allocation, wanted: Allocation, at_least: int) -> Allocation:
    """`wanted` with enough of the hosts it releases kept, the fullest first, to have `at_least` hosts where possible.

    A kept host is not left empty, which would cost its rent and a migration for nothing: each operator keeps there the
    part of its replicas that it has there now.
    """
    released = sorted((h for h in base.hosts if h not in wanted.hosts), key=base.replicas_on, reverse=True)
    kept = released[: max(0, at_least - len(wanted.hosts))]
    if not kept:
        return wanted
    placed = {name: _kept_on(kept, base.operators[name], operator) for name, operator in wanted.operators.items()}
    staying = [h for h in base.hosts if h in kept or h in wanted.hosts]
    added = [h for h in wanted.hosts if h not in base.hosts]
    return Allocation((*staying, *added), placed)


def _kept_on(hosts: Collection[str], old: OperatorAllocation, new: OperatorAllocation) -> OperatorAllocation:
    """`new` with some of its replicas placed on hosts it left: those that serve most of the shards still there."""
    replica_hosts = list(new.replica_hosts)
    for host in (h for h in hosts if h in old.replica_hosts):
        staying = math.ceil(old.replica_hosts.count(host) * min(new.replicas, old.replicas) / old.replicas)
        movable = [r for r, h in enumerate(replica_hosts) if h not in hosts]
        at_home = _units_at_home(old, new, host)
        for replica in sorted(movable, key=lambda r: at_home[r], reverse=True)[:staying]:
            replica_hosts[replica] = host
    return OperatorAllocation(tuple(replica_hosts), new.shard_replicas)


def _units_at_home(old: OperatorAllocation, new: OperatorAllocation, host: str) -> list[int]:
    """Per replica of `new`, how many of its units `old` has on the host: shards, or the replica itself without shards."""
    if not new.shard_replicas:
        return [int(r < old.replicas and old.replica_hosts[r] == host) for r in range(new.replicas)]
    counts = [0] * new.replicas
    for shard, replica in enumerate(new.shard_replicas):
        counts[replica] += old.shard_host(shard) == host
    return counts


def _users(allocation: Allocation, host: str) -> set[str]:
    return set(allocation.operators_on(host))


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names))
