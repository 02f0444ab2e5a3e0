"""How many rows each operator will be offered, once the sources' rows have come through the DAG."""

from __future__ import annotations

from collections.abc import Mapping

from springtide.model.application import Application


def propagate(application: Application, source_rates_per_s: Mapping[str, float]) -> dict[str, float]:
    """Rows per second offered to each operator when every operator keeps up: rates times selectivities, down the DAG.

    Unlike measured input rates this does not depend on which operator is the bottleneck today, so that relieving one
    does not come as a surprise to the next (the domino effect of PSPS, section IV).
    """
    rates = dict.fromkeys((s.name for s in application.sources), 0.0) | dict(source_rates_per_s)
    demand: dict[str, float] = {}
    for operator in application.operators:
        offered = 0.0
        for edge in application.inputs(operator.name):
            offered += rates[edge.upstream] * edge.selectivity
        rates[operator.name] = demand[operator.name] = offered
    return demand
