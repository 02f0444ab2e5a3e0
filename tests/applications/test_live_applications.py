"""Every application that comes with Springtide, live, while its allocation changes all the time: its answer stays exact."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from pyspark.sql import SparkSession

from springtide.applications import registry
from springtide.backends.spark.fusion import pool_of
from springtide.live import LiveRun
from springtide.model.allocation import Allocation, OperatorAllocation, new_host_names, spread
from springtide.model.decision import Decision
from springtide.model.protocols import View

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_SIZES = ((3, 3), (1, 1), (2, 2), (2, 2), (3, 1), (3, 3))  # hosts, and replicas of each operator; shards change every time
_EVERY = 3  # intervals


@dataclass(frozen=True, slots=True, kw_only=True)
class Restless:
    """Changes hosts and replicas in turn, and moves every shard to another replica each time."""

    name: ClassVar[str] = "restless"

    def start(self) -> int:
        return 0

    def decide(self, view: View, memory: int) -> tuple[Decision, int]:
        number, waits = divmod(memory, _EVERY)
        if waits:
            return Decision(planned=view.requested, reason="wait"), memory + 1
        hosts, replicas = _SIZES[number % len(_SIZES)]
        now = view.requested.hosts
        taken = frozenset({*now, *view.observation.hosts})
        names = (*now[:hosts], *new_host_names(taken, max(0, hosts - len(now))))
        even = spread(view.application, names, {o.name: replicas for o in view.application.operators})
        turned = {name: _turned(placed, number) for name, placed in even.operators.items()}
        return Decision(planned=Allocation(even.hosts, turned), reason=f"change number {number}"), memory + 1


def _turned(placed: OperatorAllocation, by: int) -> OperatorAllocation:
    replicas = placed.replicas
    return OperatorAllocation(placed.replica_hosts, tuple((replica + by) % replicas for replica in placed.shard_replicas))


@pytest.mark.parametrize("name", registry.names())
def test_the_answer_is_exact_while_everything_moves(name: str, spark: SparkSession, tmp_path: Path) -> None:
    shipped = registry.kind(name).small()
    live = LiveRun(
        application=shipped.application(tmp_path),
        pool=pool_of(1, 600 * 2**20, 1, 4),
        policy=Restless(),
        policy_name="restless",
        folder=str(tmp_path),
        hosts=2,
        interval_s=2.0,
    )

    result = live.run(spark, for_s=400.0, until_drained=True, silence_s=10.0)

    assert not result.failures
    assert result.drained, "the stream was not read to its end"
    changes = Counter(result.summary.reconfigurations)
    assert changes["hosts_added"] >= 1, changes
    assert changes["hosts_released"] >= 1, changes
    # A slow batch may see several changes at once: then shards have moved with the replicas, and are not counted apart.
    assert changes["scale_outs"] + changes["scale_ins"] + changes["shards_moved"] >= 2, changes
    answers = shipped.check(spark, tmp_path)
    assert answers[0].rows > 0
    assert not [str(checked) for checked in answers if checked.wrong]
