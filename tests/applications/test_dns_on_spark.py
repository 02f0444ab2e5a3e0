"""The operators of the DNS application as streaming queries: the right windows, in many small batches and in one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import springtide
from springtide.applications.dns import operators
from springtide.applications.dns.answer import outcome_of, registered
from springtide.applications.dns.application import Dns

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LONG_AGO = 1_700_000_000.0
APP = replace(Dns.small(), tunnel_share=0.2)
PATIENCE_S = 180
STATE_ROWS: dict[Path, int] = {}


def read_to_end(df: DataFrame, save: Callable[[DataFrame, int], None], checkpoint: Path) -> int:
    """In how many batches the stream was read; how much state is left at the end is noted."""
    writer = df.writeStream.outputMode("update").foreachBatch(save).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(PATIENCE_S)
    STATE_ROWS[checkpoint] = sum(operator["numRowsTotal"] for operator in query.recentProgress[-1]["stateOperators"])
    return sum(progress["numInputRows"] > 0 for progress in query.recentProgress)


def run(spark: SparkSession, folder: Path, max_rows_per_batch: int | None) -> int:
    does = APP.operators()
    lines = springtide.replay(
        spark,
        APP.trace(),
        rows=APP.feed(),
        speed_up=APP.speed_up,
        started_at=LONG_AGO,
        max_rows_per_batch=max_rows_per_batch,
    )
    verdicts = does.classified(does.windows(does.features(does.parsed(lines))))
    return read_to_end(verdicts, APP.table(folder).save, folder / "windows")


@pytest.mark.parametrize(("max_rows_per_batch", "batches"), [(500, 7), (None, 1)])
def test_the_windows_are_exact_in_any_batches(
    spark: SparkSession, tmp_path: Path, max_rows_per_batch: int | None, batches: int
) -> None:
    assert run(spark, tmp_path, max_rows_per_batch) == batches
    windows, tunnels = APP.check(spark, tmp_path)
    assert windows.wrong == 0, windows
    assert windows.rows > 1000
    assert tunnels.rows > 5
    assert "precision 100.0%" in tunnels.what
    if batches > 1:  # a window that is closed has left the state
        assert STATE_ROWS[tmp_path / "windows"] < windows.rows * 0.75

    last = APP.table(tmp_path).folder / f"batch={batches - 1}"
    spark.read.parquet(str(last)).where("client <> '10.0.0.1'").write.parquet(str(tmp_path / "fewer"))
    for file in last.iterdir():
        file.unlink()
    for file in (tmp_path / "fewer").iterdir():
        file.rename(last / file.name)
    assert APP.check(spark, tmp_path)[0].wrong > 0


NOON_US = 1_585_742_400_000_000
GOOD = "2020-04-01T12:00:00.000000Z 10.0.1.17 www.example.com A 120"
LINES = [
    (GOOD, 0.0, operators.KEPT),
    (GOOD.replace("www.example", "WWW.Example"), 0.0, operators.KEPT),
    (GOOD, 119.999999, operators.KEPT),
    (GOOD, 120.0, operators.TOO_LATE),
    (GOOD, -0.000001, operators.FROM_THE_FUTURE),
    ("", 0.0, operators.BAD_FIELDS),
    (GOOD[:40], 0.0, operators.BAD_FIELDS),
    (GOOD + " more", 0.0, operators.BAD_FIELDS),
    (GOOD.replace(" A", "  A"), 0.0, operators.BAD_FIELDS),
    (GOOD.replace("T12", "T25"), 0.0, operators.BAD_TIME),
    (GOOD.replace("Z", "z"), 0.0, operators.BAD_TIME),
    (GOOD.replace("10.0.1.17", "10.0.1.256"), 0.0, operators.BAD_CLIENT),
    (GOOD.replace("10.0.1.17", "10.0.1"), 0.0, operators.BAD_CLIENT),
    (GOOD.replace("10.0.1.17", "10.0.01.7"), 0.0, operators.BAD_CLIENT),
    (GOOD.replace("www", "w" * 63), 0.0, operators.KEPT),
    (GOOD.replace("www", "w" * 64), 0.0, operators.BAD_NAME),
    (GOOD.replace("www", ".".join(["w" * 60] * 5)), 0.0, operators.BAD_NAME),
    (GOOD.replace("www.", "www.."), 0.0, operators.BAD_NAME),
    (GOOD.replace("www.example.com", "localhost"), 0.0, operators.BAD_NAME),
    (GOOD.replace("www", "b\u00fccher"), 0.0, operators.BAD_NAME),
    (GOOD.replace(" A ", " ANY? "), 0.0, operators.BAD_TYPE),
    (GOOD.replace("120", "-1"), 0.0, operators.BAD_BYTES),
    (GOOD.replace("120", "1234567890"), 0.0, operators.BAD_BYTES),
]


def test_what_becomes_of_a_line_is_decided_by_the_line_and_the_same_in_spark_and_in_python(spark: SparkSession) -> None:
    rules = APP.operators()
    rows = [(row, NOON_US + round(after_s * 1e6), line) for row, (line, after_s, _) in enumerate(LINES)]
    frame = spark.createDataFrame(rows, "row long, us long, line string").selectExpr("timestamp_micros(us) received_at", "line")
    wanted = [outcome for _, _, outcome in LINES]
    assert [row["outcome"] for row in rules.parsed(frame.coalesce(1)).collect()] == wanted
    assert [outcome_of(line, us, rules) for _, us, line in rows] == wanted


def test_names_are_split_at_the_registered_domain(spark: SparkSession) -> None:
    names = ["example.com", "www.example.com", "a.b.example.co.uk", "co.uk", "example.co.uk", "xco.uk", "a.xco.uk", ""]
    rows = [(0, "kept", "10.0.0.1", name, "A", 1) for name in names]
    schema = "at_us long, outcome string, client string, name string, type string, bytes long"
    split = APP.operators().features(spark.createDataFrame(rows, schema).coalesce(1)).collect()
    assert [(row["domain"], row["sub"]) for row in split] == [registered(name) for name in names]
    assert [row["sub_chars"] for row in split] == [len(registered(name)[1]) for name in names]
