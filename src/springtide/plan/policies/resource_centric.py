"""Keys go to cores: an operator has a replica for each core the model asks for, and its keys are dealt out among them.

L. Wang, T. Z. J. Fu, R. T. B. Ma, M. Winslett, Z. Zhang, "Elasticutor: Rapid Elasticity for Realtime Stateful Stream
Processing", SIGMOD 2019, pp. 573-588, sections 1, 2.2 and 5: the resource-centric approach (RC), the paper's baseline.
Executors are created and deleted, each is bound to one core, and the operator's key space is repartitioned among all of them.
RC has the same performance model and the same load balancing as Elasticutor; it knows neither migration cost nor locality.

That upstream has to stop and all have to agree when keys are repartitioned is a matter of the backend, not of the decision: the
simulator's `moves.synchronisation_per_upstream_replica_s` and `activation = "restart"`.

Departures from the paper:

* Replicas go to the host with the least to do (`placement.counts`), where the paper deals them over the nodes in turn; and
  when something changes, whole replicas move between hosts that are far apart in load.
* T_max from the SLO, and hosts that are rented, are as in `elastic-executors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from springtide.errors import require
from springtide.model.allocation import Allocation
from springtide.model.decision import Decision, Expectation
from springtide.model.protocols import View
from springtide.plan.executors.hosting import available_cores
from springtide.plan.executors.measuring import Executors, measure
from springtide.plan.executors.routing import uneven
from springtide.plan.executors.scheduling import t_max_s
from springtide.plan.executors.wording import busiest_host, finding, refusals, summary
from springtide.plan.placement.counts import allocate, hosts_for
from springtide.plan.sizing.jackson import fewest_servers


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceCentric:
    """Elasticutor's baseline RC: the fewest replicas whose E[T] is at most `t_max_s` (0: from the SLO), keys dealt anew.

    An operator's shards are balanced over all of its replicas to within `theta`. It needs no memory.
    """

    name: ClassVar[str] = "resource-centric"
    summary: ClassVar[str] = "a replica per core by a queueing model, and each operator's keys dealt anew (Elasticutor's RC)"
    reference: ClassVar[str] = (
        "L. Wang, T. Z. J. Fu, R. T. B. Ma, M. Winslett, Z. Zhang. Elasticutor: Rapid Elasticity for Realtime Stateful Stream "
        "Processing. ACM SIGMOD International Conference on Management of Data, 2019, pp. 573-588. Sections 2.2 and 5, RC."
    )

    t_max_s: float = 0.0
    theta: float = 1.2

    def __post_init__(self) -> None:
        require(self.t_max_s >= 0, f"{self.name}: t_max_s must be 0 (from the SLO) or more, not {self.t_max_s}")
        require(self.theta >= 1, f"{self.name}: theta must be at least 1, not {self.theta}")

    def start(self) -> None:
        return None

    def decide(self, view: View, memory: None) -> tuple[Decision, None]:
        limit_s = t_max_s(view, self.t_max_s)
        executors = measure(view)
        sizing = fewest_servers(executors.network, limit_s, available_cores(executors.network, view.pool))
        replicas = {team.operator.name: sizing.servers[team.first] for team in executors.teams}
        planned = self._planned(view, executors, replicas, hosts_for(view.pool, sum(sizing.servers)))
        decision = Decision(
            planned=planned,
            reason=f"{finding(sizing, limit_s)}: {summary(view.requested, planned)}",
            expected=Expectation(utilisation=busiest_host(view, executors, planned)),
            why_not=tuple(refusals(self.name, view, executors, sizing, limit_s)),
        )
        return decision, memory

    def _planned(self, view: View, executors: Executors, replicas: Mapping[str, int], hosts: int) -> Allocation:
        """Nothing is repartitioned while the numbers are right and the replicas of every operator even enough."""
        now = view.requested
        as_wanted = len(now.hosts) == hosts and all(now.operators[name].replicas == n for name, n in replicas.items())
        if as_wanted and not any(uneven(team, self.theta) for team in executors.teams):
            return now
        return allocate(view, replicas, hosts, theta=self.theta)
