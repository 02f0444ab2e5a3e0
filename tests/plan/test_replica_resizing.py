"""More replicas where one is saturated, fewer where fewer would do, on the hosts the operator is on."""

import pytest
from observations import Cores, placed_on, shards, view

from factories import application, operator
from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.model.application import Grouping
from springtide.plan.placement.loads import Loads
from springtide.plan.policies.local_thresholds import LocalThresholds
from springtide.plan.thresholds.resizing import Resizing, replica_verdicts, resize

APP = application(
    operator("parse", grouping=Grouping.SHUFFLE, max_replicas=6),
    operator("count", shards=8),
    operator("one", shards=4, max_replicas=1),
)
PLACED = placed_on(hosts=2, parse=(0,), count=shards(*[0] * 8), one=shards(1, 1, 1, 1))
RULES = LocalThresholds(consecutive=2)


def verdicts(placed: Allocation, loads: Cores) -> dict[str, int]:
    return replica_verdicts(view(APP, placed, loads), RULES)


def resized(placed: Allocation, loads: Cores, **streaks: int) -> Resizing:
    seen = view(APP, placed, loads)
    return resize(Loads(seen), seen.requested, streaks, RULES)


def test_a_saturated_replica_is_seen_whatever_the_others_do() -> None:
    two = PLACED.with_operator("parse", OperatorAllocation(("host-0", "host-1")))
    assert verdicts(two, {"parse": [0.9, 0.1]}) == {"parse": 1}


def test_replicas_that_fit_in_fewer_are_seen() -> None:
    two = PLACED.with_operator("parse", OperatorAllocation(("host-0", "host-1")))
    assert verdicts(two, {"parse": 0.59}) == {"parse": -1}
    assert verdicts(two, {"parse": 0.61}) == {}


def test_a_keyed_operator_needs_a_replica_on_each_of_its_hosts() -> None:
    halves = PLACED.with_operator("count", shards(0, 0, 0, 0, 1, 1, 1, 1))
    assert verdicts(halves, {"count": 0.1}) == {}


def test_an_operator_whose_replicas_are_being_changed_is_not_judged() -> None:
    two = PLACED.with_operator("parse", OperatorAllocation(("host-0", "host-1")))
    assert replica_verdicts(view(APP, PLACED, {"parse": 1.0}, requested=two), RULES) == {}


def test_nothing_happens_before_the_streak_is_long_enough() -> None:
    assert resized(PLACED, {"parse": 0.95}, parse=1).allocation is not None
    assert resized(PLACED, {"parse": 0.95}, parse=1).steps == ()


def test_a_saturated_operator_gets_the_replicas_its_load_needs() -> None:
    after = resized(PLACED, {"parse": 0.95}, parse=2)
    assert after.allocation.operators["parse"].replicas == 2
    assert after.steps == ("parse's busiest replica at 0.95 > 0.80 for 2 intervals: 1 -> 2 replicas",)


def test_a_new_replica_goes_where_there_is_room() -> None:
    full = {"parse": 0.95, "count": 2.6}
    assert resized(PLACED, full, parse=2).allocation.operators["parse"].replica_hosts == ("host-0", "host-1")


def test_without_room_it_is_not_added_and_that_is_said() -> None:
    crowded = {"parse": 0.95, "count": 3.0, "one": 3.5}
    after = resized(PLACED, crowded, parse=2)
    assert after.steps == ()
    (veto,) = after.why_not
    assert veto.what.startswith("relieve parse")
    assert veto.why == "no host has room for another replica"


def test_a_keyed_operator_is_regrouped_inside_its_host() -> None:
    after = resized(PLACED, {"count": 1.6}, count=2)
    assert after.allocation.operators["count"].replica_hosts == ("host-0",) * 3
    assert "regroup its shards from 1 into 3 replicas" in after.steps[0]


def test_no_host_loses_replicas_while_one_is_saturated() -> None:
    halves = OperatorAllocation(("host-0", "host-1", "host-1"), (0, 0, 0, 0, 1, 1, 2, 2))
    loads = {"count": [0.3] * 4 + [0.05] * 4}
    grown = resized(PLACED.with_operator("count", halves), loads, count=2).allocation.operators["count"]
    assert sorted(grown.replica_hosts) == ["host-0", "host-0", "host-1", "host-1"]
    shrunk = resized(PLACED.with_operator("count", halves), {"count": 0.2}, count=-2).allocation.operators["count"]
    assert sorted(shrunk.replica_hosts) == ["host-0", "host-1"]


def test_a_shard_cannot_be_split() -> None:
    after = resized(PLACED, {"count": [0.9] + [0.0] * 7}, count=2)
    assert after.steps == ()
    assert after.why_not[0].why == "its shards cannot be grouped any better on the hosts they are on"


def test_an_operator_at_its_limit_stays_there() -> None:
    assert resized(PLACED, {"one": 0.95}, one=2).why_not[0].why == "it may have no more than 1 replica"


def test_one_replica_at_a_time_is_dropped() -> None:
    four = PLACED.with_operator("parse", OperatorAllocation(("host-0", "host-1", "host-0", "host-1")))
    after = resized(four, {"parse": 0.3}, parse=-2)
    assert after.allocation.operators["parse"].replica_hosts == ("host-0", "host-1", "host-0")
    assert after.steps == ("parse at 0.07 fits in fewer replicas at 0.60 for 2 intervals: 4 -> 3 replicas",)


@pytest.mark.parametrize("load", [0.7, 0.95, 1.0])
def test_resizing_does_not_oscillate(load: float) -> None:
    grown = resized(PLACED, {"parse": load}, parse=2).allocation
    assert verdicts(grown, {"parse": load}) == {}


def test_where_no_host_has_room_for_its_share_one_more_replica_lets_the_load_show() -> None:
    """Both hosts are below the upper threshold, so nobody relocates; without this, parse would stay saturated for ever."""
    nearly_full = {"parse": 0.95, "count": 2.2, "one": 3.1}
    after = resized(PLACED, nearly_full, parse=2)
    assert after.allocation.operators["parse"].replicas == 2
