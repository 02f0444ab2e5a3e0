"""More replicas than cores, so that operators share them."""

from __future__ import annotations

from observations import placed_on, shards, view

from factories import application, operator
from springtide.model.application import Grouping
from springtide.plan.placement.sharing import sharing_replicas, short_of_replicas

APP = application(operator("parse", grouping=Grouping.SHUFFLE), operator("count", shards=16), operator("one", shards=1))
PLACED = placed_on(parse=(0,), count=shards(*[0] * 16), one=shards(0))


def test_operators_get_their_part_of_two_replicas_a_core_rounded_up() -> None:
    seen = view(APP, PLACED, {"parse": 1.0, "count": 2.9, "one": 0.1})
    assert sharing_replicas(seen, 2) == {"parse": 4, "count": 12, "one": 1}


def test_nobody_gets_more_than_it_can_have() -> None:
    assert sharing_replicas(view(APP, PLACED, {"count": 1.0}), 10)["count"] == 16


def test_without_any_demand_things_stay_as_they_are() -> None:
    seen = view(APP, PLACED, {})
    assert sharing_replicas(seen, 5) == {"parse": 1, "count": 1, "one": 1}
    assert short_of_replicas(seen, 5) == []


def test_an_operator_that_could_be_held_up_is_named() -> None:
    seen = view(APP, PLACED, {"parse": 0.1, "count": 3.0, "one": 0.1})
    assert short_of_replicas(seen, 1) == ["count"]
