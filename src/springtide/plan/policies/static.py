"""The allocation stays as it is: what every elastic policy has to beat.

With parameters it is first brought to a given size, and then kept there: Storm with four replicas of every operator is
`static` with `replicas=4`. Replicas are then dealt over the hosts in turn, and shards over the replicas, as at the start of
an application. What the pool or an operator does not allow is brought as near as it can be, and said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from springtide.errors import require
from springtide.model.allocation import Allocation, new_host_names, spread
from springtide.model.application import Operator
from springtide.model.change import change
from springtide.model.decision import Decision, Expectation, WhyNot
from springtide.model.protocols import View
from springtide.plan.placement.loads import Loads


@dataclass(frozen=True, slots=True, kw_only=True)
class Static:
    """Keeps `replicas` replicas of every operator on `hosts` hosts; 0 is as many as there are. It needs no memory."""

    name: ClassVar[str] = "static"
    summary: ClassVar[str] = "keeps the allocation as it is, or brings it to a fixed size and keeps it there"
    reference: ClassVar[str] = (
        "A. Toshniwal, S. Taneja, A. Shukla, et al. Storm @Twitter. ACM SIGMOD International Conference on Management of "
        "Data, 2014, pp. 147-156: the parallelism of a running topology is fixed."
    )

    replicas: int = 0
    hosts: int = 0

    def __post_init__(self) -> None:
        for what in ("replicas", "hosts"):
            require(getattr(self, what) >= 0, f"{self.name}: {what} must be 0 (as it is) or more, not {getattr(self, what)}")

    def start(self) -> None:
        return None

    def decide(self, view: View, memory: None) -> tuple[Decision, None]:
        planned = self._planned(view)
        difference = change(view.requested, planned)
        size = f"{len(planned.hosts)} host{'s' if len(planned.hosts) > 1 else ''} and {planned.replicas} replicas"
        decision = Decision(
            planned=planned,
            reason=f"bring it to {size}: {difference}" if difference else f"keep {size}",
            expected=Expectation(utilisation=Loads(view).highest_utilisation(planned)),
            why_not=self._why_not(view),
        )
        return decision, memory

    def _planned(self, view: View) -> Allocation:
        now = view.requested
        if not self.replicas and not self.hosts:
            return now
        replicas = {o.name: self._replicas(o) or now.operators[o.name].replicas for o in view.application.operators}
        hosts = self._hosts(view)
        if hosts == now.hosts and all(now.operators[name].replicas == count for name, count in replicas.items()):
            return now
        return spread(view.application, hosts, replicas)

    def _replicas(self, operator: Operator) -> int:
        return min(self.replicas, operator.replica_limit)

    def _hosts(self, view: View) -> tuple[str, ...]:
        now = view.requested.hosts
        if not self.hosts:
            return now
        count = min(max(self.hosts, view.pool.min_hosts), view.pool.max_hosts)
        taken = frozenset({*now, *view.observation.hosts})
        return (*now[:count], *new_host_names(taken, max(0, count - len(now))))

    def _why_not(self, view: View) -> tuple[WhyNot, ...]:
        vetoes = []
        if self.hosts and not view.pool.min_hosts <= self.hosts <= view.pool.max_hosts:
            limits = f"the pool has between {view.pool.min_hosts} and {view.pool.max_hosts}"
            vetoes.append(WhyNot(self.name, f"{self.hosts} hosts", limits))
        short = [o for o in view.application.operators if self.replicas > o.replica_limit]
        if short:
            limits = f"they may have no more than {', '.join(str(o.replica_limit) for o in short)}"
            vetoes.append(WhyNot(self.name, f"{self.replicas} replicas of {', '.join(o.name for o in short)}", limits))
        return tuple(vetoes)
