"""Counting a source's rows on their way into a query's plan, and when they entered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from springtide.monitor.ingest_times import IngestTimes, at_once

# Points at which the ingest times of a source's batch are taken, each standing for the same number of rows.
_QUANTILES = [(i + 0.5) / 50 for i in range(50)]


def counts_name(source: str) -> str:
    """The name under which a source's rows are counted in the plan of the query that reads it."""
    return f"springtide:{source}"


def counting(df: DataFrame, source: str, ingest_time: str | None) -> DataFrame:
    """A source's rows, counted on their way, with the time at which they entered when a column tells it."""
    metrics = [F.count(F.lit(1)).alias("rows")]
    if ingest_time is not None:
        entered = F.unix_micros(F.col(ingest_time).cast("timestamp"))
        metrics.append(F.percentile_approx(entered, _QUANTILES, F.lit(1000)).alias("entered"))
    return df.observe(counts_name(source), *metrics)


def ingested(counts: Mapping[str, Any], started_s: float) -> IngestTimes:
    """When the rows of a batch entered: as their column tells, or with the batch."""
    points = counts.get("entered")
    if not points:
        return at_once(started_s, counts["rows"])
    times_s = np.array([float(p) for p in points]) / 1e6
    return IngestTimes(times_s, np.full(len(times_s), counts["rows"] / len(times_s)))
