"""How many rows each operator will be offered, once the sources' rows have come through the DAG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from springtide.model.application import Application
from springtide.model.observation import Observation

_KEPT = 0.95  # of what was counted before, with each interval: operators with windows send on in bursts


@dataclass(frozen=True, slots=True)
class Flow:
    """Rows that an operator processed and sent on, the older ones counting less."""

    processed: float = 0.0
    emitted: float = 0.0

    def then(self, processed: float, emitted: float) -> Flow:
        return Flow(_KEPT * self.processed + processed, _KEPT * self.emitted + emitted)


@dataclass(frozen=True, slots=True)
class Flows:
    """What operators send on for each row they process, as measured: nobody says it of a live application."""

    of: Mapping[str, Flow] = field(default_factory=dict)

    def then(self, observation: Observation) -> Flows:
        """With one more interval. One in which an operator stood still tells nothing of it."""
        seen = {
            name: self.of.get(name, Flow()).then(o.processed_rows, o.emitted_rows)
            for name, o in observation.operators.items()
            if o.processed_rows > 0 or o.emitted_rows > 0
        }
        return Flows({**self.of, **seen})

    def per_row(self, operator: str, otherwise: float) -> float:
        """Rows sent on, over all edges, for each row processed; `otherwise` as long as none was."""
        flow = self.of.get(operator)
        return otherwise if flow is None or flow.processed <= 0 else flow.emitted / flow.processed


def propagate(
    application: Application, source_rates_per_s: Mapping[str, float], flows: Flows | None = None
) -> dict[str, float]:
    """Rows per second offered to each operator when every operator keeps up: rates times selectivities, down the DAG.

    Selectivities are the application's, or those that were measured: an edge then has its part of what its operator
    sends on. Unlike measured input rates this does not depend on which operator is the bottleneck today, so that relieving
    one does not come as a surprise to the next (the domino effect of PSPS, section IV).
    """
    sent = dict.fromkeys((s.name for s in application.sources), 0.0) | dict(source_rates_per_s)
    demand: dict[str, float] = {}
    for operator in application.operators:
        offered = 0.0
        for edge in application.inputs(operator.name):
            offered += sent[edge.upstream] * edge.selectivity
        demand[operator.name] = offered
        sent[operator.name] = offered if flows is None else offered * _correction(application, operator.name, flows)
    return demand


def gains(application: Application, flows: Flows | None = None) -> dict[str, dict[str, float]]:
    """Rows offered to each operator for each row of each source: demand is linear in the sources' rates."""
    return {source.name: propagate(application, {source.name: 1.0}, flows) for source in application.sources}


def _correction(application: Application, operator: str, flows: Flows) -> float:
    """What the selectivities of an operator's edges are to be multiplied by."""
    said = sum(edge.selectivity for edge in application.outputs(operator))
    return flows.per_row(operator, said) / said if said > 0 else 1.0
