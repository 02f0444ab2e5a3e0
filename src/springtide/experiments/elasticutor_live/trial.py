"""One live run: a workload of one operator on the cluster's executors, a policy in charge, and every row checked at its end.

Rules. Runs share one Spark session and take turns in it: an operator has a name of its own in every run, as Spark's accounts
of its tasks go by that. What a run writes is gone when it is over. A run whose operator stops by itself has failed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from pyspark.sql import DataFrame, Row, SparkSession

from springtide.applications.shipped import Checked
from springtide.backends.spark.application import Application
from springtide.backends.spark.backend import SparkBackend, Start
from springtide.backends.spark.deployment import Deployment, deployed
from springtide.backends.spark.files import Folder
from springtide.backends.spark.fusion import described, fused
from springtide.backends.spark.hosts import Fleet
from springtide.backends.spark.jvm.status import Task
from springtide.backends.spark.offsets import batch_offsets
from springtide.backends.spark.query import BatchRecord
from springtide.errors import SpringtideError
from springtide.experiments.elasticutor_live import world
from springtide.experiments.elasticutor_live.interrupting import noted
from springtide.experiments.elasticutor_live.measuring import LiveBatch, latencies, mean_ages, rates, rows_per_s, transients_s
from springtide.experiments.elasticutor_live.repartitioning import RepartitionedQuery
from springtide.experiments.study import Values
from springtide.forecast.running.choosing import forecast_for
from springtide.loop import ControlLoop
from springtide.model.action import Action
from springtide.model.allocation import OperatorAllocation
from springtide.model.decision import Decision, Outcome
from springtide.model.observation import Observation
from springtide.model.protocols import AnyPolicy

BIN_S = 2.0  # of throughput over time


@dataclass(slots=True)
class Kept:
    """What the sink of a run was given. A batch that comes again replaces its own rows."""

    batches: dict[int, list[Row]] = field(default_factory=dict)

    def save(self, df: DataFrame, batch_id: int) -> None:
        self.batches[batch_id] = df.collect()

    def rows(self) -> list[Row]:
        return [row for _, rows in sorted(self.batches.items()) for row in rows]


class Workload(Protocol):
    """An application of one operator that reads one replayed stream."""

    @property
    def data(self) -> str:
        """Which rows it reads, in one line."""
        ...

    def application(self, operator: str, folder: Path, kept: Kept) -> Application:
        """With one operator of that name, which has `world.SHARDS` shards and ends in `kept`; files are under `folder`."""
        ...

    def checked(self, spark: SparkSession, kept: Kept, rows: int) -> Checked:
        """What was kept, beside the right answer to the first `rows` rows."""
        ...

    def rows_at_shuffles(self) -> list[float]:
        """The first row after each shuffle of the keys; none where keys are not shuffled."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """`repartitions`: changes are carried out by a restart. `counted_s` follow on the warm-up."""

    name: str
    workload: Workload
    policy: AnyPolicy
    counted_s: float
    repartitions: bool = False


@dataclass(slots=True)
class Record:
    """A recorder of batches, of changes, and of shards that went to another host."""

    batches: list[LiveBatch] = field(default_factory=list)
    changes: int = 0
    shards_moved: int = 0

    def batch(self, _: str, record: BatchRecord, tasks: Sequence[Task] = ()) -> None:  # noqa: ARG002 - the backend's signature
        self.batches.append(
            LiveBatch(
                began_s=record.started_s,
                ended_s=record.finished_s,
                rows=record.rows_in,
                ages_s=record.ingested.ages_s(record.finished_s),
                rows_aged=record.ingested.rows,
                followed=record.routing.allocation,
            )
        )

    def observation(self, observation: Observation) -> None:
        self.shards_moved += observation.reconfigurations.get("shards_moved", 0)

    def decision(self, observation: Observation, decision: Decision, actions: Sequence[Action]) -> None:  # noqa: ARG002
        self.changes += bool(actions)

    def outcome(self, outcome: Outcome, time_s: float) -> None:
        """What became of a promise is not asked here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A run that is over. `began_s` is when its stream began, `until_s` when it was ended; `load` is the machine's before."""

    trial: Trial
    record: Record
    began_s: float
    until_s: float
    checked: Checked
    load: float

    @property
    def from_s(self) -> float:
        """When the warm-up was over."""
        return self.began_s + world.WARM_UP_S


