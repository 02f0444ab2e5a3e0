"""Streams of the user's own in the place of an edge: a table of files, a Kafka topic.

    parsed = app.operator("parse", parse, events, edge=springtide.Table("/data/parsed", "user long, page string"))

Others read such a stream too, and keep it as long as they like: Springtide deletes nothing of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyspark.sql.functions as F
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from springtide.backends.spark.files import Folder
from springtide.errors import SpringtideError

_STAGING = "_staging"  # what begins with _ is not read


@dataclass(frozen=True)
class Table:
    """A folder with one sub-folder of files for each batch, which appears whole and once: nothing is lost or doubled.

    `schema` is Spark's text for its columns. `ingest_time` names the column that says when a row entered; without one, rows
    that come out of the table enter anew.
    """

    path: str
    schema: str
    format: str = "parquet"
    ingest_time: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def write(self, df: DataFrame, batch_id: int) -> None:
        folder = Folder(self.path)
        name = f"batch-{batch_id:09d}"
        if folder.holds(name):
            return  # it was written before a crash, and may have been read
        staged = folder.folder(_STAGING).folder(name)
        df.write.format(self.format).options(**self.options).mode("overwrite").save(staged.uri)
        folder.adopt(staged, name)

    def read(self, spark: SparkSession) -> DataFrame:
        folder = Folder(self.path)
        folder.create()
        reader = spark.readStream.format(self.format).schema(self.schema).options(**self.options)
        return reader.load(f"{folder.uri}/batch-*")


@dataclass(frozen=True)
class KafkaTopic:
    """A topic with one JSON object for each row. Kafka's writer may send the rows of a batch twice after a failure.

    Spark needs its Kafka package: `--conf spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:<Spark's version>`.
    `key` names the column that chooses a row's partition; `options` are those of Spark's Kafka source and sink.
    """

    servers: str
    topic: str
    schema: str
    key: str | None = None
    ingest_time: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def write(self, df: DataFrame, batch_id: int) -> None:  # noqa: ARG002 - Kafka knows no batches
        writer = self.encoded(df).write.format("kafka").options(**self.options)
        writer.option("kafka.bootstrap.servers", self.servers).option("topic", self.topic).save()

    def read(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.format("kafka").option("startingOffsets", "earliest").options(**self.options)
        try:
            rows = reader.option("kafka.bootstrap.servers", self.servers).option("subscribe", self.topic).load()
        except PySparkException as error:
            if "kafka" not in str(error).lower():
                raise
            raise SpringtideError(
                f"topic {self.topic!r}: this Spark has no Kafka package: add --conf"
                f" spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}"
            ) from error
        return self.decoded(rows)

    def encoded(self, df: DataFrame) -> DataFrame:
        """Rows as Kafka takes them."""
        value = F.to_json(F.struct("*")).alias("value")
        return df.select(value) if self.key is None else df.select(F.col(self.key).cast("string").alias("key"), value)

    def decoded(self, rows: DataFrame) -> DataFrame:
        """Rows as they were before Kafka took them."""
        return rows.select(F.from_json(F.col("value").cast("string"), self.schema).alias("row")).select("row.*")
