"""What capacity a rate calls for, what waits included, and which numbers of replicas share shards well.

Flink autoscaler: `AutoScalerUtils.getTargetProcessingCapacity`, `ScalingMetricEvaluator.computeTargetDataRate`,
`alignment/ParallelismAligner.firstAlignedInRegion`.

| Flink | here | unit |
|---|---|---|
| CATCH_UP_DURATION | `catch_up_s` | s |
| restart time | `restart_s` | s |
| TARGET_DATA_RATE | `rate_per_s` | rows/s |
| CATCH_UP_DATA_RATE | `catch_up_per_s` | rows/s |
| number of key groups | `shards` | |
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from springtide.model.application import Application, Operator
from springtide.model.observation import FloatArray
from springtide.model.protocols import View
from springtide.plan.true_rates.window import Rates


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Rows per second an operator must be able to process, at any utilisation, to keep up and to work off what waits."""

    rate_per_s: float
    catch_up_per_s: float
    restart_s: float
    catch_up_s: float

    def at(self, utilisation: float, *, with_restart: bool = True) -> float:
        """Lag / catch-up + rate * restart / catch-up + rate / utilisation: with or without what waits after a restart.

        >>> of = Capacity(rate_per_s=700.0, catch_up_per_s=350.0, restart_s=1.0, catch_up_s=2.0)
        >>> round(of.at(0.9, with_restart=False)), round(of.at(0.7))
        (1128, 1700)
        """
        utilisation = min(max(utilisation, 0.0), 1.0)
        if utilisation == 0:
            return math.inf
        restart_per_s = self.rate_per_s * self.restart_s / self.catch_up_s if with_restart and self.catch_up_s > 0 else 0.0
        return self.catch_up_per_s + restart_per_s + self.rate_per_s / utilisation


def catch_up_rates(view: View, rates: Rates, catch_up_s: float) -> FloatArray:
    """Rows per second beyond the demand that work off every backlog in time, down the DAG."""
    application = view.application
    if catch_up_s == 0:
        return np.zeros(len(application.operators))
    extra: dict[str, float] = {}
    sent_on = dict(zip((o.name for o in application.operators), _sent_on(application, rates), strict=True))
    for operator in application.operators:
        seen = view.observation.operators.get(operator.name)
        own = seen.backlog_rows / catch_up_s if seen is not None else 0.0
        coming = sum(
            extra[edge.upstream] * sent_on[edge.upstream] * edge.selectivity
            for edge in application.inputs(operator.name)
            if edge.upstream in extra
        )
        extra[operator.name] = own + coming
    return np.array(list(extra.values()))


def _sent_on(application: Application, rates: Rates) -> list[float]:
    """What the selectivities of each operator's edges are to be multiplied by, to be those measured in the window."""
    said = [sum(edge.selectivity for edge in application.outputs(o.name)) for o in application.operators]
    measured = zip(rates.processed.tolist(), rates.emitted.tolist(), said, strict=True)
    return [emitted / processed / sum_ if processed > 0 and sum_ > 0 else 1.0 for processed, emitted, sum_ in measured]


def aligned(operator: Operator, current: int, wanted: int) -> int:
    """The first number of replicas, from what is wanted up, that divides the shards or leaves each replica fewer of them.

    A scale-down does not go beyond what there is now. Without shards there is nothing to align to.

    >>> aligned(Operator(name="a", service_time_s=1.0, shards=128, max_replicas=128), 16, 24)
    26
    """
    if not operator.keyed:
        return wanted
    shards = operator.shards
    last = operator.replica_limit if wanted > current else min(current, operator.replica_limit)
    good = (n for n in range(wanted, last + 1) if shards % n == 0 or shards // n < shards // wanted)
    return next(good, wanted)
