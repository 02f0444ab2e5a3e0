"""Things go wrong: the answer is that of a batch all the same, no row lost and none twice."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pyspark.sql.functions as F
import pytest
from live_world import Kept, Load, answer, executor_pids, observations, running, wait_until
from pyspark.cloudpickle import register_pickle_by_value
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType

from springtide.backends.spark.application import Application
from springtide.backends.spark.backend import SparkBackend

pytestmark = pytest.mark.spark
register_pickle_by_value(sys.modules[__name__])  # executors cannot import a test


def sums(df: DataFrame) -> DataFrame:
    return df.groupBy("key").agg(F.count("*").alias("rows"), F.sum("value").alias("total"))


def two_operators(load: Load, kept: Kept) -> Application:
    app = Application("sums")
    rows = app.operator(
        "clean", lambda df: df.where("value % 3 != 0"), app.source("events", load.stream, ingest_time="offered_at")
    )
    app.sink(app.operator("sum", sums, rows, shards=4, replicas=2, output_mode="update", max_rows_per_batch=80), kept.save)
    return app


def truth_of(load: Load, spark: SparkSession) -> dict[tuple[object, ...], tuple[object, ...]]:
    return answer(sums(load.batch(spark).where("value % 3 != 0")))


@pytest.mark.slow
@pytest.mark.parametrize("how_many", [1, 2], ids=["an executor", "all executors of the application"])
def test_executors_are_killed_in_the_middle_of_a_batch(spark: SparkSession, tmp_path: Path, how_many: int) -> None:
    load, kept = Load("generator:steps:levels=200,hold_s=8", max_rows_per_batch=80), Kept()
    whole = truth_of(load, spark)
    lost: list[str] = []
    with running(spark, two_operators(load, kept), tmp_path / "app", hosts=2) as backend:
        wait_until(backend, lambda o: len(kept.batches) >= 2)
        in_a_batch(backend)
        pids = executor_pids(host.executor.id for host in backend._fleet.hosts() if host.executor is not None)
        assert len(pids) == 2
        for pid in list(pids.values())[:how_many]:
            os.kill(pid, signal.SIGKILL)
        for observation in observations(backend):
            lost += [e for e in observation.events if "was lost" in e]
            if len(lost) >= how_many and kept.latest() == whole:
                break
        assert not backend.failures()


def in_a_batch(backend: SparkBackend) -> None:
    """Return while a batch runs."""
    query = backend._queries["sum"]
    deadline = time.monotonic() + 60
    while query.passed(query.batches_begun()):
        assert time.monotonic() < deadline, "no batch began"
        time.sleep(0.01)


def test_an_application_goes_on_from_where_it_was(spark: SparkSession, tmp_path: Path) -> None:
    """A driver that dies between handing a batch on and noting that it did runs the batch again: that is made to happen."""
    load, kept = Load("generator:steps:levels=200,hold_s=5", max_rows_per_batch=100), Kept()
    folder = tmp_path / "app"
    for least in (2, 5):
        with running(spark, two_operators(load, kept), folder) as backend:
            wait_until(backend, lambda _, least=least: len(kept.batches) >= least)
        for operator in ("clean", "sum"):
            commits = folder / operator / "checkpoint" / "commits"
            last = max((p for p in commits.iterdir() if p.name.isdigit()), key=lambda p: int(p.name))
            last.unlink()
            (commits / f".{last.name}.crc").unlink(missing_ok=True)
    with running(spark, two_operators(load, kept), folder) as backend:
        wait_until(backend, lambda _: kept.latest() == truth_of(load, spark))
    assert sum(r[0] for r in kept.latest().values()) == load.batch(spark).where("value % 3 != 0").count()


@F.udf(LongType(), useArrow=False)
def no_multiples_of_fifty(value: int) -> int:
    if value % 50 == 0:
        raise ValueError(f"{value} is a multiple of fifty")
    return value


def parsed(df: DataFrame) -> DataFrame:
    return df.withColumn("value", no_multiples_of_fifty("value"))


def test_a_failing_function_stops_its_operator_with_its_own_error_and_the_others_go_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    load, fine, broken = Load("generator:steps:levels=200,hold_s=3", max_rows_per_batch=200), Kept(), Kept()
    app = Application("half")
    rows = app.operator("clean", lambda df: df.where("value % 3 != 0"), app.source("events", load.stream))
    app.sink(app.operator("sum", sums, rows, shards=2, output_mode="update"), fine.save)
    bad = app.operator("parse", parsed, rows, fuse=False)
    app.sink(app.operator("after", lambda df: df, bad, fuse=False), broken.save)
    with running(spark, app, tmp_path / "app") as backend:
        for _ in observations(backend):
            if backend.failures() and fine.latest() == truth_of(load, spark):
                break
        assert backend.failures().keys() == {"parse"}
        assert "is a multiple of fifty" in backend.failures()["parse"]
    sent = {r["row"] for batch in broken.batches.values() for r in batch}
    whole = {r["row"]: r["value"] for r in load.batch(spark).collect()}
    assert all(whole[row] % 50 for row in sent), "no batch is handed on in part"


@pytest.mark.slow
def test_a_poison_row_is_set_aside_with_the_reason(spark: SparkSession, tmp_path: Path) -> None:
    load, kept = Load("generator:steps:levels=100,hold_s=3", max_rows_per_batch=150), Kept()
    app = Application("poison")
    source = app.source("events", load.stream, ingest_time="offered_at")
    app.sink(app.operator("parse", parsed, source, on_error="dead-letter"), kept.save)
    truth = load.batch(spark).collect()
    with running(spark, app, tmp_path / "app") as backend:
        wait_until(backend, lambda _: sum(map(len, kept.batches.values())) == sum(r["value"] % 50 != 0 for r in truth))
    assert sorted(r["row"] for batch in kept.batches.values() for r in batch) == [r["row"] for r in truth if r["value"] % 50]
    aside = [
        row for f in (tmp_path / "app" / "parse" / "dead-letters").glob("*.parquet") for row in pq.read_table(f).to_pylist()
    ]
    assert sorted(r["row"] for r in aside) == [r["row"] for r in truth if r["value"] % 50 == 0]
    assert all(r["springtide_reason"] == f"ValueError: {r['value']} is a multiple of fifty" for r in aside)
