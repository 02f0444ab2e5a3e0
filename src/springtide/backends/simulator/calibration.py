"""What micro-batches cost on real Spark: the simulator's default costs, and how they are taken from journals of live runs.

`spark_costs.toml` has the costs that `springtide calibrate` took from live runs, and says which. The simulator's overhead of a
batch is its driver's time (A of `model.batch`) and its slot time whatever its size (E), which is small.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from springtide.backends.simulator.settings import MicroBatch, ServiceModel, SimulatorSettings
from springtide.config import build
from springtide.errors import SpringtideError
from springtide.model.batch import BatchCosts, Estimate

LEAST_BATCHES = 20.0  # that an operator's costs rest on, to be used
_LEAST_ERROR = 0.05  # of a value: what is known better than this counts as if it were not
_MOST_ERROR_S = 1e6  # of what is not known at all
_FILE = "spark_costs.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkCosts:
    """Costs of micro-batches, and where they were measured."""

    micro_batch: MicroBatch
    origin: dict[str, Any]


def spark_costs() -> SparkCosts:
    """The costs that come with Springtide."""
    table = tomllib.loads(files(__package__).joinpath(_FILE).read_text(encoding="utf-8"))
    return SparkCosts(micro_batch=build(MicroBatch, table["micro_batch"], f"{_FILE}: [micro_batch]"), origin=table["origin"])


def settings_for(service: ServiceModel) -> SimulatorSettings:
    """The simulator's settings for one of its service models; micro-batches cost what they cost on Spark."""
    if service is ServiceModel.TUPLE:
        return SimulatorSettings()
    return SimulatorSettings(service=service, micro_batch=spark_costs().micro_batch)


def combine_costs(operators: Sequence[BatchCosts]) -> MicroBatch:
    """What a batch costs by all operators that have had enough of them, each weighted by how well its costs are known."""
    known = [costs for costs in operators if costs.batches >= LEAST_BATCHES]
    if not known:
        raise SpringtideError(
            f"no operator has costs that rest on {LEAST_BATCHES:g} batches or more: use the journal of a longer live run"
        )
    return MicroBatch(
        overhead_s=_mean([c.driver_s for c in known]) + _mean([c.batch_s for c in known]),
        stage_overhead_s=0.0,
        stages=1,
        task_overhead_s=_mean([c.task_s for c in known]),
        shard_overhead_s=_mean([c.shard_s for c in known]),
    )


def _mean(estimates: Sequence[Estimate]) -> float:
    """The mean, weighted by one over the squared error."""
    weights = [1 / min(max(e.error, _LEAST_ERROR * e.value, 1e-6), _MOST_ERROR_S) ** 2 for e in estimates]
    return sum(w * e.value for w, e in zip(weights, estimates, strict=True)) / sum(weights)
