"""Which replica each row of an operator without state goes to, as an expression for `repartitionById`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from springtide.model.observation import FloatArray


def in_turn(df: DataFrame, replicas: int) -> DataFrame:
    """Shuffle grouping: one row after the other to the next replica. One replica needs no shuffle."""
    if replicas == 1:
        return df.coalesce(1)
    return df.repartitionById(replicas, F.pmod(F.monotonically_increasing_id(), F.lit(replicas)).cast("int"))


def by_key(df: DataFrame, key: Sequence[str], shard_replicas: Sequence[int], replicas: int) -> DataFrame:
    """Key grouping: by `hash(key) mod shards`, as Spark's own shuffle would, and from there by the routing."""
    shard = F.pmod(F.hash(*key), F.lit(len(shard_replicas)))
    routes = F.array(*[F.lit(replica) for replica in shard_replicas])
    return df.repartitionById(replicas, F.get(routes, shard))


def by_shares(df: DataFrame, shares: FloatArray) -> DataFrame:
    """Load-balanced grouping: each replica its share of the rows, spread evenly over the batch."""
    draw = F.pmod(F.monotonically_increasing_id() * F.lit(_GOLDEN), F.lit(_PARTS))
    bounds = (np.cumsum(shares)[:-1] * _PARTS).round().astype(int).tolist()
    replica: Column = F.lit(0)
    for bound in bounds:
        replica = replica + (draw >= F.lit(bound)).cast("int")
    return df.repartitionById(len(shares), replica)


_PARTS = 1024
_GOLDEN = 633  # coprime to _PARTS, near the golden ratio of it: consecutive rows land far apart, and every part is met
