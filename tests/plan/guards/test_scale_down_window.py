import pytest
from guard_stories import Scripted, placed, play, replicas, why_nots

from springtide.errors import InvalidValue
from springtide.plan.guards.bounds import Bounded
from springtide.plan.guards.scale_down_window import ScaleDownWindow


def test_a_dip_releases_nothing_until_it_has_lasted_for_the_window() -> None:
    small, large = placed(2, parse=2), placed(2, parse=6)
    decisions = play(ScaleDownWindow(Scripted((large, small)), window_s=60), large, intervals=5)
    assert replicas(decisions, "parse") == [6, 6, 6, 2, 2]
    assert why_nots(decisions[2]) == [
        "scale-down-window: not parse 6 -> 2 replicas, because 6 replicas were planned 40 s ago and the window is 60 s"
    ]


def test_replicas_fall_to_the_most_that_was_planned_and_no_further() -> None:
    script = tuple(placed(2, parse=n) for n in (8, 6, 4, 4, 4, 4))
    decisions = play(ScaleDownWindow(Scripted(script), window_s=60), placed(2, parse=8), intervals=6)
    assert replicas(decisions, "parse") == [8, 8, 8, 6, 4, 4]
    assert why_nots(decisions[3]) == [
        "scale-down-window: not parse 6 -> 4 replicas, because 6 replicas were planned 40 s ago and the window is 60 s"
    ]


def test_what_had_been_requested_before_the_first_decision_counts() -> None:
    decisions = play(ScaleDownWindow(Scripted((placed(2),)), window_s=30), placed(2, parse=5), intervals=3)
    assert replicas(decisions, "parse") == [5, 5, 1]


def test_hosts_are_held_with_what_is_on_them() -> None:
    large, small = placed(3, parse=3), placed(2, parse=3)
    decisions = play(ScaleDownWindow(Scripted((large, small)), window_s=60), large, intervals=4)
    assert [len(d.planned.hosts) for d in decisions] == [3, 3, 3, 2]
    assert decisions[1].planned.replicas_on("host-2") > 0
    assert why_nots(decisions[1]) == [
        "scale-down-window: not release host-2, because 3 hosts were planned 20 s ago and the window is 60 s"
    ]


def test_a_host_stays_for_the_replicas_that_are_held_on_it() -> None:
    decisions = play(ScaleDownWindow(Scripted((placed(1),))), placed(2, parse=2), intervals=1)
    assert decisions[0].planned.hosts == ("host-0", "host-1")
    assert any(said.startswith("scale-down-window: not release host-1") for said in why_nots(decisions[0]))


def test_scaling_up_is_not_held() -> None:
    decisions = play(ScaleDownWindow(Scripted((placed(4, parse=9),))), placed(1), intervals=1)
    assert decisions[0].planned == placed(4, parse=9)
    assert decisions[0].why_not == ()


def test_a_plan_never_grows_because_more_was_planned_and_vetoed_earlier() -> None:
    script = (placed(1, parse=9), placed(1, parse=2))
    decisions = play(Bounded(ScaleDownWindow(Scripted(script)), max_replicas=4), placed(1, parse=3), intervals=2)
    assert replicas(decisions, "parse") == [4, 4]
    assert "9 replicas were planned 20 s ago" in why_nots(decisions[1])[0]


def test_scaling_up_by_less_than_was_planned_and_vetoed_earlier_is_not_held() -> None:
    script = (placed(1, parse=9), placed(1, parse=5))
    decisions = play(Bounded(ScaleDownWindow(Scripted(script)), max_replicas=4), placed(1, parse=3), intervals=2)
    assert [s.split(":")[0] for s in why_nots(decisions[1])] == ["bounds"]


def test_a_negative_window_is_refused() -> None:
    with pytest.raises(InvalidValue, match="window_s must be 0 or more, not -1"):
        ScaleDownWindow(Scripted((placed(1),)), window_s=-1)
