"""An application inside a session of the user's own.

running = springtide.start(app, spark, policy="tide", max_hosts=8)
running.awaitTermination()
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from springtide.backends.spark.application import Application
from springtide.backends.spark.backend import backend_for
from springtide.backends.spark.controlled import Controlled, control
from springtide.backends.spark.fusion import pool_of
from springtide.backends.spark.jvm.executors import Executor, executors
from springtide.errors import SpringtideError
from springtide.forecast.running.choosing import Models
from springtide.model.protocols import AnyPolicy


def start(  # noqa: PLR0913 - one keyword for each choice, all with a default
    app: Application,
    spark: SparkSession,
    *,
    folder: str | Path | None = None,
    policy: str | AnyPolicy = "tide",
    parameters: Mapping[str, object] | None = None,
    slo_s: float | None = None,
    min_hosts: int = 1,
    max_hosts: int = 10,
    interval_s: float = 10.0,
    journal: str | Path | None = None,
    models: str | Path | Models | None = None,
) -> Controlled:
    """Start an application's queries, with as many hosts as there are executors now; it goes on from what is in `folder`."""
    chosen = control(policy, parameters, interval_s, journal, models)
    present = present_executors(spark)
    first = next(iter(present.values()))
    described = app if slo_s is None else dataclasses.replace(app, slo=dataclasses.replace(app.slo, latency_s=slo_s))
    backend = backend_for(
        spark,
        described,
        pool_of(first.cores, first.memory_bytes, min_hosts, max_hosts),
        str(folder or f"springtide-{app.name}"),
        hosts=max(min_hosts, min(max_hosts, len(present))),
    )
    return Controlled(backend, chosen)


def present_executors(spark: SparkSession) -> dict[str, Executor]:
    """The executors that a session has, or a refusal of one that has none."""
    found = executors(spark.sparkContext)
    if not found:
        raise SpringtideError(
            "there is no executor besides the driver: local[...] has none to be elastic with; use a cluster, or local-cluster"
        )
    return found
