"""State in another number of partitions, while its query does not run.

Spark refuses to do so when the last batch was planned and not committed: it cannot know whether the batch gave rows. We
can, when it was our stop that kept the batch from beginning: that is noted in the checkpoint, and such a batch is passed over.
"""

from __future__ import annotations

import json

from pyspark.sql import SparkSession

from springtide.backends.spark.files import Folder

_UNSTARTED = "springtide-unstarted.json"


def note_unstarted(checkpoint: Folder, last_begun: int) -> None:
    """After a stop: note the batch that Spark has planned and that has not begun, if there is one."""
    planned = _last(checkpoint.folder("offsets"))
    if planned > max(last_begun, last_committed(checkpoint)):
        checkpoint.write_json(_UNSTARTED, {"batch": planned})


def repartition(spark: SparkSession, checkpoint: Folder, partitions: int) -> None:
    """Partition the state of a stopped query anew; Spark's own refusal is passed on."""
    unstarted = checkpoint.read_json(_UNSTARTED)
    may_skip = unstarted is not None and unstarted["batch"] == _last(checkpoint.folder("offsets"))
    spark._streamingCheckpointManager.repartition(checkpoint.uri, partitions, enforce_exactly_once_sink=not may_skip)


def kept_partitions(checkpoint: Folder) -> int | None:
    """How many partitions the state has as of the last committed batch; None while there is none.

    Partitions that are no longer used leave their folders behind, so these cannot be counted.
    """
    committed = last_committed(checkpoint)
    planned = checkpoint.folder("offsets").read_text(str(committed)) if committed >= 0 else None
    if planned is None:
        return None
    settings = json.loads(planned.splitlines()[1])["conf"]  # a version, what the batch was planned with, the offsets
    return int(settings["spark.sql.shuffle.partitions"])


def last_committed(checkpoint: Folder) -> int:
    """The number of the last committed batch; -1 while there is none."""
    return _last(checkpoint.folder("commits"))


def _last(folder: Folder) -> int:
    return max((int(name) for name in folder.names() if name.isdigit()), default=-1)
