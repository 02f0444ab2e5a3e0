"""The ways in which a change can be carried out on Spark."""

from __future__ import annotations

from enum import StrEnum


class Scaling(StrEnum):
    """How changes reach Spark."""

    ELASTIC = "elastic"  # shards and tasks are regrouped and moved between two batches
    RESOURCE_CENTRIC = "resource-centric"  # the query stops, its state is partitioned anew, it starts again
    DYNAMIC_ALLOCATION = "dynamic-allocation"  # Spark adds and removes executors by itself; nothing is placed
