"""How many tasks a batch runs as, which partitions each serves, and on which executor: decided batch by batch.

Inside `foreachBatch` the plan of a streaming query is still lazy, so the RDD that is run may be regrouped and given places at
every micro-batch without touching the query. State stays exact: a task that serves several partitions opens each one's store in
turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from pyspark import SparkContext
from pyspark.sql import DataFrame

from springtide.backends.spark.jvm.scala import JavaObject, int_set, jvm_of, second_of_two, seq, singleton

Groups = Sequence[Sequence[int]]


def partition_count(df: DataFrame) -> int:
    return int(_rdd(df).getNumPartitions())


def arranged(df: DataFrame, groups: Groups | None, places: Sequence[str | None] | None) -> DataFrame:
    """The same rows from other tasks, in other places.

    `groups[t]` are the partitions that task t serves, each partition once; without groups a task serves its own partition.
    `places[t]` is the executor that task t prefers, as `place_of` writes it, or none.
    """
    if groups is None and places is None:
        return df
    context = df.sparkSession.sparkContext
    rdd = _rdd(df)
    if groups is not None:
        rdd = _regrouped(context, rdd, groups)
    if places is not None:
        rdd = _pinned(context, rdd, places)
    spark = df.sparkSession
    return DataFrame(spark._jsparkSession.internalCreateDataFrame(rdd, df._jdf.schema(), False), spark)


def _regrouped(context: SparkContext, rdd: JavaObject, groups: Groups) -> JavaObject:
    pruning = singleton(context, "org.apache.spark.rdd.PartitionPruningRDD")
    none = singleton(context, "scala.None")
    parts = [pruning.create(rdd, int_set(context, group)).coalesce(1, False, none, None) for group in groups]
    if len(parts) == 1:
        return parts[0]
    return jvm_of(context).org.apache.spark.rdd.UnionRDD(context._jsc.sc(), seq(context, parts), rdd.elementClassTag())


def _pinned(context: SparkContext, rdd: JavaObject, places: Sequence[str | None]) -> JavaObject:
    """An RDD of nothing but preferences is zipped with the rows: a zipped task takes its preference, and yields the rows."""
    tuples = jvm_of(context).scala.Tuple2
    wishes = [tuples(task, seq(context, [] if place is None else [place])) for task, place in enumerate(places)]
    any_reference = singleton(context, "scala.reflect.ClassTag").AnyRef()
    preferences = context._jsc.sc().makeRDD(seq(context, wishes), any_reference)
    tag = rdd.elementClassTag()
    return preferences.zipPartitions(rdd, False, second_of_two(context), tag, tag)


def place_of(host: str, executor: str) -> str:
    """How Spark writes a preference for one executor."""
    return f"executor_{host}_{executor}"


def shuffled_bytes(df: DataFrame) -> list[int] | None:
    """Bytes that the last shuffle of an executed DataFrame sent to each of its partitions; None without a shuffle.

    Spark keeps sizes to within 10 %.
    """
    context = df.sparkSession.sparkContext
    rdd = _rdd(df)
    while True:
        dependencies = rdd.dependencies()
        if dependencies.isEmpty():
            return None
        dependency = dependencies.head()
        if dependency.getClass().getName() == "org.apache.spark.ShuffleDependency":
            return [int(size) for size in _map_output_tracker(context).getStatistics(dependency).bytesByPartitionId()]
        rdd = dependency.rdd()


@lru_cache(maxsize=4)
def _map_output_tracker(context: SparkContext) -> JavaObject:
    """By a method handle: looking through SparkEnv's methods, as py4j does, fails on classes that Spark's package
    leaves out.
    """
    jvm = jvm_of(context)
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    environment, tracker = (
        jvm.java.lang.Class.forName(f"org.apache.spark.{name}", True, loader) for name in ("SparkEnv", "MapOutputTracker")
    )
    kind = jvm.java.lang.invoke.MethodType.methodType(tracker)
    handle = jvm.java.lang.invoke.MethodHandles.publicLookup().findVirtual(environment, "mapOutputTracker", kind)
    arguments = jvm.java.util.ArrayList()
    arguments.add(context._jsc.sc().env())
    return handle.invokeWithArguments(arguments)


def _rdd(df: DataFrame) -> JavaObject:
    return df._jdf.queryExecution().toRdd()
