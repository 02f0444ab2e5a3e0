"""How many rows each operator will be offered, once the sources' rows have come through the DAG."""

from __future__ import annotations

from collections.abc import Mapping

from springtide.model.application import Application


def propagate(application: Application, source_rates_per_s: Mapping[str, float]) -> dict[str, float]:
    """Rows per second offered to each operator when every operator keeps up: rates times selectivities, down the DAG.

    Unlike measured input rates this does not depend on which operator is the bottleneck today, so that relieving one
    does not come as a surprise to the next (the domino effect of PSPS, section IV).
    """
    rates = dict(source_rates_per_s)
    for operator in application.operators:
        rates[operator.name] = sum(rates.get(e.upstream, 0.0) * e.selectivity for e in application.inputs(operator.name))
    return {o.name: rates[o.name] for o in application.operators}
