"""A streaming job that existed before Springtide, and the three lines that make it elastic: see `new` and `was`.

    spark-submit --master 'local-cluster[2,1,1024]' --executor-memory 600m examples/visits.py      # on this machine
    spark-submit --master spark://host:7077 ... examples/visits.py      # on a cluster: see docs/operating.md

It counts visits of pages until there were some thousands, and says whether every visit was counted once: visits are numbered,
so how many there were is known from the highest.
"""

import os

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

import springtide  # new

VISITS = 3000
FOLDER = os.environ.get("VISITS_FOLDER", "springtide-visits")

spark = SparkSession.builder.appName("visits").config("spark.sql.shuffle.partitions", "8").getOrCreate()
visits = spark.readStream.format("rate").option("rowsPerSecond", 200).load()
counts = visits.groupBy((F.col("value") % 100).alias("page")).agg(
    F.count("*").alias("visits"), F.max("value").alias("last_visit")
)


def save(said: DataFrame, batch_id: int) -> None:
    """One folder for each batch: a batch that comes again replaces its own."""
    said.write.mode("overwrite").parquet(f"{FOLDER}/counts/batch={batch_id}")


query = (
    springtide.elastic(counts.writeStream, slo_s=5, max_hosts=2)  # was: counts.writeStream
    .outputMode("update")
    .option("checkpointLocation", f"{FOLDER}/checkpoint")
    .foreachBatch(save)  # was: .format("console")
    .start()
)
while sum(batch["numInputRows"] for running in spark.streams.active for batch in running.recentProgress) < VISITS:
    query.awaitTermination(1)
query.stop()

last = F.max_by(F.struct("visits", "last_visit"), "batch").alias("last")
said = spark.read.parquet(f"{FOLDER}/counts").groupBy("page").agg(last)
total, highest = said.agg(F.sum("last.visits"), F.max("last.last_visit")).first()
print(f"{total:,} visits of {said.count()} pages; the last was number {highest:,}")
spark.stop()
raise SystemExit(0 if total == highest + 1 else "visits were lost, or counted twice")
