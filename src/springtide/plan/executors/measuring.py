"""The executors of an application, and what Elasticutor's scheduler has to know of each.

L. Wang et al., "Elasticutor", SIGMOD 2019, sections 2.3, 3.1 and 4. An elastic executor owns a fixed part of an operator's keys
and uses as many cores as it needs, of several hosts if need be. Here:

* executor e of y owns shards floor(z e / y) up to floor(z (e + 1) / y) of the operator's z shards, for ever;
* an operator without shards, and one that may have one replica only, is one executor;
* an executor with k cores has k replicas, each on a host that gives it a core, and a replica serves one executor only. An
  operator's `replica_limit` is shared out among its executors in the same way as its shards are.

| symbol | here | unit |
|---|---|---|
| lambda_0 | `Network.source_per_s` | rows/s |
| lambda_j | `Network.arrivals_per_s[j]`: the operator's demand, by the rows that each executor's shards had | rows/s |
| mu_j | `Network.service_per_s[j]`: one over what a row takes, as measured | rows/s |
| s_j | `state_bytes(...)[j]` | bytes |

Demand comes from the present rate of the sources, come through the DAG (`View.demand_rows_per_s`). What has been waiting since
before is not in it: the paper's model knows arrivals only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from springtide.model.allocation import OperatorAllocation
from springtide.model.application import Operator
from springtide.model.observation import FloatArray
from springtide.model.protocols import View
from springtide.plan.placement.counts import service_time_s, shard_weights
from springtide.plan.sizing.jackson import Network

IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Team:
    """One operator's executors: the first of them is number `first` of the application's, its shards end at `ends[0]`.

    `busy_cores` is what the operator's demand keeps busy, `position` the place of each host among those requested.
    """

    view: View
    operator: Operator
    position: Mapping[str, int]
    busy_cores: float
    first: int
    ends: tuple[int, ...]

    @cached_property
    def count(self) -> int:
        return len(self.ends)

    @cached_property
    def placed(self) -> OperatorAllocation:
        return self.view.requested.operators[self.operator.name]

    @cached_property
    def seen(self) -> bool:
        """Whether the operator was offered anything: without that, nothing is known of its shards."""
        seen = self.view.observation.operators.get(self.operator.name)
        return seen is not None and bool(seen.shards.rows.any())

    @cached_property
    def weights(self) -> FloatArray:
        """The share of the operator's rows that each shard gets; without shards, that each replica gets."""
        if self.operator.keyed:
            return shard_weights(self.view, self.operator, self.placed)
        return np.full(self.placed.replicas, 1.0 / self.placed.replicas)

    @cached_property
    def routes(self) -> IntArray:
        return np.array(self.placed.shard_replicas, dtype=np.intp)

    @cached_property
    def replica_loads(self) -> FloatArray:
        """The share of the operator's rows that each replica gets where shards are routed now."""
        if not self.operator.keyed:
            return self.weights
        return np.bincount(self.routes, weights=self.weights, minlength=self.placed.replicas).astype(np.float64)

    @cached_property
    def host_of_replica(self) -> IntArray:
        return np.array([self.position[host] for host in self.placed.replica_hosts], dtype=np.intp)

    @cached_property
    def executor_of_shard(self) -> IntArray:
        return np.repeat(np.arange(self.count), np.diff((0, *self.ends)))

    @cached_property
    def executor_of_replica(self) -> IntArray:
        """The executor that has most of a replica's shards; one without shards goes to the executors in turn."""
        replicas = self.placed.replicas
        if self.count == 1:
            return np.zeros(replicas, dtype=np.intp)
        cells = np.bincount(self.routes * self.count + self.executor_of_shard, minlength=replicas * self.count)
        served = cells.reshape(replicas, self.count)
        owners: IntArray = np.where(served.any(axis=1), served.argmax(axis=1), np.arange(replicas) % self.count)
        return owners

    def slice(self, executor: int) -> slice:
        return slice(self.ends[executor - 1] if executor else 0, self.ends[executor])

    def shares(self) -> list[float]:
        """The part of the operator's rows that each executor gets."""
        if self.count == 1:
            return [1.0]
        shares: list[float] = np.add.reduceat(self.weights, (0, *self.ends[:-1])).tolist()
        return shares

    def most_cores(self) -> list[int]:
        """How many replicas each executor may have."""
        limit = self.operator.replica_limit
        if self.count == 1:
            return [limit]
        allowed = pairwise(_parts(limit, self.count))
        owned = pairwise((0, *self.ends))
        return [min(b - a, d - c) for (a, b), (c, d) in zip(allowed, owned, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Executors:
    """All executors, operator by operator; `position` is the place of each host among those requested."""

    teams: tuple[Team, ...]
    network: Network
    position: Mapping[str, int]

    @property
    def count(self) -> int:
        return len(self.network.arrivals_per_s)


def measure(view: View, per_operator: int = 1) -> Executors:
    """The executors of a view's application, `per_operator` of every operator that has shards to share out."""
    teams: list[Team] = []
    arrivals: list[float] = []
    service: list[float] = []
    most: list[int] = []
    position = {host: i for i, host in enumerate(view.requested.hosts)}
    for operator in view.application.operators:
        count = min(per_operator, operator.replica_limit) if operator.keyed else 1
        ends = tuple(_parts(operator.shards, count)[1:]) if operator.keyed else (0,)
        demand, takes_s = view.demand_rows_per_s.get(operator.name, 0.0), service_time_s(view, operator)
        team = Team(view, operator, position, demand * takes_s, len(arrivals), ends)
        teams.append(team)
        arrivals += [demand * share for share in team.shares()]
        service += [1.0 / takes_s] * count
        most += team.most_cores()
    source_per_s = view.observation.offered_rows / view.observation.interval_s
    network = Network(source_per_s=source_per_s, arrivals_per_s=arrivals, service_per_s=service, most_servers=most)
    return Executors(teams=tuple(teams), network=network, position=position)


def state_bytes(view: View, executors: Executors) -> FloatArray:
    """s_j: the state of all an executor's shards, or of all replicas of an operator without shards."""
    found: list[float] = []
    for team in executors.teams:
        seen = view.observation.operators.get(team.operator.name)
        sizes = None if seen is None else seen.shards.state_bytes
        if not team.operator.keyed:
            found.append(float(sizes.sum()) if sizes is not None else 0.0)
        elif sizes is None or len(sizes) != team.operator.shards:
            found += [float(team.operator.state_bytes_per_shard * (b - a)) for a, b in pairwise((0, *team.ends))]
        else:
            found += [float(sizes.sum())] if team.count == 1 else np.add.reduceat(sizes, (0, *team.ends[:-1])).tolist()
    return np.array(found)


def data_bytes_per_s(view: View, executors: Executors) -> FloatArray:
    """What goes into and comes out of each executor. A row has the size its receiver says."""
    found: list[float] = []
    for team in executors.teams:
        sent = _sent_per_row(view, team.operator.name)
        out_bytes = sum(rows * view.application.operator(name).row_bytes for name, rows in sent.items())
        arrivals = executors.network.arrivals_per_s[team.first : team.first + team.count]
        found += [rate * (team.operator.row_bytes + out_bytes) for rate in arrivals]
    return np.array(found)


def _sent_per_row(view: View, name: str) -> dict[str, float]:
    """Rows sent to each operator downstream for each row processed: as measured in all, in the application's proportions."""
    said = {edge.downstream: edge.selectivity for edge in view.application.outputs(name)}
    seen = view.observation.operators.get(name)
    if seen is None or seen.processed_rows <= 0 or not (total := sum(said.values())) > 0:
        return said
    measured = seen.emitted_rows / seen.processed_rows / total
    return {downstream: selectivity * measured for downstream, selectivity in said.items()}


def _parts(items: int, parts: int) -> list[int]:
    """Where each of so many parts begins, and where the last ends.

    >>> _parts(10, 4)
    [0, 2, 5, 7, 10]
    """
    return [items * part // parts for part in range(parts + 1)]
