"""Traces as files, for what reads files: one row per step, with its time and its count."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from springtide.workload.traces import Trace

_SOME_DAY = "2000-01-03T00:00:00+00:00"  # a Monday, for a trace that does not tell when it was


def write_trace(trace: Trace, file: Path) -> None:
    """A Parquet file that `read_trace` and `springtide forecast prepare` read."""
    start = datetime.fromisoformat(trace.start or _SOME_DAY)
    first_us = int((start if start.tzinfo else start.replace(tzinfo=UTC)).timestamp() * 1e6)
    times_us = first_us + np.rint(np.arange(trace.steps) * trace.step_s * 1e6).astype(np.int64)
    table = pa.table({"timestamp": pa.array(times_us, pa.timestamp("us", "UTC")), "count": trace.counts})
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, file)
