"""Values from whatever a person wrote: text of a command line, numbers of a file.

They are dataclass fields of the types int, float, bool, str or an enumeration, or one of these or None. Every mistake is one
line that names who, what and the value; what range a value must lie in, the class itself says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import Enum
from types import NoneType
from typing import Any, get_args

from springtide.errors import InvalidValue, SpringtideError, nearest

_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_EXPECTED = {int: "a whole number", float: "a number", bool: "true or false", str: "text", NoneType: "none"}


def converted(known: Mapping[str, type[Any]], given: Mapping[str, object], who: str, what: str) -> dict[str, Any]:
    """What is given, with the types that are known; in an error's words it is `who` that has such a `what`."""
    for name in given:
        if name not in known:
            raise SpringtideError(f"{who} has no {what} {name!r}; {nearest(name, known)}")
    return {name: _convert(value, known[name], f"{who}: {name}") for name, value in given.items()}


def _convert(value: object, wanted: type[Any], where: str) -> object:
    choices = get_args(wanted) or (wanted,)
    for choice in choices:
        try:
            return _as(value, choice)
        except ValueError:
            continue
    raise InvalidValue(f"{where} must be {' or '.join(_expected(c) for c in choices)}, not {value!r}")


def _as(value: object, wanted: type[Any]) -> object:
    """The value as that type, or a ValueError: nothing is rounded, and true is not a number."""
    text = str(value).strip()
    if wanted in _READ:
        if isinstance(value, bool) and wanted in (int, float):
            raise ValueError(text)
        return _READ[wanted](text)
    return wanted(text)


def _read_int(text: str) -> int:
    number = float(text)
    if not number.is_integer():
        raise ValueError(text)
    return int(number)


def _read_float(text: str) -> float:
    number = float(text)
    if math.isnan(number):
        raise ValueError(text)
    return number


def _read_bool(text: str) -> bool:
    if text.lower() not in _TRUTHS:
        raise ValueError(text)
    return _TRUTHS[text.lower()]


def _read_none(text: str) -> None:
    if text.lower() != "none":
        raise ValueError(text)


_READ: dict[type[Any], Callable[[str], object]] = {
    int: _read_int,
    float: _read_float,
    bool: _read_bool,
    str: str,
    NoneType: _read_none,
}


def _expected(wanted: type[Any]) -> str:
    if issubclass(wanted, Enum):
        return "one of " + ", ".join(str(member.value) for member in wanted)
    return _EXPECTED[wanted]
