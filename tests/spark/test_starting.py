"""An application inside a session of the user's own."""

from __future__ import annotations

import sys
from pathlib import Path

import pyspark.sql.functions as F
import pytest
from live_world import Kept, Load, answer, wait_for_answer
from pyspark.cloudpickle import register_pickle_by_value
from pyspark.sql import DataFrame, SparkSession

import springtide
from springtide.errors import SpringtideError
from springtide.journal.reading import read_journal
from springtide.journal.records import ObservationRecord

pytestmark = pytest.mark.spark
register_pickle_by_value(sys.modules[__name__])


def per_key(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").agg(F.count("*").alias("rows"))


def counting(load: Load, kept: Kept) -> springtide.Application:
    app = springtide.Application("own-session")
    source = app.source("rows", load.stream, ingest_time="offered_at")
    app.sink(app.operator("count", per_key, source, shards=4, output_mode="update"), kept.save)
    return app


def test_an_application_runs_under_a_policy_in_a_session_that_goes_on_after_it(spark: SparkSession, tmp_path: Path) -> None:
    load, kept = Load("generator:constant:rate_per_s=100,duration_s=4"), Kept()
    truth = answer(per_key(load.batch(spark)))
    journal = tmp_path / "run.jsonl"

    started = springtide.start(
        counting(load, kept), spark, folder=tmp_path / "app", max_hosts=4, interval_s=1.0, slo_s=7, journal=journal
    )
    try:
        wait_for_answer(started, kept, truth)
    finally:
        started.stop()

    assert not started.isActive
    assert started.awaitTermination(0)
    assert spark.range(3).count() == 3
    kept_run = read_journal(journal)
    assert (kept_run.run.policy.name, kept_run.run.application.slo.latency_s) == ("tide", 7)
    assert any(isinstance(record, ObservationRecord) for record in kept_run)


def test_what_is_refused_is_refused_before_anything_runs(spark: SparkSession, tmp_path: Path) -> None:
    app = counting(Load("generator:constant"), Kept())
    journal = tmp_path / "run.jsonl"
    journal.write_text("something else\n")

    with pytest.raises(SpringtideError, match="exists"):
        springtide.start(app, spark, folder=tmp_path / "app", max_hosts=4, journal=journal)
    with pytest.raises(SpringtideError, match="no policy"):
        springtide.start(app, spark, folder=tmp_path / "app", max_hosts=4, policy="best")
    assert not spark.streams.active
