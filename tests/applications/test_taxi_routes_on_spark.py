"""The operators of `taxi-routes` as plain queries, one after the other: any batches give the answer of plain Python."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import springtide
from springtide.applications.answers import compared
from springtide.applications.taxi_routes.answer import answered
from springtide.applications.taxi_routes.application import TaxiRoutes, told
from springtide.applications.taxi_routes.operators import counted, late, ranked, ranked_in_parts
from springtide.applications.taxi_routes.parsing import in_area, parsed, rejected, routed
from springtide.applications.taxi_routes.trips import Trips, trips_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PATIENCE_S = 180.0
LONG_AGO = 1_700_000_000.0
BUCKETS, PARTS = 4, 2
LINE = "M,H,2013-01-01 00:00:00,{},120,0.44,{},40.716976,-73.962440,40.715008,CSH,3.50,0.50,0.50,0.00,0.00,4.50"


def ran(frame: DataFrame, output: Path) -> None:
    """Run to the end, one file for each batch: that is what the next operator may take as a batch."""

    def save(df: DataFrame, batch_id: int) -> None:
        df.coalesce(1).write.mode("append").parquet(str(output))

    writer = frame.writeStream.foreachBatch(save).option("checkpointLocation", f"{output}-checkpoint")
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(PATIENCE_S)


def read(spark: SparkSession, folder: Path, batches: int) -> DataFrame:
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", batches).parquet(str(folder))


def lines_of(spark: SparkSession, trips: Trips, folder: Path, max_rows_per_batch: int) -> DataFrame:
    trace = springtide.Trace.of_times(name="lines", times_s=trips.times_s)
    rows = springtide.Recorded.keep(trips.table, folder / "lines.arrow")
    return springtide.replay(spark, trace, rows=rows, max_rows_per_batch=max_rows_per_batch, started_at=LONG_AGO)


def chained(spark: SparkSession, lines: DataFrame, folder: Path, upstream_batches: int) -> None:
    ran(routed(in_area(parsed(lines)), BUCKETS), folder / "sent")
    stages: list[tuple[str, str, Callable[[DataFrame], DataFrame]]] = [
        ("sent", "counts", counted),
        ("counts", "tops", lambda counts: ranked_in_parts(counts, PARTS)),
        ("tops", "ranks", ranked),
    ]
    for before, after, function in stages:
        ran(function(read(spark, folder / before, upstream_batches)), folder / after)


@pytest.mark.parametrize(("max_rows_per_batch", "upstream_batches"), [(1_300, 1), (100_000, 9)])
def test_any_batches_give_the_changes_that_plain_python_gives(
    spark: SparkSession, tmp_path: Path, max_rows_per_batch: int, upstream_batches: int
) -> None:
    trips = dataclasses.replace(TaxiRoutes.small(), minutes=34).trips()
    right = answered(trips.lines)
    assert len(right.changes) > 100
    assert right.late
    assert len(right.rejected) > 20

    chained(spark, lines_of(spark, trips, tmp_path, max_rows_per_batch), tmp_path, upstream_batches)

    found = {name: spark.read.parquet(str(tmp_path / name)) for name in ("sent", "counts", "ranks")}
    assert compared("changes", right.changes, told(found["ranks"]), in_order=True).first_wrong == ""
    assert compared("rejected", right.rejected, rejected(found["sent"]).collect()).first_wrong == ""
    assert compared("late", right.late, late(found["counts"]).select("row").collect()).first_wrong == ""


def test_lines_are_rejected_for_the_same_reasons_in_any_time_zone(spark: SparkSession, tmp_path: Path) -> None:
    lines = [
        LINE.format("2013-01-01 00:02:00", "-73.956528"),
        "",
        "no,trip",
        LINE.format("2013-01-01 00:02:00", "-73.956528") + ",",
        LINE.format("2013-02-30 00:02:00", "-73.956528"),
        LINE.format("2013-01-01 24:02:00", "-73.956528"),
        LINE.format("2013-01-01 00:02", "-73.956528"),
        LINE.format("2013-01-01T00:02:00", "-73.956528"),
        LINE.format("2013-01-01 00:02:00", "west"),
        LINE.format("2013-01-01 00:02:00", "NaN"),
        LINE.format("2013-01-01 00:02:00", "-73.9d"),
        LINE.format("2013-01-01 00:02:00", "0.000000"),
        LINE.format("2013-01-01 00:00:00", "-73.956528"),
        LINE.format("2013-01-02 00:00:01", "-73.956528"),
        LINE.format("2013-01-01 00:02:00", "-74.92"),
        LINE.format("2013-01-01 00:03:00", "-74.913585"),
    ]
    frame = spark.createDataFrame(list(enumerate(lines)), "row long, line string")
    right = answered(lines)
    assert {reason for _, reason in right.rejected} == {"malformed", "zero coordinates", "times", "outside"}
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        sent = routed(in_area(parsed(frame)), 1).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))
    assert sorted((row["row"], row["reason"]) for row in sent if row["reason"]) == right.rejected
    assert [(row["row"], row["pickup_us"], row["dropoff_us"]) for row in sent if row["route"]] == [
        (0, 1356998400000000, 1356998520000000),
        (15, 1356998400000000, 1356998580000000),
    ]
    assert {row["route"] for row in sent if row["route"]} == {"161.170-160.170", "1.170-160.170"}


def test_recorded_trips_are_ranked_as_by_plain_python(spark: SparkSession, tmp_path: Path) -> None:
    application = TaxiRoutes(copies=1)
    if not application.data().startswith("debs2015"):
        pytest.skip(f"the recorded trips are not here ({application.data()})")
    trips = trips_of(application.trips().lines, minutes=36)
    chained(spark, lines_of(spark, trips, tmp_path, 2_500), tmp_path, 2)
    found = told(spark.read.parquet(str(tmp_path / "ranks")))
    assert compared("changes", answered(trips.lines).changes, found, in_order=True).first_wrong == ""
