"""The static policy: nothing changes, once it is the size it should be."""

from dataclasses import replace

import pytest
from observations import POOL, play, view

from factories import allocation, application, operator
from springtide.errors import InvalidValue
from springtide.model.application import Grouping
from springtide.plan.policies.static import Static

APP = application(operator("parse", grouping=Grouping.SHUFFLE), operator("count"), operator("one", max_replicas=1))
START = allocation(APP, hosts=2)


def test_it_keeps_what_there_is() -> None:
    decision, _ = Static().decide(view(APP, START, {"count": 9.0}), None)
    assert decision.planned is START
    assert decision.reason == "keep 2 hosts and 3 replicas"
    assert decision.expected.utilisation == pytest.approx(2.25)


def test_it_brings_the_application_to_its_size_once_and_keeps_it_there() -> None:
    story = list(play(Static(replicas=4, hosts=3), APP, START, [{"count": 2.0}] * 2))
    assert story[0].planned.hosts == ("host-0", "host-1", "host-2")
    assert {name: o.replicas for name, o in story[0].planned.operators.items()} == {"parse": 4, "count": 4, "one": 1}
    assert story[0].reason.startswith("bring it to 3 hosts and 9 replicas: add host-2")
    assert story[1].planned is story[0].planned


def test_what_is_not_possible_is_said() -> None:
    decision, _ = Static(replicas=4, hosts=20).decide(view(APP, START, {}, pool=replace(POOL, max_hosts=5)), None)
    assert len(decision.planned.hosts) == 5
    assert [str(veto) for veto in decision.why_not] == [
        "static: not 20 hosts, because the pool has between 1 and 5",
        "static: not 4 replicas of one, because they may have no more than 1",
    ]


def test_it_can_release_hosts() -> None:
    decision, _ = Static(hosts=1).decide(view(APP, START, {"parse": 0.4}), None)
    assert decision.planned.hosts == ("host-0",)
    assert decision.expected.utilisation == pytest.approx(0.1)


@pytest.mark.parametrize("parameters", [{"replicas": -1}, {"hosts": -2}])
def test_sizes_are_not_negative(parameters: dict[str, int]) -> None:
    with pytest.raises(InvalidValue, match="must be 0"):
        Static(**parameters)
