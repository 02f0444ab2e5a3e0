"""Spark reads a journal without help: `spark.read.json`, and everything is a column, a struct or an array."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from small_journal import write_small_journal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def journal(spark: SparkSession, tmp_path: Path) -> DataFrame:
    path = tmp_path / "run.jsonl"
    write_small_journal(path, detail="shards")
    frame = spark.read.json(str(path))
    frame.createOrReplaceTempView("journal")
    return frame


def test_counts_of_each_kind(journal: DataFrame) -> None:
    counts = {row["kind"]: row["count"] for row in journal.groupBy("kind").count().collect()}
    assert counts == {"run": 1, "observation": 2, "decision": 2, "outcome": 1, "end": 1}


def test_nested_fields_are_reached_by_name(journal: DataFrame, spark: SparkSession) -> None:
    run = spark.sql("SELECT application.name, application.slo.latency_s, policy.name FROM journal WHERE kind = 'run'")
    assert [tuple(row) for row in run.collect()] == [("words", 5.0, "static")]

    promises = spark.sql("SELECT interval, expected.utilisation, measured.utilisation FROM journal WHERE kind = 'outcome'")
    assert [tuple(row) for row in promises.collect()] == [(1, 0.47, 0.5)]

    changes = spark.sql("SELECT interval, reason, why_not[0].why FROM journal WHERE kind = 'decision' AND change IS NOT NULL")
    assert [tuple(row) for row in changes.collect()] == [(0, "count is at 0.95", "two is the limit")]


def test_operators_explode_to_rows_and_shards_to_elements(journal: DataFrame, spark: SparkSession) -> None:
    rows = spark.sql("""
        SELECT interval, operator.name, operator.replicas, operator.utilisation, size(operator.shards.rows)
        FROM journal LATERAL VIEW explode(operators) AS operator
        ORDER BY interval, operator.name""")
    assert [tuple(row) for row in rows.collect()] == [
        (0, "count", 1, 0.95, 8), (0, "parse", 1, 0.5, 1), (1, "count", 2, 0.5, 8), (1, "parse", 1, 0.5, 1)
    ]  # fmt: skip


def test_names_are_values_and_never_columns(journal: DataFrame) -> None:
    def names(schema: object) -> set[str]:
        fields = getattr(schema, "fields", None)
        if fields is None:
            element = getattr(schema, "elementType", None)
            return names(element) if element is not None else set()
        return {f.name for f in fields} | {name for f in fields for name in names(f.dataType)}

    found = names(journal.schema)
    assert {"operators", "shards", "replica_hosts", "utilisation"} <= found
    assert found.isdisjoint({"parse", "host-0", "host-1", "add_hosts", "source"})


def test_a_torn_record_does_not_keep_spark_from_the_others(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "torn.jsonl"
    write_small_journal(path)
    path.write_bytes(path.read_bytes()[:-5])
    assert spark.read.json(str(path)).where("kind IS NOT NULL").count() == 6
