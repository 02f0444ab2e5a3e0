"""Rows per second of an application whose queries are told of batch by batch, without Spark: known batches, known answers."""

from __future__ import annotations

import pytest

from springtide.benchmarks.applications import ToldBatch, speed_of
from springtide.errors import SpringtideError


def told(query: str, ends_s: list[float], rows: int = 100, *, from_replay: bool = True) -> list[ToldBatch]:
    return [ToldBatch(query=query, ended_s=end_s, rows=rows, from_replay=from_replay) for end_s in ends_s]


def test_the_first_batch_does_not_count() -> None:
    assert speed_of(told("a", [20.0, 21.0, 22.0])) == (300, pytest.approx(100.0))


def test_rows_have_gone_through_when_the_last_query_is_done_with_them() -> None:
    down = told("b", [30.0, 31.0, 32.0], from_replay=False)
    assert speed_of([*told("a", [20.0, 21.0, 22.0]), *down]) == (300, pytest.approx(200 / 12))


def test_a_query_that_starts_late_is_waited_for() -> None:
    early, late = told("a", [1.0, 2.0, 10.5, 11.0]), told("b", [10.0, 12.0, 13.0, 15.0])
    assert speed_of([*early, *late]) == (400, pytest.approx(300 / 5))


def test_too_few_batches_say_nothing() -> None:
    with pytest.raises(SpringtideError, match="there were 1 batches"):
        speed_of([*told("a", [1.0, 2.0]), *told("b", [1.0])])
    with pytest.raises(SpringtideError, match="there were 0 batches"):
        speed_of([])
