"""What operators need in an interval that a stop has disturbed, where the CPU time they used does not tell.

V. Cardellini, F. Lo Presti, M. Nardelli, G. Russo Russo, "Towards Hierarchical Autonomous Control for Elastic Data Stream
Processing in the Fog", Euro-Par 2017 Workshops, section 3.1, has S_alpha and U_r measured, and does not say over what time.
While a reconfiguration stops an application nothing uses CPU time, and afterwards what has waited uses more than its share:
read as they are, these figures ask for a scale-in, and then for a scale-out, each of which is the next stop.

Departure from the paper: in an interval with a stop, and in those after it that begin with rows which it left waiting, S_alpha
and U_r are what the rows that come in take: an operator's demand, from the present rate of the sources, times what a row
takes. They do not depend on what stood still when. In all other intervals they are as measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from springtide.model.application import Operator
from springtide.model.observation import FloatArray, Observation, OperatorObservation
from springtide.model.protocols import View
from springtide.plan.placement.counts import service_time_s, shard_weights

_WAITING = 0.01  # of an interval's rows: fewer wait at any time


def is_disturbed(seen: Observation, *, rows_left: bool) -> bool:
    """Whether a stop has a part in what was measured; `rows_left`: one left rows waiting at the start of the interval."""
    return rows_left or seen.downtime_s > 0


def leaves_rows(seen: Observation) -> bool:
    """Whether more rows wait at the end of an interval than always do."""
    return seen.backlog_rows > _WAITING * seen.offered_rows


def undisturbed(view: View) -> View:
    """The view with the utilisation that operators and hosts would have if nothing had stood still."""
    seen = view.observation
    operators = dict(seen.operators)
    for operator in view.application.operators:
        if operator.name in operators:
            operators[operator.name] = _as_offered(view, operator, operators[operator.name])
    busy_cores = _busy_cores(seen, operators)
    hosts = {name: replace(host, utilisation=busy_cores.get(name, 0.0) / host.cores) for name, host in seen.hosts.items()}
    return replace(view, observation=replace(seen, operators=operators, hosts=hosts))


def _as_offered(view: View, operator: Operator, seen: OperatorObservation) -> OperatorObservation:
    placed = view.observation.observed.operators[operator.name]
    cores = view.demand_rows_per_s.get(operator.name, 0.0) * service_time_s(view, operator)
    if operator.keyed:
        by_shard = cores * shard_weights(view, operator, placed)
        used: FloatArray = np.bincount(placed.shard_replicas, weights=by_shard, minlength=placed.replicas).astype(np.float64)
    else:
        by_shard = used = np.full(placed.replicas, cores / placed.replicas)
    shards = replace(seen.shards, busy_s=by_shard * view.observation.interval_s)
    return replace(seen, replica_utilisation=used, utilisation=cores / placed.replicas, shards=shards)


def _busy_cores(seen: Observation, operators: Mapping[str, OperatorObservation]) -> dict[str, float]:
    """What each host's replicas need together."""
    busy: dict[str, float] = {}
    for name, operator in operators.items():
        hosts = seen.observed.operators[name].replica_hosts
        for host, used in zip(hosts, operator.replica_utilisation.tolist(), strict=True):
            busy[host] = busy.get(host, 0.0) + used
    return busy
