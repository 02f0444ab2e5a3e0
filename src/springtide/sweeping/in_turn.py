"""All cases one after the other, in this process: no Spark, no other process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Case = TypeVar("Case")
Outcome = TypeVar("Outcome")


def run_in_turn(cases: Sequence[Case], attempt: Callable[[Case], Outcome], note: Callable[[str], None]) -> list[Outcome]:
    """The outcome of every case, in their order; `note` is told of each that is done."""
    outcomes = []
    for case in cases:
        outcomes.append(attempt(case))
        note(str(case))
    return outcomes
