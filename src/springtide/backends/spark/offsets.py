"""Which input a batch reads, from the offsets that Spark writes to the checkpoint before it runs the batch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from springtide.backends.spark.files import Folder

# For each source of a query: where a batch begins, and what the source had when the batch was planned.
Offsets = Sequence[tuple[Any, Any]]

# Offsets of Spark's own sources that count files or seconds, not rows.
_NOT_ROWS = ("logOffset",)


def batch_offsets(checkpoint: Folder, batch_id: int) -> list[Any]:
    """Where each source of the query stands once the batch is done; nothing for a batch that is not there."""
    text = checkpoint.read_text(f"offsets/{batch_id}")
    if text is None:
        return []
    lines = text.splitlines()[2:]  # the version, and the metadata
    return [None if line == "-" else json.loads(line) for line in lines]


def is_edge(offset: Any) -> bool:
    """Whether an offset is one of ours; a topic may be called as we call an edge."""
    return isinstance(offset, dict) and isinstance(offset.get("edge"), str) and isinstance(offset.get("entry"), int)


def edge_entries(offsets: list[Any]) -> dict[str, int]:
    """By edge, the entry up to which a batch has read; of an edge that is read twice, what both have read."""
    found: dict[str, int] = {}
    for offset in offsets:
        if is_edge(offset):
            found[offset["edge"]] = min(int(offset["entry"]), found.get(offset["edge"], int(offset["entry"])))
    return found


def rows_reached(offset: Any) -> float | None:
    """The rows that an offset stands for: a row number, or the sum over a topic's partitions. None when it does not count rows.

    Two offsets of one source then differ by the rows between them.

    >>> rows_reached({"row": 7, "started_at": 1.5})
    7.0
    >>> rows_reached({"clicks": {"0": 10, "1": 5}})
    15.0
    >>> rows_reached({"logOffset": 3}) is None
    True
    """
    if not isinstance(offset, dict) or any(key in offset for key in _NOT_ROWS):
        return None
    if isinstance(offset.get("row"), int):
        return float(offset["row"])
    counts = [count for part in offset.values() if isinstance(part, dict) for count in part.values()]
    whole = all(isinstance(part, dict) for part in offset.values()) and all(isinstance(c, int) for c in counts)
    return float(sum(counts)) if whole else None