def run_trial(trial: Trial) -> Ran:
    """Run it in the session there is, and check its answer."""
    spark, load = SparkSession.active(), os.getloadavg()[0]
    record, kept = Record(), Kept()
    with _folder(spark) as folder, noted() as interrupts:
        backend, deployment = _made(spark, trial, folder, kept)
        backend.told_of_batch, interrupts.stop = record.batch, backend.clock.stop
        until_s = _controlled(backend, trial, record)
        interrupts.raise_noted()
        (query,) = deployment.queries.values()
        for late in query.take_records():  # the batch that was finished by the stop
            record.batch(query.name, late)
        rows, began_s = _reached(query.checkpoint)
        return Ran(
            trial=trial,
            record=record,
            began_s=began_s,
            until_s=until_s,
            checked=trial.workload.checked(spark, kept, rows),
            load=load,
        )


@contextmanager
def _folder(spark: SparkSession) -> Iterator[Path]:
    """A folder among the session's own, which go with it: Spark may write into it for a moment after a run has stopped."""
    place = Path(str(spark.sparkContext.getConf().get("spark.local.dir"))) / "runs"
    place.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _made(spark: SparkSession, trial: Trial, folder: Path, kept: Kept) -> tuple[SparkBackend, Deployment]:
    application = trial.workload.application(trial.name, folder, kept)
    deployments: list[Deployment] = []

    def deploy(fleet: Fleet, placed: Mapping[str, OperatorAllocation]) -> Deployment:
        made = deployed(spark, application, Folder(str(folder / "state")), fleet, placed)
        if trial.repartitions:
            own = {n: RepartitionedQuery(spark, q.plan, q.wiring, fleet, placed[n]) for n, q in made.queries.items()}
            made = Deployment(spark, own)
        deployments.append(made)
        return made

    model = described(application, fused(application))
    start = Start(hosts=world.HOSTS, replicas={trial.name: world.SLOTS})
    return SparkBackend(spark, model, world.pool(), deploy, start), deployments[0]


def _controlled(backend: SparkBackend, trial: Trial, record: Record) -> float:
    """Run the loop for as long as the trial says, and tell when it was over; an operator that has failed ends it."""
    failures: dict[str, str] = {}

    def over() -> bool:
        failures.update(backend.failures())
        return bool(failures) or backend.clock.stopped

    with forecast_for(trial.policy, world.INTERVAL_S) as forecast:
        loop = ControlLoop(
            application=backend.application,
            pool=backend.pool,
            policy=trial.policy,
            interval_s=world.INTERVAL_S,
            forecast=forecast,
        )
        backend.start()
        try:
            loop.run(backend, record, backend.clock.now_s() + world.WARM_UP_S + trial.counted_s, over)
            over()
        finally:
            until_s = backend.clock.epoch_s(backend.clock.now_s())
            backend.stop()
    for name, why in failures.items():
        raise SpringtideError(f"operator {name!r} has stopped: {why}")
    return until_s


def _reached(checkpoint: Folder) -> tuple[int, float]:
    """The rows that have been read and committed, and when the stream began."""
    committed = max((int(name) for name in checkpoint.folder("commits").names() if name.isdigit()), default=-1)
    offsets: Sequence[Any] = batch_offsets(checkpoint, committed)
    if not offsets:
        raise SpringtideError("no batch was finished: the machine is too busy for a live run")
    return int(offsets[0]["row"]), float(offsets[0]["started_at"])


def told(ran: Ran) -> tuple[Values, Values]:
    """What is the same in every rerun, and what was measured."""
    batches, from_s, until_s = ran.record.batches, ran.from_s, ran.until_s
    counted = [batch for batch in batches if from_s <= batch.ended_s and batch.began_s < until_s and batch.rows > 0]
    if until_s - from_s < world.INTERVAL_S or not counted:
        raise SpringtideError("no batch ended after the warm-up: the machine is too busy for a live run")
    latency = latencies(counted)
    found = {
        "offered_per_s": world.rows_per_s(),
        "data": ran.trial.workload.data,
        "wrong": ran.checked.wrong,
    }
    measured = {
        "throughput_per_s": rows_per_s(batches, from_s, until_s),
        "latency_ms": 1000 * latency.mean_s,
        "latency_p99_ms": 1000 * latency.p99_s,
        "transients_s": [round(time_s, 1) for time_s in transients_s(batches, ran.trial.workload.rows_at_shuffles())],
        "processed_per_s": _rounded(rates(batches, ran.began_s, until_s, BIN_S), 1.0),
        "latency_over_time_ms": _rounded(mean_ages(batches, ran.began_s, until_s, BIN_S), 1000.0),
        "counted_s": until_s - from_s,
        "batches": len(counted),
        "changes": ran.record.changes,
        "shards_moved": ran.record.shards_moved,
        "checked": str(ran.checked),
        "load_before": ran.load,
    }
    return found, measured


def _rounded(values: Sequence[float], factor: float) -> list[int]:
    return [round(value * factor) for value in values]
