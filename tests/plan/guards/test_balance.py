"""Shards go from replicas that have much to do to those that have little, while the policy changes nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from guard_stories import APPLICATION, Scripted, placed, view, why_nots

from springtide.errors import InvalidValue
from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.model.observation import ShardLoads
from springtide.model.protocols import View
from springtide.plan.guards.balance import Balanced
from springtide.plan.placement.balancing import imbalance

START = placed(2, count=2)


def skewed(requested: Allocation, shard_busy_s: list[float], utilisation: float = 0.5) -> View:
    """The shards of `count` were busy so long."""
    seen = view(requested, utilisation=utilisation)
    count = seen.observation.operators["count"]
    none = np.zeros(len(shard_busy_s))
    shards = ShardLoads(rows=none, busy_s=np.array(shard_busy_s), backlog_rows=none, state_bytes=none)
    operators = {**seen.observation.operators, "count": replace(count, shards=shards)}
    return replace(seen, observation=replace(seen.observation, operators=operators))


def decided(asked: View, planned: Allocation | None = None, **parameters: float):
    guard = Balanced(Scripted((planned or asked.requested,)), **parameters)
    decision, _ = guard.decide(asked, guard.start())
    decision.planned.check(APPLICATION)
    return decision


def test_the_fewest_shards_that_help_are_moved() -> None:
    routes = START.operators["count"].shard_replicas
    busy_s = [3.0 if replica == 0 else 1.0 for replica in routes]

    decision = decided(skewed(START, busy_s))

    after = decision.planned.operators["count"]
    assert after.replica_hosts == START.operators["count"].replica_hosts
    assert imbalance(np.bincount(after.shard_replicas, busy_s)) <= 1.2
    assert sum(a != b for a, b in zip(routes, after.shard_replicas, strict=True)) == 1
    assert why_nots(decision) == [
        "balance: not leave count as it is, because its busiest replica has 1.50 times the mean to do,"
        " and 1.12 with 1 shard elsewhere"
    ]
    assert decision.reason == "the script says so"


def test_even_enough_is_left_alone() -> None:
    busy_s = [1.3, 1.0, 1.3, 1.0, 1.3, 1.0, 0.3, 0.8]  # 4.2 s and 3.8 s
    assert decided(skewed(START, busy_s)).planned == START
    assert decided(skewed(START, busy_s), theta=1.0).planned != START


def test_idle_replicas_are_left_alone() -> None:
    routes = START.operators["count"].shard_replicas
    busy_s = [3.0 if replica == 0 else 1.0 for replica in routes]
    assert decided(skewed(START, busy_s, utilisation=0.29)).planned == START
    assert decided(skewed(START, busy_s, utilisation=0.29), least=0.2).planned != START


def test_what_the_policy_changes_comes_first() -> None:
    wanted = placed(2, count=4)
    assert decided(skewed(START, [6.0, 1.0] * 4), planned=wanted).planned == wanted


def test_what_has_not_arrived_yet_is_waited_for() -> None:
    under_way = START.with_operator("count", OperatorAllocation(("host-0", "host-1"), (0,) * 8))
    seen = skewed(START, [6.0, 1.0] * 4)
    asked = replace(seen, observation=replace(seen.observation, requested=under_way))
    assert decided(asked).planned == under_way


@pytest.mark.parametrize("parameters", [{"theta": 0.9}, {"least": 1.5}, {"least": -0.1}])
def test_parameters_that_mean_nothing_are_refused(parameters: dict[str, float]) -> None:
    with pytest.raises(InvalidValue, match=next(iter(parameters))):
        Balanced(Scripted((START,)), **parameters)
