"""A case that raises spoils nothing but itself, and says what happened."""

from __future__ import annotations

import pytest

from springtide.sweeping.attempting import Failure, attempted
from springtide.sweeping.in_turn import run_in_turn


def halved(number: int) -> int:
    if number % 2:
        raise ValueError(f"{number} is odd,\nso it has no half")
    return number // 2


def test_what_comes_to_its_end_is_what_was_found() -> None:
    assert attempted(halved, 8) == 4


def test_what_raises_is_a_failure_that_names_its_case_on_one_line() -> None:
    failure = attempted(halved, 7)
    assert isinstance(failure, Failure)
    assert failure.case == 7
    assert str(failure) == "7 failed: ValueError: 7 is odd, so it has no half"
    assert "in halved" in failure.traceback


def test_an_interrupt_ends_everything() -> None:
    def interrupted(_: int) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempted(interrupted, 1)


def test_the_others_are_run_all_the_same() -> None:
    outcomes = run_in_turn([2, 3, 4], lambda case: attempted(halved, case), lambda _: None)
    assert [outcome if isinstance(outcome, int) else outcome.case for outcome in outcomes] == [1, 3, 2]
