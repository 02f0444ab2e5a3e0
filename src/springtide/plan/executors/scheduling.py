"""Elasticutor's dynamic scheduler as a whole: how many cores for each executor, of which hosts, and with which shards.

L. Wang et al., "Elasticutor", SIGMOD 2019, section 4 (`sizing.jackson` and `assignment`), and section 3.1 (`routing`). What is
planned from is the allocation requested. Nothing is computed before it is known that it is needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from springtide.model.allocation import Allocation
from springtide.model.decision import Decision, Expectation, WhyNot
from springtide.model.protocols import View
from springtide.plan.executors.assignment import Wants, assign, transition_bytes
from springtide.plan.executors.hosting import Hosts, available_cores, kept_hosts, room_per_host, within_room
from springtide.plan.executors.measuring import Executors, IntArray, data_bytes_per_s, measure, state_bytes
from springtide.plan.executors.routing import arrange, uneven
from springtide.plan.executors.wording import busiest_host, finding, refusals, summary
from springtide.plan.placement.counts import hosts_for
from springtide.plan.sizing.jackson import Sizing, fewest_servers
from springtide.plan.sizing.objective import mean_within


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How an executor-centric policy schedules. Without `saves_moves`, to move state or to send data far costs nothing."""

    who: str
    executors: int
    t_max_s: float
    theta: float
    saves_moves: bool
    phi_bytes_per_s: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Plan:
    """The cores of every executor on every host after, whose have changed, and how they were found."""

    hosts: Hosts
    cores: IntArray
    changed: NDArray[np.bool_]
    phi_bytes_per_s: float
    moved_bytes: float = 0.0


def t_max_s(view: View, wanted_s: float) -> float:
    """The mean latency to keep: the one that was asked for, or (0) the one the SLO comes down to."""
    return wanted_s or mean_within(view.application.slo)


def schedule(view: View, rules: Rules) -> Decision:
    """One decision of the scheduler."""
    limit_s = t_max_s(view, rules.t_max_s)
    executors = measure(view, rules.executors)
    sizing = fewest_servers(executors.network, limit_s, available_cores(executors.network, view.pool))
    before = assigned(executors)
    plan = _planned(view, rules, executors, sizing, before)
    planned = _routed(view, rules, executors, plan)
    moving = f" (about {plan.moved_bytes / 1e6:.1f} MB of state)" if plan.moved_bytes > 0 else ""
    return Decision(
        planned=planned,
        reason=f"{finding(sizing, limit_s)}: {summary(view.requested, planned)}{moving}",
        expected=Expectation(utilisation=busiest_host(view, executors, planned)),
        why_not=(*refusals(rules.who, view, executors, sizing, limit_s), *_far_from_home(rules, plan)),
    )


def assigned(executors: Executors) -> IntArray:
    """The assignment that the requested allocation is: `cores[j, i]` replicas of executor j on host i."""
    position = executors.position
    hosts = [position[host] for team in executors.teams for host in team.placed.replica_hosts]
    owners: list[int] = []
    for team in executors.teams:
        owners += [team.first] * team.placed.replicas if team.count == 1 else (team.first + team.executor_of_replica).tolist()
    cells = np.array(owners, dtype=np.intp) * len(position) + np.array(hosts, dtype=np.intp)
    return np.bincount(cells, minlength=executors.count * len(position)).reshape(executors.count, len(position))


def _planned(view: View, rules: Rules, executors: Executors, sizing: Sizing, before: IntArray) -> _Plan:
    now = view.requested.hosts
    wanted = np.array(sizing.servers, dtype=np.intp)
    most = np.array(executors.network.most_servers, dtype=np.intp)
    count = hosts_for(view.pool, int(wanted.sum()))
    room = room_per_host(view.pool, count, int(wanted.sum()))
    totals = before.sum(axis=1)
    if count == len(now) and (wanted <= totals).all() and (totals <= most).all() and (before.sum(axis=0) <= room).all():
        nothing = np.zeros(len(totals), dtype=np.bool_)
        return _Plan(hosts=Hosts.between(now, now), cores=before, changed=nothing, phi_bytes_per_s=rules.phi_bytes_per_s)
    sizes, free = state_bytes(view, executors), np.zeros(len(wanted))
    wants = Wants(
        wanted=wanted,
        capacity=np.full(count, room, dtype=np.intp),
        state_bytes=sizes if rules.saves_moves else free,
        intensity=data_bytes_per_s(view, executors) / wanted if rules.saves_moves else free,
    )
    hosts = Hosts.between(now, kept_hosts(view, before, wants.state_bytes, count))
    there = hosts.on_those_after(before)
    cores, phi = assign(wants, within_room(wants, there, most), rules.phi_bytes_per_s)
    return _Plan(
        hosts=hosts,
        cores=cores,
        changed=(cores != there).any(axis=1) | (there.sum(axis=1) < totals),
        phi_bytes_per_s=phi,
        moved_bytes=transition_bytes(sizes, totals, there, cores),
    )


def _routed(view: View, rules: Rules, executors: Executors, plan: _Plan) -> Allocation:
    now = view.requested
    operators = dict(now.operators)
    changed = plan.changed.tolist()
    for team in executors.teams:
        rows = slice(team.first, team.first + team.count)
        if any(changed[rows]) or uneven(team, rules.theta):
            operators[team.operator.name] = arrange(team, plan.cores[rows], plan.hosts, rules.theta)
    same = plan.hosts.after == now.hosts and all(placed is now.operators[name] for name, placed in operators.items())
    return now if same else Allocation(plan.hosts.after, operators)


def _far_from_home(rules: Rules, plan: _Plan) -> list[WhyNot]:
    if plan.phi_bytes_per_s <= rules.phi_bytes_per_s:
        return []
    what = f"keep executors of more than {rules.phi_bytes_per_s / 1e3:.0f} kB/s per core on their own host"
    why = f"there are not cores enough; those of more than {plan.phi_bytes_per_s / 1e3:.0f} kB/s are"
    return [WhyNot(rules.who, what, why)]
