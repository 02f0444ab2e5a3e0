"""Batches that are kept short from outside, without a restart, and without exceeding what the source was told itself."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from springtide.backends.spark.jvm.running import limit_rows, read_limits
from springtide.workload.replay import replay

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("own", [None, 50], ids=["a source without a limit", "a limit of 50 rows"])
def test_a_limit_in_rows_is_lowered_and_no_other_touched(spark: Any, tmp_path: Path, own: int | None) -> None:
    rows: list[int] = []
    df = replay(spark, "generator:steps:levels=2000,hold_s=120", max_rows_per_batch=own)
    query = (
        df.writeStream.foreachBatch(lambda batch, _: rows.append(batch.count()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )

    def sizes_after(limit: int | None) -> list[int]:
        """Of some batches that were planned after the limit was set."""
        limit_rows(spark.sparkContext, query, own_limits, limit)
        after = len(rows) + 2
        deadline = time.monotonic() + 60
        while len(rows) < after + 3:
            assert query.isActive
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return rows[after:]

    try:
        deadline = time.monotonic() + 60
        while not rows and time.monotonic() < deadline:
            time.sleep(0.02)
        own_limits = read_limits(query)
        if own is None:
            assert max(sizes_after(7)) > 7
            return
        assert max(sizes_after(70)) == 50
        assert max(sizes_after(7)) == 7
        assert max(sizes_after(None)) == 50
    finally:
        query.stop()
