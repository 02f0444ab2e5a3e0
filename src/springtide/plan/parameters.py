"""A policy's or guard's parameters from whatever a person wrote: text of a command line, numbers of a file.

Parameters are dataclass fields of the types int, float, bool, str or an enumeration, or one of these or None. Every mistake
is one line that names the policy, the parameter and the value; what range a value must lie in, the class itself says.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from enum import Enum
from types import NoneType
from typing import Any, get_args, get_type_hints

from springtide.errors import InvalidValue, SpringtideError, nearest
from springtide.model.protocols import AnyPolicy

_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_EXPECTED = {int: "a whole number", float: "a number", bool: "true or false", str: "text", NoneType: "none"}


def parameter_types(owner: type[Any]) -> dict[str, type[Any]]:
    """The parameters of a policy or guard, which are its fields but for the policy inside a guard, with their types."""
    hints = get_type_hints(owner)
    return {field.name: hints[field.name] for field in dataclasses.fields(owner) if field.name != "policy"}


def converted(owner: type[Any], who: str, parameters: Mapping[str, object]) -> dict[str, Any]:
    """The parameters with the types their fields have; `who` is the policy or guard in an error's words."""
    known = parameter_types(owner)
    for name in parameters:
        if name not in known:
            raise SpringtideError(f"{who} has no parameter {name!r}; {nearest(name, known)}")
    return {name: _convert(value, known[name], f"{who}: {name}") for name, value in parameters.items()}


def parameters_of(policy: AnyPolicy) -> dict[str, object]:
    """A policy's parameters by name, and those of the guards around it as `guard.name`."""
    own: dict[str, object] = {name: getattr(policy, name) for name in parameter_types(type(policy))}
    inside: AnyPolicy | None = getattr(policy, "policy", None)
    if inside is None:
        return own
    guard: str = type(policy).name  # type: ignore[attr-defined]
    return parameters_of(inside) | ({f"{guard}.{name}": value for name, value in own.items()} or {guard: True})


def wants(policy: AnyPolicy, what: str) -> bool:
    """Whether a policy, or the one inside its guards, says that it wants to know of the future (`looks_ahead`, `foresees`)."""
    inside: AnyPolicy | None = getattr(policy, "policy", None)
    return bool(getattr(type(policy), what, False)) or (inside is not None and wants(inside, what))


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
