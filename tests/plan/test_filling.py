"""Replicas for all the cores there are: by demand, whole, within limits; and dealt anew only when that serves more."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from observations import POOL, placed_on, view

from factories import allocation, application, operator
from springtide.model.application import Application, Grouping
from springtide.model.protocols import View
from springtide.plan.placement.counts import allocate
from springtide.plan.placement.filling import busiest_utilisation, fill, refill, rounded, shared_out


def chain(*names: str, **fields: object) -> Application:
    return application(*(operator(name, grouping=Grouping.SHUFFLE, **fields) for name in names))


AB = chain("a", "b")
ABC = chain("a", "b", "c")


def with_backlog(seen: View, **rows: float) -> View:
    operators = {name: replace(seen, backlog_rows=rows.get(name, 0.0)) for name, seen in seen.observation.operators.items()}
    return replace(seen, observation=replace(seen.observation, operators=operators))


def test_cores_are_shared_by_demand() -> None:
    seen = view(AB, allocation(AB), {"a": 3.0, "b": 1.0})
    assert fill(seen, 1) == {"a": 3, "b": 1}
    assert fill(seen, 2) == {"a": 6, "b": 2}
    assert fill(seen, 3) == {"a": 9, "b": 3}


def test_an_operator_with_nothing_to_do_keeps_one_replica() -> None:
    assert fill(view(AB, allocation(AB), {"a": 3.0}), 2) == {"a": 7, "b": 1}


def test_before_anything_is_known_cores_are_shared_evenly() -> None:
    assert fill(view(ABC, allocation(ABC), {}), 3) == {"a": 4, "b": 4, "c": 4}


def test_what_one_cannot_use_goes_to_the_others() -> None:
    app = application(operator("a", grouping=Grouping.SHUFFLE, max_replicas=2), operator("b", shards=5), operator("c"))
    seen = view(app, allocation(app), {"a": 8.0, "b": 8.0, "c": 1.0})
    assert fill(seen, 3) == {"a": 2, "b": 5, "c": 5}
    assert fill(seen, 9) == {"a": 2, "b": 5, "c": 8}  # 15 is all that can be used


def test_more_operators_than_cores_share_them() -> None:
    app = chain(*"abcdefg")
    assert fill(view(app, allocation(app), {"a": 9.0}), 1) == dict.fromkeys("abcdefg", 1)


@given(
    weights=st.lists(st.floats(0.05, 20), min_size=1, max_size=4),
    limits=st.lists(st.integers(1, 6), min_size=4, max_size=4),
    slots=st.integers(1, 20),
)
@settings(max_examples=200, deadline=None)
def test_no_other_whole_numbers_are_nearer_to_the_shares(weights: list[float], limits: list[int], slots: int) -> None:
    limits = limits[: len(weights)]
    found = rounded(shared_out(np.array(weights), np.array(limits), slots)).tolist()
    total = max(len(weights), min(slots, sum(limits)))
    assert sum(found) == total
    shares = _shares_by_bisection(weights, limits, total)
    others = (c for c in itertools.product(*(range(1, limit + 1) for limit in limits)) if sum(c) == total)
    assert _distance(found, shares) <= min(_distance(other, shares) for other in others) + 1e-6


def _shares_by_bisection(weights: list[float], limits: list[int], total: int) -> list[float]:
    low, high = 0.0, 1e4
    for _ in range(200):
        level = (low + high) / 2
        shares = [min(max(level * w, 1.0), limit) for w, limit in zip(weights, limits, strict=True)]
        low, high = (level, high) if sum(shares) < total else (low, level)
    return shares


def _distance(counts: list[int] | tuple[int, ...], shares: list[float]) -> float:
    return sum(abs(c - s) for c, s in zip(counts, shares, strict=True))


def test_replicas_that_serve_what_comes_are_left_alone() -> None:
    placed = placed_on(a=(0,), b=(0, 0, 0))
    assert refill(view(AB, placed, {"a": 1.0, "b": 0.1})) is None


def test_an_operator_that_is_short_gets_the_cores_that_others_do_not_need() -> None:
    placed = placed_on(a=(0,), b=(0, 0, 0))
    assert refill(view(AB, placed, {"a": 2.4, "b": 0.8})) == {"a": 3, "b": 1}


def test_a_backlog_counts_as_something_to_do() -> None:
    placed = placed_on(a=(0,), b=(0, 0, 0))
    seen = view(AB, placed, {"a": 0.9, "b": 0.3})
    assert refill(with_backlog(seen, a=1999)) is None  # 0.9 cores and 0.09995 more: 2000 rows of 1 ms are 0.1 of 20 s
    assert refill(with_backlog(seen, a=3000)) == {"a": 3, "b": 1}


def test_no_core_is_idle_while_rows_wait_and_two_operators_do_not_trade_one_for_ever() -> None:
    """Three halves each on three cores: whoever has two of them, the other is short. So both get two, and share one."""
    three = replace(POOL, host=replace(POOL.host, cores=3))
    for a in (1.4, 1.5, 1.6):
        loads = {"a": a, "b": 3.0 - a}
        assert refill(view(AB, placed_on(a=(0, 0), b=(0,)), loads, pool=three)) == {"a": 2, "b": 2}
        assert refill(view(AB, placed_on(a=(0, 0), b=(0, 0)), loads, pool=three)) is None


def test_when_all_cores_are_busy_there_is_nothing_to_deal_anew() -> None:
    assert refill(view(AB, placed_on(a=(0, 0), b=(0, 0)), {"a": 9.0, "b": 3.0})) is None


def test_what_a_plan_promises_is_the_busiest_host_s_share_of_demand() -> None:
    seen = view(AB, placed_on(hosts=1, a=(0,), b=(0,)), {"a": 3.0, "b": 1.0})
    assert busiest_utilisation(seen, seen.requested) == pytest.approx(1.0)
    assert busiest_utilisation(seen, allocate(seen, {"a": 6, "b": 2}, 2)) == pytest.approx(0.5)
    assert busiest_utilisation(seen, allocate(seen, {"a": 1, "b": 1}, 2)) == pytest.approx(0.25)  # no replica has two cores
