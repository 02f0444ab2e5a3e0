"""One case of many, wherever it is run: one that raises spoils nothing but itself."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

Case = TypeVar("Case")
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure(Generic[Case]):
    """A case that did not come to its end."""

    case: Case
    error: str
    traceback: str

    def __str__(self) -> str:
        return f"{self.case} failed: {self.error}"


def attempted(run: Callable[[Case], Found], case: Case) -> Found | Failure[Case]:
    """What the case came to, or what was raised; an interrupt is not caught.

    >>> attempted(lambda rows: 100 // rows, 4)
    25
    >>> print(attempted(lambda rows: 100 // rows, 0))
    0 failed: ZeroDivisionError: integer division or modulo by zero
    """
    try:
        return run(case)
    except Exception as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())  # on one line, whatever the message
        return Failure(case=case, error=what, traceback=traceback.format_exc())
