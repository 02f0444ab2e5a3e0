"""Springtide makes Spark Structured Streaming elastic.

springtide.Application     an application of operators, run with `springtide run` or inside your own session
springtide.start           an application in a session of your own
springtide.elastic         an existing streaming query, made elastic
springtide.Table           files of your own in the place of an edge; likewise springtide.KafkaTopic
springtide.replay          a stream that replays a trace of rates, with rows of your own if you wish (springtide.Recorded)
springtide.replayed        the same rows as a batch: the exact answer to compare with
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from springtide.backends.spark.application import Application
    from springtide.backends.spark.edges.own import KafkaTopic, Table
    from springtide.backends.spark.elastic import elastic
    from springtide.backends.spark.starting import start
    from springtide.model.application import SLO, KeyDistribution
    from springtide.workload.making import Recorded, RowMaker
    from springtide.workload.replay import replay, replayed
    from springtide.workload.traces import Trace

__version__ = "0.1.0"
__all__ = [
    "SLO",
    "Application",
    "KafkaTopic",
    "KeyDistribution",
    "Recorded",
    "RowMaker",
    "Table",
    "Trace",
    "elastic",
    "replay",
    "replayed",
    "start",
]

_HOME = {
    "SLO": "springtide.model.application",
    "Application": "springtide.backends.spark.application",
    "KafkaTopic": "springtide.backends.spark.edges.own",
    "KeyDistribution": "springtide.model.application",
    "Recorded": "springtide.workload.making",
    "RowMaker": "springtide.workload.making",
    "Table": "springtide.backends.spark.edges.own",
    "Trace": "springtide.workload.traces",
    "elastic": "springtide.backends.spark.elastic",
    "replay": "springtide.workload.replay",
    "replayed": "springtide.workload.replay",
    "start": "springtide.backends.spark.starting",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: pyspark takes a second, and not every command needs it."""
    if name not in _HOME:
        raise AttributeError(f"module 'springtide' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(_HOME[name]), name)
