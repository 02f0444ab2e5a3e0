"""A decision as people want it: the policy's plan, but for what they hold still and for the hosts they want empty.

Rules: the policy's reason stays, and everything that is done otherwise than it planned leaves a `WhyNot` of "operator", the
person who operates the run. Where a plan has to be mended, what has been requested already is kept if it serves: otherwise the
same mend would move shards to and fro in every interval. The result is valid, and never has more hosts than the plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from springtide.model.allocation import Allocation, OperatorAllocation, new_host_names
from springtide.model.change import change
from springtide.model.decision import Decision, WhyNot
from springtide.model.protocols import View
from springtide.model.steering import Steering
from springtide.plan.placement.counts import allocate

WHO = "operator"


def steered(view: View, decision: Decision, steering: Steering) -> Decision:
    """The decision, as far as nobody wants it otherwise."""
    if not steering:
        return decision
    if steering.paused:
        decision = _paused(view, decision)
    decision = _without_old_names(view, decision, steering.draining)
    for operator in view.application.operators:
        if operator.name in steering.pins:
            decision = _pinned(view, decision, operator.name, min(steering.pins[operator.name], operator.replica_limit))
    return _drained(view, decision, steering.draining)


def _paused(view: View, decision: Decision) -> Decision:
    wanted = change(view.requested, decision.planned)
    decision = replace(decision, trigger_s=view.observation.trigger_s)
    return decision.refused(view.requested, WhyNot(WHO, str(wanted), "paused by hand")) if wanted else decision


def _without_old_names(view: View, decision: Decision, draining: Collection[str]) -> Decision:
    """A new host under the name of one that was to go would be drained as soon as it comes: it gets another name."""
    planned = decision.planned
    back = [host for host in planned.hosts if host in draining and host not in view.requested.hosts]
    if not back:
        return decision
    taken = frozenset({*planned.hosts, *view.requested.hosts, *view.observation.hosts, *draining})
    names = dict(zip(back, new_host_names(taken, len(back)), strict=True))
    renamed = Allocation(
        tuple(names.get(host, host) for host in planned.hosts),
        {
            name: OperatorAllocation(tuple(names.get(host, host) for host in placed.replica_hosts), placed.shard_replicas)
            for name, placed in planned.operators.items()
        },
    )
    vetoes = tuple(WhyNot(WHO, f"add {old}", f"it is drained by hand: {new} instead") for old, new in names.items())
    return replace(decision, planned=renamed, why_not=(*decision.why_not, *vetoes))


def _pinned(view: View, decision: Decision, operator: str, replicas: int) -> Decision:
    planned = decision.planned
    wanted = planned.operators[operator].replicas
    if wanted == replicas:
        return decision
    now = view.requested.operators[operator]
    if now.replicas == replicas and set(now.replica_hosts) <= set(planned.hosts):
        pinned = planned.with_operator(operator, now)
    else:
        as_planned = replace(view, observation=replace(view.observation, requested=planned))
        pinned = planned.with_operator(operator, allocate(as_planned, {operator: replicas}).operators[operator])
    veto = WhyNot(WHO, f"{wanted} replica{'s' if wanted > 1 else ''} of {operator}", f"pinned to {replicas} by hand")
    return decision.refused(pinned, veto)


def _drained(view: View, decision: Decision, draining: Collection[str]) -> Decision:
    """Everything on draining hosts goes to the others; those that are not needed to have enough hosts are released."""
    planned = decision.planned
    leaving = [host for host in planned.hosts if host in draining]
    if not leaving:
        return decision
    staying = [host for host in planned.hosts if host not in draining]
    if not staying:
        veto = WhyNot(WHO, f"drain {', '.join(leaving)}", "there is no other host that could take what is on it")
        return replace(decision, why_not=(*decision.why_not, veto))
    kept = leaving[: max(0, view.pool.min_hosts - len(staying))]
    emptied = _emptied(view, planned, staying)
    hosts = tuple(host for host in planned.hosts if host in staying or host in kept)
    allocation = Allocation(hosts, emptied)
    if allocation != planned:
        decision = decision.refused(allocation, WhyNot(WHO, f"keep {', '.join(leaving)} in use", "drained by hand"))
    why = f"at least {view.pool.min_hosts} hosts are needed; nothing is placed on it"
    vetoes = tuple(WhyNot(WHO, f"release {host}", why) for host in kept)
    return replace(decision, why_not=(*decision.why_not, *vetoes))


def _emptied(view: View, planned: Allocation, staying: Collection[str]) -> dict[str, OperatorAllocation]:
    """Every operator on hosts that stay: as requested where that serves, else with its homeless replicas on the emptiest."""
    load = Counter({host: planned.replicas_on(host) for host in staying})
    placed = {}
    for name, operator in planned.operators.items():
        now = view.requested.operators[name]
        if set(operator.replica_hosts) <= load.keys():
            placed[name] = operator
        elif now.replicas == operator.replicas and set(now.replica_hosts) <= load.keys():
            placed[name] = now
        else:
            hosts = tuple(host if host in load else _emptiest(load) for host in operator.replica_hosts)
            placed[name] = OperatorAllocation(hosts, operator.shard_replicas)
    return placed


def _emptiest(load: Counter[str]) -> str:
    """The host with the fewest replicas, which has one more from now on."""
    host = min(load, key=load.__getitem__)
    load[host] += 1
    return host
