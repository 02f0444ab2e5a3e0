"""The parameters of policies and guards: their fields, but for the policy inside a guard."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, get_type_hints

from springtide.model.protocols import AnyPolicy
from springtide.values import converted


def parameter_types(owner: type[Any]) -> dict[str, type[Any]]:
    """The parameters of a policy or guard, which are its fields but for the policy inside a guard, with their types."""
    hints = get_type_hints(owner)
    return {field.name: hints[field.name] for field in dataclasses.fields(owner) if field.name != "policy"}


def with_parameters(owner: type[Any], who: str, parameters: Mapping[str, object]) -> dict[str, Any]:
    """The parameters with the types their fields have; `who` is the policy or guard in an error's words."""
    return converted(parameter_types(owner), parameters, who, "parameter")


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
