"""Every policy in charge of one live application, one after the other: what they plan can be done, and no row is lost."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pyspark.sql.functions as F
import pytest
from live_world import Kept, Load, answer, running, wait_until
from pyspark.cloudpickle import register_pickle_by_value
from pyspark.sql import DataFrame, SparkSession

import springtide
from springtide.forecast.running.choosing import forecast_for
from springtide.loop import ControlLoop
from springtide.model.action import Action
from springtide.model.application import Application
from springtide.model.decision import Decision, Outcome
from springtide.model.observation import Observation
from springtide.plan.registry import make_policy, policies

pytestmark = [pytest.mark.spark, pytest.mark.full]
register_pickle_by_value(sys.modules[__name__])

INTERVALS = 4


def even(rows: DataFrame) -> DataFrame:
    return rows.where(F.col("key") % 2 == 0)


def per_key(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").agg(F.count("*").alias("rows"))


class Checked:
    """A recorder that looks at every decision of a policy."""

    def __init__(self, name: str, application: Application) -> None:
        self.name, self.application, self.decisions = name, application, 0

    def observation(self, observation: Observation) -> None: ...

    def decision(self, observation: Observation, decision: Decision, actions: Sequence[Action]) -> None:
        decision.planned.check(self.application)
        assert decision.reason, self.name
        assert 1 <= len(decision.planned.hosts) <= 4, self.name
        assert bool(actions) == (decision.planned != observation.requested), self.name
        self.decisions += 1

    def outcome(self, outcome: Outcome, time_s: float) -> None: ...


def test_every_policy_can_be_in_charge_and_no_row_is_lost(spark: SparkSession, tmp_path: Path) -> None:
    seconds = len(policies()) * INTERVALS
    load, kept = Load(f"generator:constant:rate_per_s=120,duration_s={seconds}", max_rows_per_batch=400), Kept()
    app = springtide.Application("all")
    rows = app.source("rows", load.stream, ingest_time="offered_at")
    halved = app.operator("even", even, rows, replicas=2)
    app.sink(app.operator("count", per_key, halved, shards=8, output_mode="update"), kept.save)
    truth = answer(per_key(even(load.batch(spark))))
    with running(spark, app, tmp_path / "app") as backend:
        wait_until(backend, lambda _: len(kept.batches) >= 1)
        for name in policies():
            checked = Checked(name, backend.application)
            policy = make_policy(name, {})
            with forecast_for(policy, 1.0) as forecast:
                loop = ControlLoop(
                    application=backend.application,
                    pool=backend.pool,
                    policy=policy,
                    interval_s=1.0,
                    forecast=forecast,
                )
                loop.run(backend, checked, backend.clock.now_s() + INTERVALS)
            assert checked.decisions >= 2, name
            assert not backend.failures(), (name, backend.failures())
        wait_until(backend, lambda _: kept.latest() == truth)
    assert kept.latest() == truth
