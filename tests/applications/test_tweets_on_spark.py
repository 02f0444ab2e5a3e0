"""The operators of the tweets as streaming queries: the same answer in many small batches and in one, and the right one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import springtide
from springtide.applications.tweets import operators
from springtide.applications.tweets.answer import answer
from springtide.applications.tweets.application import Tweets, store
from springtide.applications.tweets.history import JUDGED_SCHEMA

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LONG_AGO = 1_700_000_000.0
APP = Tweets.small()
PATIENCE_S = 180
STATE_ROWS: dict[Path, int] = {}


def read_to_end(df: DataFrame, save: Callable[[DataFrame, int], None], checkpoint: Path, mode: str = "update") -> int:
    """In how many batches the stream was read; how much state is left at the end is noted."""
    writer = df.writeStream.outputMode(mode).foreachBatch(save).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(PATIENCE_S)
    STATE_ROWS[checkpoint] = sum(operator["numRowsTotal"] for operator in query.recentProgress[-1]["stateOperators"])
    return sum(progress["numInputRows"] > 0 for progress in query.recentProgress)


def run(spark: SparkSession, folder: Path, max_rows_per_batch: int | None) -> list[int]:
    """The whole application, one operator after the other; the batches of each query."""
    does = APP.operators()
    batches_of_one_file = {"maxFilesPerTrigger": "1"} if max_rows_per_batch else {}
    edge = springtide.Table(str(folder / "edge"), JUDGED_SCHEMA, options=batches_of_one_file)

    def hand_on(judged: DataFrame, batch_id: int) -> None:
        judged = judged.persist()
        store(APP.table(folder, "tweets"), judged, batch_id)
        edge.write(judged.coalesce(1), batch_id)
        judged.unpersist()

    lines = springtide.replay(
        spark,
        APP.trace(),
        rows=APP.feed(),
        speed_up=APP.speed_up,
        started_at=LONG_AGO,
        max_rows_per_batch=max_rows_per_batch,
    )
    judged = does.by_author(does.by_content(does.parsed(lines)))
    batches = [read_to_end(judged, hand_on, folder / "author", "append")]
    minutes, pulse = does.per_minute(edge.read(spark)), does.pulse(does.news(edge.read(spark)), does.opinions(edge.read(spark)))
    batches.append(read_to_end(minutes, APP.table(folder, "minutes").save, folder / "per-minute"))
    batches.append(read_to_end(pulse, APP.table(folder, "pulse").save, folder / "joined"))
    return batches


@pytest.mark.parametrize(("max_rows_per_batch", "batches"), [(700, 5), (None, 1)])
def test_the_results_are_exact_in_any_batches(
    spark: SparkSession, tmp_path: Path, max_rows_per_batch: int | None, batches: int
) -> None:
    assert run(spark, tmp_path, max_rows_per_batch) == [batches] * 3
    tweets, minutes, pulse = APP.check(spark, tmp_path)
    assert (tweets.wrong, minutes.wrong, pulse.wrong) == (0, 0, 0), (tweets, minutes, pulse)
    assert tweets.rows > 2500
    assert minutes.rows > 200
    assert pulse.rows > 100
    assert STATE_ROWS[tmp_path / "author"] == APP.buckets
    if batches > 1:  # a minute that is closed has left the state
        assert STATE_ROWS[tmp_path / "per-minute"] < minutes.rows / 2
        assert STATE_ROWS[tmp_path / "joined"] < pulse.rows / 2

    table = APP.table(tmp_path, "tweets")
    first = table.read(spark).where("batch = 0").drop("batch").orderBy("row").collect()
    store(table, spark.createDataFrame([(*row, operators.KEPT) for row in first[1:]], [*first[0].asDict(), "outcome"]), 0)
    missing = APP.check(spark, tmp_path)[0]
    assert missing.wrong == 1
    assert missing.first_wrong.endswith("is missing")


NOON_US = 1_585_742_400_000_000
GOOD = '{"id":1,"created_at":"2020-04-01T12:00:00.000000Z","user":{"id":2},"text":"hi"}'


LINES = [
    (GOOD, 0.0, operators.KEPT),
    (GOOD, 119.999999, operators.KEPT),
    (GOOD, 120.0, operators.TOO_LATE),
    (GOOD, -0.000001, operators.FROM_THE_FUTURE),
    (GOOD[:-9], 0.0, operators.UNREADABLE),
    ("", 0.0, operators.UNREADABLE),
    ("[]", 0.0, operators.UNREADABLE),
    ("null", 0.0, operators.UNREADABLE),
    (GOOD.replace('"id":1', '"id":"one"'), 0.0, operators.UNREADABLE),
    (GOOD.replace('"', "'"), 0.0, operators.UNREADABLE),
    (GOOD.replace('"id":1,', ""), 0.0, operators.INCOMPLETE),
    (GOOD.replace('"user":{"id":2},', ""), 0.0, operators.INCOMPLETE),
    (GOOD.replace('"hi"', "null"), 0.0, operators.INCOMPLETE),
    (GOOD.replace("T12", " 12"), 0.0, operators.BAD_TIME),
    (GOOD.replace("04-01", "04-31"), 0.0, operators.BAD_TIME),
]


def test_what_becomes_of_a_line_is_decided_by_the_line_and_the_same_in_spark_and_in_python(spark: SparkSession) -> None:
    rules = operators.TweetOperators(allowed_lateness_s=60.0)
    rows = [(row, NOON_US + round(after_s * 1e6), line) for row, (line, after_s, _) in enumerate(LINES)]
    frame = spark.createDataFrame(rows, "row long, us long, line string").selectExpr(
        "row", "timestamp_micros(us) received_at", "line"
    )
    parsed = rules.parsed(frame).orderBy("row").collect()
    wanted = [outcome for _, _, outcome in LINES]
    assert [row["outcome"] for row in parsed] == wanted
    assert [row["at_us"] for row in parsed] == [
        NOON_US if outcome == operators.KEPT else us for outcome, (_, us, _) in zip(wanted, rows, strict=True)
    ]
    assert [next(iter(answer([row], rules).outcomes)) for row in rows] == wanted
