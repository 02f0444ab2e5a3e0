"""Case `pauses`: what a change costs the batches around it, and how that compares with a restart.

One operator counts rows per key, with 8 shards on 4 hosts, at a steady rate. Blocks of changes without a restart (elastic)
and of restarts with 4 and 8 replicas in turn (resource-centric) take turns in one session. How many shards a change moves
to other hosts is said with it. `nothing` is measured like a change, and is the noise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np
import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

from springtide.backends.spark.application import Application, Save
from springtide.backends.spark.scaling import Scaling
from springtide.benchmarks.figures import Bar, Figure, figure
from springtide.benchmarks.spark.batches import Disturbance, Pause, pauses
from springtide.benchmarks.spark.bed import Bed, Watched, watched
from springtide.benchmarks.spark.homes import Homes
from springtide.execute.diff import actions
from springtide.model.allocation import Allocation, new_host_names
from springtide.model.application import KeyDistribution
from springtide.model.observation import Observation
from springtide.workload.replay import replay
from springtide.workload.traces import Trace

CASE = "pauses"
REPLICAS_BAR = Bar(limit=1.2)
ONE_SHARD_BAR = Bar(limit=2.0)
RESTART_BAR = Bar(limit=10.0, at_least=True)

SHARDS = 8
KEYS = 100_000
ROWS_PER_S = 2000.0

NOTHING = "nothing"
OBSERVED = "observing"
ONE_SHARD = "1 of 8 shards"
REGROUPED = ("4 -> 8 replicas in place", "8 -> 4 replicas in place")
RESTART = "restart"

_DISTURBED = 4  # batches that a change may disturb, from the first that follows it
_UNDISTURBED = 8  # batches between them and the next change
_RESOLUTION = 0.1  # of a normal batch: an excess below it is not told from none


def measure(bed: Bed) -> list[Figure]:
    blocks, rounds = (1, 1) if bed.quick else (3, 2)
    found: list[Pause] = []
    for block in range(blocks):
        bed.say(f"{CASE}: block {block + 1} of {blocks}: changes without a restart")
        with watched(bed, partial(application, "elastic"), Scaling.ELASTIC) as running:
            found += _Elastic(running, bed).block(rounds)
        bed.say(f"{CASE}: block {block + 1} of {blocks}: restarts")
        with watched(bed, partial(application, f"restarting-{block}"), Scaling.RESOURCE_CENTRIC) as running:
            found += _restarts(running, bed)
    return figures(found)


def application(name: str, save: Save) -> Application:
    """Counts per key: all keys come in the first second, and again at a steady rate."""
    counts = np.full(3 * 3600, ROWS_PER_S)
    counts[0] = 4 * KEYS
    trace = Trace(name="steady", step_s=1.0, counts=counts)

    def read(spark: SparkSession) -> DataFrame:
        return replay(spark, trace, keys=KeyDistribution(keys=KEYS))

    def count(rows: DataFrame) -> DataFrame:
        return rows.groupBy("key").agg(F.count("*").alias("rows"))

    app = Application(name)
    source = app.source("rows", read, ingest_time="offered_at")
    # Named for its run, as its tasks are in Spark's accounts.
    app.sink(app.operator(name, count, source, shards=SHARDS, replicas=4, output_mode="update"), save)
    return app


class _Elastic:
    """Changes one after the other, in one run."""

    def __init__(self, running: Watched, bed: Bed) -> None:
        self._running, self._bed = running, bed
        self._found: list[Disturbance] = []
        self._requested = running.backend.observe().requested
        placed = self._requested.operators[running.name]
        self._homes = Homes(tuple(placed.shard_host(s) for s in range(SHARDS)))

    def block(self, rounds: int) -> list[Pause]:
        self._running.settle(at_least_s=30.0)
        hosts = self._homes.hosts
        for _ in range(rounds):
            self._change(NOTHING, lambda homes: homes)
            self._change(ONE_SHARD, lambda homes: homes.moved(1))
            self._change(REGROUPED[0], lambda homes: homes.with_replicas(2))
            self._change(REGROUPED[1], lambda homes: homes.with_replicas(1))
            self._change("2 of 8 shards", lambda homes: homes.moved(2))
            self._change("4 -> 2 replicas, 4 shards", lambda homes: homes.on(hosts[:2]))
            self._change("2 -> 4 replicas, 4 shards", lambda homes: homes.on(hosts))
            self._change("8 of 8 shards", Homes.all_moved)
        self._change("executor released, 2 shards", lambda homes: homes.on(hosts[1:]), release=hosts[0])
        added = new_host_names(frozenset(hosts), 1)
        self._change("executor added, 2 shards", lambda homes: homes.on((*hosts[1:], *added)))
        found = pauses(self._running.batches, self._found)
        _say(found, self._bed)
        return found

    def _change(self, kind: str, to: Callable[[Homes], Homes], release: str | None = None) -> None:
        running = self._running
        before = self._homes
        self._homes = to(before)
        placed = self._homes.placed()
        keep = [h for h in self._requested.hosts if h != release]
        planned = Allocation(tuple(dict.fromkeys([*keep, *self._homes.hosts])), {running.name: placed})
        first = running.wait_for(1)
        running.backend.apply(actions(self._requested, planned))
        self._requested = planned
        followed = running.wait_until(lambda b: len(b) > first and b[-1].followed == placed) - 1
        seen = [running.backend.observe()] if release is not None else []
        while seen and release in seen[-1].hosts:
            running.wait_for(1)
            seen.append(running.backend.observe())
        after = running.wait_for(_DISTURBED - 1)
        self._found.append(Disturbance(kind=kind, first=first, followed=followed, after=after))
        seen.append(self._look())
        moves = sum(a != b for a, b in zip(before.of, self._homes.of, strict=True))
        moved = sum(s.reconfigurations.get("shards_moved", 0) for s in seen)
        if moved != moves:
            self._bed.say(f"{CASE}: {kind}: {moved} shards were moved, not {moves}")
        for event in (event for s in seen for event in s.events):
            self._bed.say(f"{CASE}: {kind}: {event}")

    def _look(self) -> Observation:
        """How things have come out; looking is a disturbance of its own."""
        first = self._running.wait_for(4 if self._bed.quick else _UNDISTURBED)
        seen = self._running.backend.observe()
        after = self._running.wait_for(2)
        self._found.append(Disturbance(kind=OBSERVED, first=first, followed=first, after=after))
        return seen


def _restarts(running: Watched, bed: Bed) -> list[Pause]:
    """From as many replicas as there are hosts to twice as many, and back."""
    running.settle(at_least_s=15.0)
    requested = running.backend.observe().requested
    homes = Homes(tuple(requested.operators[running.name].shard_host(s) for s in range(SHARDS)))
    found = []
    for replicas_per_host in (2, 1):
        planned = requested.with_operator(running.name, homes.with_replicas(replicas_per_host).placed())
        found.append(_restart(running, requested, planned))
        requested = planned
    running.wait_for(_UNDISTURBED)
    for event in running.backend.observe().events:
        bed.say(f"{CASE}: {RESTART}: {event}")
    took = pauses(running.batches, found)
    _say(took, bed)
    return took


def _restart(running: Watched, requested: Allocation, planned: Allocation) -> Disturbance:
    replicas = planned.operators[running.name].replicas
    first = running.wait_for(_UNDISTURBED)
    running.backend.apply(actions(requested, planned))
    followed = running.wait_until(lambda b: len(b) > first and b[-1].followed.replicas == replicas) - 1
    after = running.wait_for(_DISTURBED - 1)
    return Disturbance(kind=RESTART, first=first, followed=followed, after=after)


def _say(found: list[Pause], bed: Bed) -> None:
    for p in found:
        bed.say(
            f"{CASE}: {p.kind}: batch {p.batch:.2f}, excess {p.excess:+.2f}, idle {p.idle_s:.2f} s, normal {p.normal_s:.2f} s"
        )


def figures(found: list[Pause]) -> list[Figure]:
    """Every change's cost, and the restart's against that of one shard."""
    made = [figure(CASE, "a normal batch", "s", [p.normal_s for p in found])]
    for kind in dict.fromkeys(p.kind for p in found):
        same = [p for p in found if p.kind == kind]
        bar = ONE_SHARD_BAR if kind == ONE_SHARD else REPLICAS_BAR if kind in REGROUPED else None
        made.append(figure(CASE, f"{kind}: its batch", "x normal", [p.batch for p in same], bar))
        made.append(figure(CASE, f"{kind}: excess", "x normal", [p.excess for p in same]))
    restarts = [p for p in found if p.kind == RESTART]
    made.append(figure(CASE, f"{RESTART}: nothing processed", "x normal", [p.idle_s / p.normal_s for p in restarts]))
    made.append(_against_one_shard(found))
    return made


def _against_one_shard(found: list[Pause]) -> Figure:
    """An excess that is not told from none counts as the least that could be told: the ratio is then at least so high."""
    moves = [p for p in found if p.kind == ONE_SHARD]
    least_s = _RESOLUTION * median(p.normal_s for p in moves)
    excess_s = max(least_s, median(p.excess_s for p in moves))
    ratios = [p.idle_s / excess_s for p in found if p.kind == RESTART]
    return figure(CASE, "restart: nothing processed / excess of 1 shard", "x", ratios, RESTART_BAR)
