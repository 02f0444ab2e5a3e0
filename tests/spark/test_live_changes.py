"""What is asked of a live application, and what is seen to come of it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyspark.sql.functions as F
import pytest
from live_world import Drained, Kept, Load, answer, change_to, running, wait_until
from pyspark.sql import DataFrame, SparkSession

from springtide.backends.spark.application import Application
from springtide.backends.spark.jvm.executors import executor_ids
from springtide.backends.spark.resharding import reshard
from springtide.backends.spark.scaling import Scaling
from springtide.errors import InvalidValue, SpringtideError
from springtide.model.action import AddHosts, MoveShards, SetReplicas, SetTriggerInterval
from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.model.observation import HostState, Observation

pytestmark = pytest.mark.spark


def sums(df: DataFrame) -> DataFrame:
    return df.groupBy("key").agg(F.count("*").alias("rows"), F.sum("value").alias("total"))


def summing(load: Load, kept: Kept, shards: int = 4, **options) -> Application:
    app = Application("sums")
    source = app.source("events", load.stream, ingest_time="offered_at")
    app.sink(app.operator("sum", sums, source, shards=shards, output_mode="update", **options), kept.save)
    return app


def places(observation: Observation, operator: str = "sum") -> list[str]:
    placed = observation.observed.operators[operator]
    return [placed.shard_host(s) for s in range(len(placed.shard_replicas))]


def test_shards_replicas_and_hosts_go_where_they_are_sent_and_are_measured_there(spark: SparkSession, tmp_path: Path) -> None:
    load, kept = Load("generator:steps:levels=150,hold_s=900"), Kept()
    with running(spark, summing(load, kept), tmp_path / "app", hosts=2) as backend:
        seen = wait_until(backend, lambda o: o.operators["sum"].processed_rows > 0)
        first, second = seen.requested.hosts
        one_each = Allocation((first, second), {"sum": OperatorAllocation((first, second), (0, 0, 1, 1))})
        change_to(backend, seen.requested, one_each)
        seen = wait_until(backend, lambda o: places(o) == [first, first, second, second])
        assert seen.observed.operators["sum"].replica_hosts == (first, second)

        backend.apply([MoveShards("sum", {0: 1})])
        moved = []

        def there(seen: Observation) -> bool:
            moved.append(seen.reconfigurations.get("shards_moved", 0))
            return places(seen) == [second, first, second, second]

        seen = wait_until(backend, there)
        assert sum(moved) == 1
        check_measurements(seen)  # of the interval in which it moved

        backend.apply([AddHosts(("late",)), SetReplicas("sum", (second, "late", first), before=2)])
        seen = backend.observe()  # no executor starts as fast as that
        assert seen.hosts["late"].state is HostState.STARTING
        assert seen.requested.operators["sum"].replicas == 3
        assert seen.observed.operators["sum"].replicas == 2, "the routing waits for its host"
        seen = wait_until(backend, lambda o: o.observed.operators["sum"].replicas == 3)

        away = Allocation((second, "late"), {"sum": OperatorAllocation((second, "late"), (0, 1, 0, 1))})
        change_to(backend, seen.requested, away)
        seen = wait_until(backend, lambda o: first not in o.hosts)
        assert seen.reconfigurations["hosts_released"] == 1
        assert set(places(seen)) == {second, "late"}


def check_measurements(observation: Observation) -> None:
    measured = observation.operators["sum"]
    assert measured.processed_rows > 0
    assert 0 <= measured.utilisation <= 1
    assert 0 < measured.busy_share <= 1
    assert measured.service_time_s > 0
    assert measured.shards.rows.sum() == pytest.approx(measured.processed_rows)
    costs = measured.costs
    assert costs is not None
    opened_s = measured.shards.busy_s - costs.row_s.value * measured.shards.rows
    assert opened_s.tolist() == pytest.approx([opened_s[0]] * len(opened_s)), "beside its rows, each shard takes as long"
    assert opened_s[0] > 0
    assert measured.shards.state_bytes.max() > 0
    assert 0 < observation.latency.p50_s <= observation.latency.p99_s
    assert observation.core_s > 0


def test_a_trigger_interval_takes_effect_without_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    load, kept = Load("generator:steps:levels=50,hold_s=900"), Kept()
    started_s: list[float] = []
    with running(spark, summing(load, kept), tmp_path / "app", hosts=1) as backend:
        backend.told_of_batch = lambda _, record, __: started_s.append(record.started_s)
        wait_until(backend, lambda _: len(started_s) > 3)
        run_ids = [query.runId for query in spark.streams.active]

        backend.apply([SetTriggerInterval("sum", 4.0)])
        known = len(started_s) + 2
        seen = wait_until(backend, lambda _: len(started_s) > known + 2)
        assert seen.operators["sum"].trigger_s == 4.0
        assert np.diff(started_s[known:]) == pytest.approx(4.0, abs=0.8)

        backend.apply([SetTriggerInterval("sum", 0.0)])
        known = len(started_s) + 2
        wait_until(backend, lambda _: len(started_s) > known + 2)
        assert max(np.diff(started_s[known:])) < 4.0
        assert [query.runId for query in spark.streams.active] == run_ids


@pytest.mark.slow
def test_executors_of_one_machine_start_as_many_at_a_time_as_it_has_cores(spark: SparkSession, tmp_path: Path) -> None:
    load = Load("generator:steps:levels=20,hold_s=900")
    with running(spark, summing(load, Kept()), tmp_path / "app", hosts=1) as backend:
        seen = wait_until(backend, lambda o: o.operators["sum"].processed_rows > 0)
        backend.apply([AddHosts(("b", "c", "d"))])
        most = 0

        def all_run(seen: Observation) -> bool:
            nonlocal most
            states = [host.state for host in seen.hosts.values()]
            there = len(executor_ids(spark.sparkContext))
            most = max(most, there - states.count(HostState.RUNNING))
            return states.count(HostState.RUNNING) == 4

        seen = wait_until(backend, all_run)
        assert set(seen.hosts) >= {"b", "c", "d"}
        assert 1 <= most <= max(1, os.cpu_count() or 1)


def test_what_cannot_be_done_is_refused_and_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    load = Load("generator:steps:levels=10,hold_s=1")
    with running(spark, summing(load, Kept()), tmp_path / "app", hosts=2) as backend:
        before = backend.observe().requested
        for actions in (
            [AddHosts(tuple(f"new-{i}" for i in range(9)))],
            [SetReplicas("som", before.hosts, before=1)],
            [MoveShards("sum", {99: 0})],
            [MoveShards("sum", {0: 7})],
            [SetReplicas("sum", ("nowhere",), before=1)],
            [SetTriggerInterval("som", 1.0)],
        ):
            with pytest.raises(InvalidValue):
                backend.apply(actions)
        assert backend.observe().requested == before


def test_rows_without_state_are_grouped_as_asked(spark: SparkSession, tmp_path: Path) -> None:
    load = Load("generator:steps:levels=400,hold_s=3", max_rows_per_batch=300)
    by_key, balanced, both = Kept(), Kept(), Kept()
    app = Application("groupings")
    source = app.source("events", load.stream, ingest_time="offered_at")
    tasks = lambda df: df.withColumn("task", F.spark_partition_id())  # noqa: E731
    keyed = app.operator("keyed", tasks, source, key="key", shards=8, replicas=3, max_replicas=3)
    app.sink(keyed, by_key.save)
    app.sink(app.operator("balanced", tasks, keyed, grouping="load_balanced", replicas=2), balanced.save)
    app.sink(app.operator("doubled", lambda df: df.select("row"), keyed, fuse=False), both.save)
    truth = load.batch(spark)
    with running(spark, app, tmp_path / "app", hosts=2) as backend:
        wait_until(backend, Drained("keyed", truth.count()))
    keys = {}
    for row in (r for batch in by_key.batches.values() for r in batch):
        assert keys.setdefault(row["key"], row["task"]) == row["task"], "a key goes to one replica"
    assert set(keys.values()) == {0, 1, 2}
    shares = [sum(r["task"] == t for batch in balanced.batches.values() for r in batch) for t in (0, 1)]
    assert min(shares) > 0.1 * sum(shares)
    expected = sorted(r["row"] for r in truth.select("row").collect())
    for kept in (by_key, balanced, both):
        assert sorted(r["row"] for batch in kept.batches.values() for r in batch) == expected


def test_rows_read_unevenly_are_dealt_out_once_a_replica_is_found_busier(spark: SparkSession, tmp_path: Path) -> None:
    load, kept = Load("generator:steps:levels=100,hold_s=900", max_rows_per_batch=100), Kept()

    def into_one_partition_of_two(spark: SparkSession) -> DataFrame:
        return load.stream(spark).repartition(2, F.col("value") * 0)

    def slowly(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            time.sleep(0.004 * len(batch))
            yield batch

    def work(df: DataFrame) -> DataFrame:
        return df.mapInPandas(slowly, df.schema).withColumn("task", F.spark_partition_id())

    app = Application("uneven")
    source = app.source("events", into_one_partition_of_two, ingest_time="offered_at")
    app.sink(app.operator("work", work, source, replicas=2), kept.save)

    def tasks_of(batch: int) -> set[int]:
        return {row["task"] for row in kept.batches[batch]}

    with running(spark, app, tmp_path / "app", hosts=2) as backend:
        wait_until(backend, lambda _: bool(kept.batches) and len(tasks_of(max(kept.batches))) == 2)
    filled = [batch for batch in sorted(kept.batches) if len(kept.batches[batch]) >= 10]
    assert len(tasks_of(filled[0])) == 1, "rows stay where they are read, as long as nothing is known against it"
    assert sorted(row["row"] for batch in kept.batches.values() for row in batch) == list(
        range(sum(len(batch) for batch in kept.batches.values()))
    )


@pytest.mark.slow
def test_shards_are_fixed_until_they_are_resharded(spark: SparkSession, tmp_path: Path, monkeypatch) -> None:
    load, kept = Load("generator:steps:levels=200,hold_s=5", max_rows_per_batch=100), Kept()
    truth = load.batch(spark)
    with running(spark, summing(load, kept), tmp_path / "app") as backend:
        wait_until(backend, lambda o: len(kept.batches) >= 3)
    with pytest.raises(SpringtideError, match=r"first started with 4 shards.*the code says 6.*springtide reshard .*--shards 6"):
        summing_backend(spark, summing(load, kept, shards=6), tmp_path / "app")
    monkeypatch.setattr("springtide.backends.spark.resharding.session", lambda *_, **__: _lent(spark))
    assert reshard(str(tmp_path / "app" / "sum"), 6) == 4
    with running(spark, summing(load, kept, shards=6), tmp_path / "app") as backend:
        wait_until(backend, lambda o: sum(r[0] for r in kept.latest().values()) == truth.count())
    assert kept.latest() == answer(sums(truth))


def summing_backend(spark: SparkSession, application: Application, folder: Path) -> None:
    with running(spark, application, folder):
        raise AssertionError("it should have been refused")


class _lent:
    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __enter__(self) -> SparkSession:
        return self._spark

    def __exit__(self, *_: object) -> None: ...


@pytest.mark.slow
def test_the_resource_centric_baseline_restarts_and_is_exact(spark: SparkSession, tmp_path: Path) -> None:
    load, kept = Load("generator:steps:levels=200,hold_s=6", max_rows_per_batch=100), Kept()
    truth = load.batch(spark)
    with running(spark, summing(load, kept, replicas=2), tmp_path / "app", scaling=Scaling.RESOURCE_CENTRIC) as backend:
        seen = wait_until(backend, lambda o: len(kept.batches) >= 2)
        hosts = seen.requested.hosts
        change_to(backend, seen.requested, Allocation(hosts, {"sum": OperatorAllocation((hosts[0],) * 3, (0, 1, 2, 0))}))
        seen = wait_until(backend, lambda o: o.downtime_s > 0)
        assert seen.downtime_s > 0.5
        fewer = Allocation(hosts, {"sum": OperatorAllocation((hosts[0],), (0, 0, 0, 0))})
        change_to(backend, seen.requested, fewer)
        seen = wait_until(backend, lambda o: o.downtime_s > 0)
        # More and fewer at once: it finds as many partitions as it wants, beside the folders of those it had.
        change_to(backend, seen.requested, Allocation(hosts, {"sum": OperatorAllocation((hosts[0],) * 2, (0, 1, 0, 1))}))
        change_to(backend, backend.observe().requested, fewer)
        wait_until(backend, lambda o: o.downtime_s > 0)
        wait_until(backend, lambda o: sum(r[0] for r in kept.latest().values()) == truth.count())
    assert kept.latest() == answer(sums(truth))


def test_a_source_that_does_not_report_its_lag_is_named(spark: SparkSession, tmp_path: Path) -> None:
    kept = Kept()
    app = Application("rates")
    rate = app.source("rate", lambda s: s.readStream.format("rate").option("rowsPerSecond", 20).load(), ingest_time="timestamp")
    app.sink(app.operator("pass", lambda df: df, rate), kept.save)
    events: list[str] = []
    with running(spark, app, tmp_path / "app") as backend:
        began = time.monotonic()
        wait_until(
            backend, lambda o: events.extend(o.events) or any("rate" in e for e in events) or time.monotonic() - began > 60
        )
    assert any("source rate does not say in rows how far behind it is read" in e for e in events), events
    assert kept.rows()


@pytest.mark.slow
def test_a_rate_that_rises_ends_the_wait_for_the_next_decision(spark: SparkSession, tmp_path: Path) -> None:
    load, kept = Load("generator:steps:levels=20/200,hold_s=20"), Kept()
    rises_s = load.started_at + 20.0
    with running(spark, summing(load, kept), tmp_path / "app", hosts=1) as backend:
        clock = backend.clock
        wait_until(backend, lambda o: clock.epoch_s(o.end_s) > rises_s - 3.0)
        clock.advance_to(clock.now_s() + 120.0)
        seen = backend.observe()

    assert rises_s < clock.epoch_s(seen.end_s) < rises_s + 20.0
    assert seen.rising_rows_per_s is not None
    assert seen.rising_rows_per_s["events"] > 60.0
