"""What went wrong, in one line a person can act on.

Everything a user can cause is a `SpringtideError`; the command line prints its message and exits with code 2.
Any other exception is a defect in Springtide and is shown as one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SpringtideError(Exception):
    """A mistake in what was asked for: the message says what, where, and what to do."""


class InvalidValue(SpringtideError, ValueError):
    """A value that cannot exist in the model, refused when it is built."""


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint naming the known word closest to `word`, or all of them when none is close.

    >>> nearest("shufle", ["shuffle", "key"])
    "did you mean 'shuffle'?"
    """
    choices = sorted(known)
    close = difflib.get_close_matches(word, choices, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(choices)}" if choices else "nothing is known here"


def require(condition: bool, message: str) -> None:
    """Refuse to build a value: raise `InvalidValue(message)` unless `condition` holds."""
    if not condition:
        raise InvalidValue(message)
