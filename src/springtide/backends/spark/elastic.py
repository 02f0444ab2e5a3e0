"""An existing streaming query, made elastic: wrap its `writeStream`, keep everything else.

    query = elastic(counts.writeStream.outputMode("update"), slo_s=5).foreachBatch(save).start()

The plan, the checkpoint and the sink function stay the user's. What is added is a control loop in the background that changes
executors, replicas and the places of shards while the query runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from springtide.backends.spark.application import OnError, OperatorNode, Save
from springtide.backends.spark.backend import SparkBackend, Start
from springtide.backends.spark.controlled import Control, Controlled, control
from springtide.backends.spark.deployment import Deployment
from springtide.backends.spark.fusion import UNKNOWN_SERVICE_TIME_S, QueryPlan, pool_of
from springtide.backends.spark.hosts import Fleet
from springtide.backends.spark.jvm.running import nodes_with_state
from springtide.backends.spark.query import OperatorQuery, Wiring
from springtide.backends.spark.starting import present_executors
from springtide.errors import SpringtideError
from springtide.forecast.running.choosing import Models
from springtide.model.allocation import OperatorAllocation
from springtide.model.application import SLO, Edge, Grouping, Operator, Source
from springtide.model.application import Application as ApplicationModel
from springtide.model.protocols import AnyPolicy

_SOURCE = "input"


def elastic(  # noqa: PLR0913 - one keyword for each choice, all with a default
    writer: DataStreamWriter,
    *,
    policy: str | AnyPolicy = "tide",
    parameters: Mapping[str, object] | None = None,
    slo_s: float = 5.0,
    min_hosts: int = 1,
    max_hosts: int = 10,
    interval_s: float = 10.0,
    journal: str | Path | None = None,
    models: str | Path | Models | None = None,
) -> ElasticWriter:
    """Wrap `df.writeStream`; go on with `option`, `outputMode`, `foreachBatch` and `start` as before."""
    chosen = control(policy, parameters, interval_s, journal, models)
    return ElasticWriter(writer, chosen, SLO(latency_s=slo_s), (min_hosts, max_hosts))


@dataclass
class ElasticWriter:
    """The user's `DataStreamWriter`: what it is told goes to it, except what to do with a batch."""

    _writer: DataStreamWriter
    _control: Control
    _slo: SLO
    _hosts: tuple[int, int]
    _save: Save | None = None
    _name: str = "query"

    def outputMode(self, outputMode: str) -> ElasticWriter:
        return self._told(self._writer.outputMode(outputMode))

    def queryName(self, queryName: str) -> ElasticWriter:
        self._name = queryName
        return self._told(self._writer.queryName(queryName))

    def option(self, key: str, value: Any) -> ElasticWriter:
        return self._told(self._writer.option(key, value))

    def options(self, **options: Any) -> ElasticWriter:
        return self._told(self._writer.options(**options))

    def trigger(self, **trigger: Any) -> ElasticWriter:
        return self._told(self._writer.trigger(**trigger))

    def _told(self, writer: DataStreamWriter) -> ElasticWriter:
        self._writer = writer
        return self

    def foreachBatch(self, func: Save) -> ElasticWriter:
        self._save = func
        return self

    def format(self, source: str) -> ElasticWriter:
        raise SpringtideError(
            f"format({source!r}): the tasks of a batch are chosen where it is written, so an elastic query writes with"
            f" foreachBatch: .foreachBatch(lambda df, batch_id: df.write.mode('append').format({source!r})...)"
        )

    def start(self) -> Controlled:
        df: DataFrame = self._writer._df
        spark = df.sparkSession
        if self._save is None:
            raise SpringtideError("an elastic query needs a sink function: call foreachBatch(save) before start()")
        present = present_executors(spark)
        first = next(iter(present.values()))
        pool = pool_of(first.cores, first.memory_bytes, *self._hosts)
        node = self._node(df)
        hosts = max(self._hosts[0], min(self._hosts[1], len(present)))
        start = Start(hosts=hosts, replicas={node.name: min(node.max_replicas, node.shards or hosts, hosts)})

        def deploy(fleet: Fleet, placed: Mapping[str, OperatorAllocation]) -> Deployment:
            query = OperatorQuery(spark, QueryPlan((node,)), self._wiring(df), fleet, placed[node.name])
            return Deployment(spark, {node.name: query})

        return Controlled(SparkBackend(spark, self._described(node), pool, deploy, start), self._control)

    def _node(self, df: DataFrame) -> OperatorNode:
        shards = int(str(df.sparkSession.conf.get("spark.sql.shuffle.partitions"))) if nodes_with_state(df) else 0
        return OperatorNode(
            name=self._name,
            function=_as_it_is,
            inputs=(_SOURCE,),
            shards=shards,
            grouping=Grouping.KEY if shards else Grouping.SHUFFLE,
            key=(),
            replicas=1,
            max_replicas=shards or 64,
            output_mode="",
            fuse=False,
            max_rows_per_batch=None,
            on_error=OnError.FAIL,
            edge=None,
        )

    def _described(self, node: OperatorNode) -> ApplicationModel:
        operator = Operator(
            name=node.name,
            service_time_s=UNKNOWN_SERVICE_TIME_S,
            grouping=node.grouping,
            shards=node.shards or 1,
            max_replicas=node.max_replicas,
        )
        return ApplicationModel(
            name=node.name,
            operators=(operator,),
            sources=(Source(name=_SOURCE),),
            edges=(Edge(upstream=_SOURCE, downstream=node.name),),
            slo=self._slo,
        )

    def _wiring(self, df: DataFrame) -> Wiring:
        assert self._save is not None
        return Wiring(
            inputs=(df,),
            upstream={},
            source_names=(_SOURCE,),
            log=None,
            own_readers=(),
            sinks=(self._save,),
            checkpoint=None,
            dead_letters=None,
            trigger_s=0.0,
            writer=self._writer,
        )


def _as_it_is(df: DataFrame) -> DataFrame:
    return df
