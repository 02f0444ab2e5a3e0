"""Another number of shards for an operator that does not run: its state is partitioned anew, offline.

Shards are fixed while an application lives, because a key's shard must not change under it. This is the one way to change them.
"""

from __future__ import annotations

from pyspark.errors import PySparkException

from springtide.backends.spark.cluster.embedded import session
from springtide.backends.spark.deployment import KEPT
from springtide.backends.spark.files import Folder
from springtide.backends.spark.repartitioning import repartition
from springtide.errors import SpringtideError, require


def reshard(folder: str, shards: int) -> int:
    """Partition the state in an operator's folder into `shards`; the number it had before."""
    place = Folder(folder)
    kept = place.read_json(KEPT)
    if kept is None:
        raise SpringtideError(f"{folder}: this is not an operator's folder; name <application's folder>/<operator>")
    before = int(kept["shards"])
    require(before > 0, f"{folder}: this operator keeps no state, so it has no shards to change")
    require(shards >= 1, f"--shards must be at least 1, not {shards}")
    require(shards != before, f"{folder}: it has {shards} shards already")
    if place.folder("checkpoint/commits").names():
        with session("springtide-reshard", master="local[2]") as spark:
            try:
                repartition(spark, place.folder("checkpoint"), shards)
            except PySparkException as error:
                first = str(error).splitlines()[0]
                raise SpringtideError(f"{folder}: Spark could not partition the state anew: {first}") from error
    place.write_json(KEPT, {**kept, "shards": shards})
    return before
