"""An application as plain queries, for comparison: which operators share one."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from springtide.backends.spark.application import Application
from springtide.benchmarks.plain import chains


def same(df: Any) -> Any:
    return df


def save(df: Any, batch_id: int) -> None: ...


def names(app: Application) -> list[str]:
    return ["+".join(node.name for node in chain.operators) for chain in chains(app)]


def test_operators_share_a_query_until_a_second_one_keeps_state() -> None:
    app = Application("clicks")
    parsed = app.operator("parse", same, app.source("events", same))
    counted = app.operator("count", same, parsed, shards=8)
    formatted = app.operator("format", same, counted)
    ranked = app.operator("rank", same, formatted, shards=4)
    app.sink(ranked, save)

    assert names(app) == ["parse+count+format", "rank"]
    assert [chain.shards for chain in chains(app)] == [8, 4]


def test_a_stream_that_two_read_or_that_is_saved_ends_a_query() -> None:
    app = Application("clicks")
    parsed = app.operator("parse", same, app.source("events", same))
    counted = app.operator("count", same, parsed, shards=8)
    app.sink(app.operator("alarm", same, parsed), save)
    app.sink(counted, save)
    app.sink(app.operator("format", same, counted), save)

    assert names(app) == ["parse", "count", "alarm", "format"]


@pytest.mark.full
@pytest.mark.spark
def test_the_benchmark_runs_both_and_both_are_right() -> None:
    command = [sys.executable, "-m", "springtide", "bench", "applications", "--quick", "--json", "--application", "dns"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)

    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["results"]
    assert result["application"] == "dns"
    assert result["correct"]
    assert result["rows"] > 1000
    assert result["springtide_rows_per_s"] > 0
    assert result["ratio"] == pytest.approx(result["springtide_rows_per_s"] / result["plain_rows_per_s"])
