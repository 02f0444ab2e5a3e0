"""Is an answer the right one? Row by row, nothing rounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

from springtide.applications.shipped import Checked

_SHOWN = 200  # characters of a row


def compared(
    what: str, right: Iterable[tuple[Any, ...]], found: Iterable[tuple[Any, ...]], *, in_order: bool = False
) -> Checked:
    """What was found beside what is right, each row as often as it is there; their order counts if it is said to.

    >>> compared("pages", [("a", 2), ("b", 1)], [("b", 1), ("a", 3)]).first_wrong
    "('a', 2) is missing"
    """
    wanted = [tuple(row) for row in right]
    wrong = _out_of_place(wanted, found) if in_order else _differing(wanted, found)
    return Checked(what=what, rows=len(wanted), wrong=len(wrong), first_wrong=wrong[0] if wrong else "")


def _differing(wanted: list[tuple[Any, ...]], found: Iterable[tuple[Any, ...]]) -> list[str]:
    left = Counter(wanted)
    left.subtract(Counter(tuple(row) for row in found))
    missing = [f"{_shown(row)} is missing" for row, times in left.items() for _ in range(times)]
    return missing + [f"{_shown(row)} is too many" for row, times in left.items() for _ in range(-times)]


def _out_of_place(wanted: list[tuple[Any, ...]], found: Iterable[tuple[Any, ...]]) -> list[str]:
    pairs = enumerate(zip_longest(wanted, (tuple(row) for row in found)), start=1)
    return [f"number {n} is {_shown(there)} instead of {_shown(row)}" for n, (row, there) in pairs if row != there]


def _shown(row: tuple[Any, ...] | None) -> str:
    return "nothing" if row is None else str(row)[:_SHOWN]
