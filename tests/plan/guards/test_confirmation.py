import pytest
from guard_stories import Scripted, placed, play, replicas, why_nots

from springtide.errors import InvalidValue
from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.plan.guards.confirmation import Confirmed, Direction, direction_of

SMALL, LARGE = placed(2, parse=2), placed(2, parse=4)


def test_more_is_granted_once_it_was_wanted_long_enough() -> None:
    decisions = play(Confirmed(Scripted((LARGE,)), up=3), SMALL, intervals=3)
    assert replicas(decisions, "parse") == [2, 2, 4]
    assert why_nots(decisions[1]) == [
        "confirmation: not parse 2 -> 4 replicas, "
        "because it takes 3 intervals in a row that want more resources, and this is number 2"
    ]
    assert decisions[2].why_not == ()


def test_an_interval_that_wants_something_else_starts_the_count_again() -> None:
    decisions = play(Confirmed(Scripted((LARGE, SMALL, LARGE, LARGE)), up=2), SMALL, intervals=4)
    assert replicas(decisions, "parse") == [2, 2, 2, 4]


def test_less_takes_its_own_number_of_intervals() -> None:
    decisions = play(Confirmed(Scripted((SMALL,)), up=1, down=4), LARGE, intervals=4)
    assert replicas(decisions, "parse") == [4, 4, 4, 2]


def test_a_ramp_is_held_up_once() -> None:
    ramp = tuple(placed(2, parse=n) for n in (3, 4, 5, 6))
    decisions = play(Confirmed(Scripted(ramp), up=2), SMALL, intervals=4)
    assert replicas(decisions, "parse") == [2, 4, 5, 6]


def test_a_move_is_confirmed_as_often_as_more_is() -> None:
    moved = SMALL.with_operator("parse", OperatorAllocation(("host-1", "host-0")))
    decisions = play(Confirmed(Scripted((moved,)), up=2, down=9), SMALL, intervals=2)
    assert [d.planned == moved for d in decisions] == [False, True]


@pytest.mark.parametrize(
    ("wanted", "direction"),
    [
        (SMALL, Direction.NONE),
        (LARGE, Direction.MORE),
        (placed(1, parse=9), Direction.LESS),
        (placed(3), Direction.MORE),
        (placed(2, count=2), Direction.MOVE),
    ],
)
def test_hosts_tell_the_direction_before_replicas_do(wanted: Allocation, direction: Direction) -> None:
    assert direction_of(SMALL, wanted) is direction


@pytest.mark.parametrize("counts", [{"up": 0}, {"down": -1}])
def test_a_count_below_one_is_refused(counts: dict[str, int]) -> None:
    with pytest.raises(InvalidValue, match=r"confirmation: (up|down) must be at least 1"):
        Confirmed(Scripted((SMALL,)), **counts)
