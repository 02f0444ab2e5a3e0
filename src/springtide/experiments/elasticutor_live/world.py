"""The setting of the live runs: a small fixed cluster, the policies, and what a row costs.

What the paper's cluster does with 256 cores, four slots of two executors do here. So that the shapes can be the same:

* a row waits for its service time, as for a service, instead of using a processor: this machine has fewer cores than slots;
* the most frequent key needs as large a part of a core as in the paper. With 10,000 keys of Zipf 0.5 it has 0.50 % of the rows
  of 256 cores, 1.29 cores' worth; of four cores that is 32 %, which takes Zipf 1.4 with as many keys;
* the generator makes 60 % of what all cores could do: the rest is what micro-batches cost, and what that key cannot use.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from springtide.backends.spark.fusion import pool_of
from springtide.experiments.elasticutor.world import ELASTIC, EXECUTOR_CENTRIC, NAIVE, RESOURCE_CENTRIC, STATIC, TIDE
from springtide.model.allocation import Pool
from springtide.model.decision import Decision
from springtide.model.protocols import AnyPolicy, View
from springtide.plan.registry import make_guard, make_policy
from springtide.workload.loading import load

__all__ = ["ELASTIC", "NAIVE", "RESOURCE_CENTRIC", "STATIC", "TIDE"]

HOSTS, CORES, MEMORY_MB = 2, 2, 600
SLOTS = HOSTS * CORES
SHARDS = 8
EXECUTORS = 2  # elastic executors of an operator: one for each host
ROW_S = 0.020
ROWS_PER_BATCH = 300
LOAD = 0.6  # of what all slots could do

INTERVAL_S = 2.0
BEGINS_AFTER_S = 5.0  # the first batches tell a policy nothing: nobody decides before
WARM_UP_S = 10.0  # not counted, and with half the rows: the first batches are slow, and what they leave waiting is caught up on
_GRACE_S = 8.0  # from one repartitioning to the next: what it takes, and a batch to measure


def rows_per_s() -> float:
    """What the generator makes."""
    return LOAD * SLOTS / ROW_S


def trace(counted_s: float) -> str:
    """Half of the rows for the warm-up, and then all of them."""
    levels = [rows_per_s() / 2] + [rows_per_s()] * math.ceil(counted_s / WARM_UP_S)
    return f"generator:steps:levels={'/'.join(f'{level:g}' for level in levels)},hold_s={WARM_UP_S:g}"


def rows_of(spec: str) -> int:
    """How many rows a trace has in all."""
    return round(load(spec, seed=0).rows)


def pool() -> Pool:
    """All hosts, from the start to the end."""
    return pool_of(CORES, MEMORY_MB * 2**20, HOSTS, HOSTS)


def made_policy(name: str) -> AnyPolicy:
    """As in the simulated runs: T_max is a row's service time, which nobody can reach, so all slots are used."""
    return _FromThen(_made(name), BEGINS_AFTER_S)


def _made(name: str) -> AnyPolicy:
    if name in (STATIC, TIDE):
        return make_policy(name, {})
    if name in EXECUTOR_CENTRIC:
        return make_policy(name, {"t_max_s": ROW_S, "executors": EXECUTORS})
    return make_guard("cooldown", {"grace_s": _GRACE_S, "scope": "application"}, make_policy(name, {"t_max_s": ROW_S}))


@dataclass(frozen=True, slots=True)
class _FromThen:
    """A policy that leaves everything as it is until `from_s`."""

    policy: AnyPolicy
    from_s: float

    def start(self) -> Any:
        return self.policy.start()

    def decide(self, view: View, memory: Any) -> tuple[Decision, Any]:
        if view.now_s < self.from_s:
            return Decision(planned=view.requested, reason="the first batches are not judged by"), memory
        return self.policy.decide(view, memory)
