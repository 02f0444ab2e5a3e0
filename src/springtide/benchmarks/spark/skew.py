"""Case `skew`: keys of very different weight whose order changes, under three ways to serve them.

* static: shards stay where they were dealt;
* resource-centric: as many partitions as replicas; when one has much more to do than the others, the operator is
  restarted with another number of replicas (4, 8, 4, ...), the one thing that this scaling can change;
* elastic: shards are moved whenever a replica has more than 1.2 times the mean to do (Elasticutor's balancing).

Every row costs the task that serves it the same time, in which it sleeps: four executors then work side by side even on
a machine with fewer cores. All three are offered the same rows at the same times after their start, on the same four
executors, and take turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.state import GroupState

from springtide.backends.spark.application import Application, Save
from springtide.backends.spark.scaling import Scaling
from springtide.benchmarks.figures import Figure, figure
from springtide.benchmarks.spark.bed import Bed, Watched, watched
from springtide.errors import SpringtideError
from springtide.execute.diff import actions
from springtide.model.allocation import OperatorAllocation
from springtide.model.application import KeyDistribution
from springtide.model.observation import FloatArray, Observation
from springtide.plan.placement.balancing import balance, imbalance
from springtide.workload.generators import constant
from springtide.workload.replay import replay

CASE = "skew"

SHARDS = 16
REPLICAS = 4
SKEWED = KeyDistribution(keys=200, zipf=1.2, shuffles_per_minute=2.0)
ROW_S = 0.001
ROWS_PER_S = 2000.0
THETA = 1.2
_INTERVAL_S = 5.0
_BETWEEN_RESTARTS_S = 15.0
_SETTLED_AFTER_S = 25.0

Answer = Callable[[Observation, OperatorAllocation], OperatorAllocation]


def stay(_: Observation, placed: OperatorAllocation) -> OperatorAllocation:
    return placed


def move(seen: Observation, placed: OperatorAllocation) -> OperatorAllocation:
    """Shards to replicas that have less to do, by the time that each took in the last interval."""
    (operator,) = seen.operators.values()
    return OperatorAllocation(
        placed.replica_hosts, balance(operator.shards.busy_s, placed.shard_replicas, placed.replicas, THETA)
    )


def replica_loads(seen: Observation) -> FloatArray:
    """Time that each replica took in the interval: all of a batch counts when it ends, however long ago it began."""
    ((name, operator),) = seen.operators.items()
    placed = seen.observed.operators[name]
    return np.bincount(placed.shard_replicas, weights=operator.shards.busy_s, minlength=placed.replicas).astype(np.float64)


@dataclass
class Restart:
    """Another number of replicas, unless the last restart was a moment ago."""

    last_s: float = 0.0

    def __call__(self, seen: Observation, placed: OperatorAllocation) -> OperatorAllocation:
        if seen.end_s - self.last_s < _BETWEEN_RESTARTS_S or imbalance(replica_loads(seen)) <= THETA:
            return placed
        self.last_s = seen.end_s
        hosts = tuple(dict.fromkeys(placed.replica_hosts))
        replicas = REPLICAS if placed.replicas > REPLICAS else 2 * REPLICAS
        routes = tuple(s % replicas for s in range(SHARDS))
        return OperatorAllocation(tuple(hosts[r % len(hosts)] for r in range(replicas)), routes)


@dataclass(frozen=True, slots=True)
class Way:
    """One way to serve the operator; `answer` makes what it remembers anew for every run."""

    name: str
    scaling: Scaling
    answer: Callable[[], Answer]


WAYS = (
    Way("static", Scaling.ELASTIC, lambda: stay),
    Way("elastic", Scaling.ELASTIC, lambda: move),
    Way("resource-centric", Scaling.RESOURCE_CENTRIC, Restart),
)


@dataclass(slots=True)
class Measured:
    """What one way has reached: rows and changes of each run, the rest of each interval in which rows came out."""

    rows_per_s: list[float] = field(default_factory=list)
    p50_s: list[float] = field(default_factory=list)
    p90_s: list[float] = field(default_factory=list)
    imbalance: list[float] = field(default_factory=list)
    changes: list[float] = field(default_factory=list)


def measure(bed: Bed) -> list[Figure]:
    rounds, window_s = (1, 15.0) if bed.quick else (3, 60.0)
    bed.say(f"{CASE}: warming up")
    with watched(bed, partial(application, "cold", 0), Scaling.ELASTIC) as running:
        running.settle(at_most_s=30.0 if bed.quick else 60.0)
    found = {way.name: Measured() for way in WAYS}
    for turn in range(rounds):
        for way in WAYS:
            bed.say(f"{CASE}: round {turn + 1} of {rounds}: {way.name}")
            _run(bed, way, turn, window_s, found[way.name])
    return [f for way in WAYS for f in _figures(way.name, found[way.name])]


def _run(bed: Bed, way: Way, turn: int, window_s: float, found: Measured) -> None:
    with watched(bed, partial(application, f"{way.name}-{turn}", turn), way.scaling) as running:
        answer = way.answer()
        _controlled(running, answer, _SETTLED_AFTER_S)
        seen = _controlled(running, answer, window_s)
    found.rows_per_s.append(
        sum(o.operators[running.name].processed_rows for o in seen) / sum(o.interval_s for o in seen) if seen else 0.0
    )
    found.changes.append(sum(sum(o.reconfigurations.values()) for o in seen))
    for o in seen:
        if o.latency.rows > 0:
            found.p50_s.append(o.latency.p50_s)
            found.p90_s.append(o.latency.p90_s)
            found.imbalance.append(imbalance(replica_loads(o)))


def _controlled(running: Watched, answer: Answer, window_s: float) -> list[Observation]:
    """Observe every few seconds for so long, and do as the answer says."""
    backend = running.backend
    seen = []
    for _ in range(max(1, round(window_s / _INTERVAL_S))):
        time.sleep(_INTERVAL_S)
        seen.append(backend.observe())
        for name, why in backend.failures().items():
            raise SpringtideError(f"operator {name!r} has stopped: {why}")
        requested = seen[-1].requested
        if seen[-1].operators[running.name].processed_rows > 0:
            placed = answer(seen[-1], requested.operators[running.name])
            backend.apply(actions(requested, requested.with_operator(running.name, placed)))
    return seen


def _figures(name: str, found: Measured) -> list[Figure]:
    return [
        figure(CASE, f"{name}: rows served, of {ROWS_PER_S:.0f}", "rows/s", found.rows_per_s),
        figure(CASE, f"{name}: latency, median row", "s", found.p50_s),
        figure(CASE, f"{name}: latency, 90 %", "s", found.p90_s),
        figure(CASE, f"{name}: busiest replica / mean", "x", found.imbalance),
        figure(CASE, f"{name}: shards moved, or restarts", "in a run", found.changes),
    ]


def application(name: str, seed: int, save: Save) -> Application:
    """Counts per key; every row takes its time. An operator is named for its run, as its tasks are in Spark's accounts."""

    def read(spark: SparkSession) -> DataFrame:
        return replay(spark, constant(rate_per_s=ROWS_PER_S), keys=SKEWED, seed=seed)

    def count(rows: DataFrame) -> DataFrame:
        return rows.groupBy("key").applyInPandasWithState(
            count_slowly, "key long, rows long", "rows long", "update", "NoTimeout"
        )

    app = Application(name)
    source = app.source("rows", read, ingest_time="offered_at")
    app.sink(app.operator(name, count, source, shards=SHARDS, replicas=REPLICAS, output_mode="update"), save)
    return app


def count_slowly(key: tuple[Any, ...], groups: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """The rows of a key so far, at `ROW_S` each."""
    new = sum(len(rows) for rows in groups)
    time.sleep(new * ROW_S)
    rows = new + (state.get[0] if state.exists else 0)
    state.update((rows,))
    yield pd.DataFrame({"key": [key[0]], "rows": [rows]})
