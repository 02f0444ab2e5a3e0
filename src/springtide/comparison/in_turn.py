"""All cases one after the other, in this process: no Spark, no other process."""

from __future__ import annotations

from collections.abc import Callable

from springtide.comparison.sweep import Outcome, Sweep, attempt


def run_in_turn(sweep: Sweep, note: Callable[[str], None]) -> list[Outcome]:
    """Run all cases; `note` is told of each that is done."""
    outcomes = []
    for case in sweep.cases:
        outcomes.append(attempt(sweep, case))
        note(str(case))
    return outcomes
