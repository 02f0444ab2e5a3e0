"""Options of several commands, and the small languages in them: `key=value` and `guard:key=value,key=value`."""

from __future__ import annotations

from springtide.errors import SpringtideError
from springtide.model.protocols import AnyPolicy
from springtide.plan.registry import make_guard


def parse_assignments(texts: list[str], option: str) -> dict[str, str]:
    """
    >>> parse_assignments(["upper=0.9", "grace_s=60"], "--set")
    {'upper': '0.9', 'grace_s': '60'}
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise SpringtideError(f"{option} {text!r}: write it as NAME=VALUE, for example {option} upper=0.9")
        if name in found:
            raise SpringtideError(f"{option} {text!r}: {name} is given twice")
        found[name] = value
    return found


def guarded(policy: AnyPolicy, guards: list[str]) -> AnyPolicy:
    """The policy with guards around it; the first one named is innermost."""
    for text in guards:
        name, _, parameters = text.partition(":")
        policy = make_guard(name, parse_assignments([p for p in parameters.split(",") if p], f"--guard {name}:"), policy)
    return policy
