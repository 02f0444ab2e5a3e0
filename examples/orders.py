"""What customers have ordered, from a Kafka topic, or from a trace that is replayed where there is no Kafka.

    springtide run examples/orders.py --until-drained            # replayed
    python examples/orders.py                                    # is what it summed up right?
    ORDERS_KAFKA=broker:9092 springtide run examples/orders.py \\
        --conf spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0

A message is a JSON object: {"customer": 17, "items": 2, "cents": 1999}. One that is not is left out.
"""

import os
import sys
from pathlib import Path

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

import springtide

SERVERS = os.environ.get("ORDERS_KAFKA", "")
TRACE = os.environ.get("ORDERS_TRACE", "generator:steps:levels=100/400/100,hold_s=30")
RESULTS = Path(os.environ.get("ORDERS_RESULTS", "springtide-orders/results"))
MOST_ROWS = 1000  # of a batch: one that took minutes could not be changed for minutes
CUSTOMERS = springtide.KeyDistribution(keys=300, zipf=0.7)


def orders(spark: SparkSession) -> DataFrame:
    """Messages as JSON text, and when each came."""
    if not SERVERS:
        return as_messages(springtide.replay(spark, TRACE, keys=CUSTOMERS, max_rows_per_batch=MOST_ROWS))
    topic = spark.readStream.format("kafka").option("kafka.bootstrap.servers", SERVERS).option("subscribe", "orders")
    rows = topic.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", MOST_ROWS).load()
    return rows.select(F.col("value").cast("string").alias("message"), F.col("timestamp").alias("offered_at"))


def as_messages(rows: DataFrame) -> DataFrame:
    """Made orders: every customer's key, and items and prices that the row's number decides."""
    order = F.struct(
        F.col("key").alias("customer"), (F.col("row") % 3 + 1).alias("items"), (F.col("row") % 50 * 100).alias("cents")
    )
    return rows.select(F.to_json(order).alias("message"), "offered_at")


def priced(messages: DataFrame) -> DataFrame:
    order = F.from_json("message", "customer long, items long, cents long")
    read = messages.select(order.alias("order")).where("order.customer is not null")
    return read.select("order.customer", (F.col("order.items") * F.col("order.cents")).alias("cents"))


def per_customer(orders: DataFrame) -> DataFrame:
    return orders.groupBy("customer").agg(F.count("*").alias("orders"), F.sum("cents").alias("cents"))


def save(sums: DataFrame, batch_id: int) -> None:
    """One folder for each batch: a batch that comes again replaces its own."""
    sums.write.mode("overwrite").parquet(str(RESULTS / f"batch={batch_id}"))


app = springtide.Application("orders", slo=springtide.SLO(latency_s=5))
source = app.source("orders", orders, ingest_time="offered_at")
known = app.operator("priced", priced, source)
summed = app.operator("per-customer", per_customer, known, shards=8, output_mode="update")
app.sink(summed, save)


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2]").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    said = spark.read.parquet(str(RESULTS)).groupBy("customer")
    found = said.agg(F.max_by(F.struct("orders", "cents"), "batch").alias("last")).select("customer", "last.*")
    answer = per_customer(priced(as_messages(springtide.replayed(spark, TRACE, keys=CUSTOMERS))))
    wrong = answer.exceptAll(found).count() + found.exceptAll(answer).count()
    print(f"{found.agg(F.sum('orders')).first()[0]:,} orders of {found.count()} customers: {wrong} customers differ")
    raise SystemExit(wrong > 0)
