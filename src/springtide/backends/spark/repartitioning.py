"""State in another number of partitions, while its query does not run.

Spark refuses to do so when the last batch was planned and not committed: it cannot know whether the batch gave rows. We
can, when it was our stop that kept the batch from beginning: that is noted in the checkpoint, and such a batch is passed over.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from springtide.backends.spark.files import Folder

_UNSTARTED = "springtide-unstarted.json"


def note_unstarted(checkpoint: Folder, last_begun: int) -> None:
    """After a stop: note the batch that Spark has planned and that has not begun, if there is one."""
    planned = _last(checkpoint.folder("offsets"))
    if planned > max(last_begun, _last(checkpoint.folder("commits"))):
        checkpoint.write_json(_UNSTARTED, {"batch": planned})


def repartition(spark: SparkSession, checkpoint: Folder, partitions: int) -> None:
    """Partition the state of a stopped query anew; Spark's own refusal is passed on."""
    unstarted = checkpoint.read_json(_UNSTARTED)
    may_skip = unstarted is not None and unstarted["batch"] == _last(checkpoint.folder("offsets"))
    spark._streamingCheckpointManager.repartition(checkpoint.uri, partitions, enforce_exactly_once_sink=not may_skip)


def _last(folder: Folder) -> int:
    return max((int(name) for name in folder.names() if name.isdigit()), default=-1)
