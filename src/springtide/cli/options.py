"""Options of several commands, and the small languages in them: `key=value`, `guard:key=value,key=value`, and `7d`."""

from __future__ import annotations

import math
from pathlib import Path

from springtide.errors import SpringtideError, nearest
from springtide.forecast.running.choosing import Models
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


def parameters_for(policy: str, policies: list[str], texts: list[str]) -> dict[str, str]:
    """What `--set` says of a policy: `NAME=VALUE` is for every policy, `POLICY.NAME=VALUE` for that one.

    >>> parameters_for("static", ["static", "local-thresholds"], ["static.hosts=3", "local-thresholds.upper=0.9"])
    {'hosts': '3'}
    """
    found = {}
    for name, value in parse_assignments(texts, "--set").items():
        owner, dot, own_name = name.rpartition(".")
        if dot and owner not in policies:
            raise SpringtideError(f"--set {name}={value}: {owner!r} is not among the policies; {nearest(owner, policies)}")
        if not dot or owner == policy:
            found[own_name] = value
    return found


def parse_duration_s(text: str, option: str) -> float:
    """
    >>> parse_duration_s("7d", "--longest"), parse_duration_s("1.5h", "--longest"), parse_duration_s("90", "--longest")
    (604800.0, 5400.0, 90.0)
    """
    number, unit_s = (text[:-1], _UNITS_S[text[-1]]) if text[-1:] in _UNITS_S else (text, 1.0)
    try:
        seconds = float(number) * unit_s
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds > 0):
        raise SpringtideError(f"{option} {text!r}: write a time above 0, such as 7d, 12h, 30m or 90s")
    return seconds


_UNITS_S = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0}


def chosen_models(folder: Path | None, retrain: str | None) -> Models | None:
    """What `--models` and `--retrain` ask for; models that cannot be used are refused, unless they are yet to be trained."""
    if folder is None:
        if retrain is not None:
            raise SpringtideError("--retrain trains models into the folder of --models: name one")
        return None
    if retrain is not None:
        return Models(folder=folder, retrain_s=parse_duration_s(retrain, "--retrain"))
    from springtide.forecast.trained import open_trained  # half a second that other runs need not wait

    open_trained(folder)
    return Models(folder=folder)


def guarded(policy: AnyPolicy, guards: list[str]) -> AnyPolicy:
    """The policy with guards around it; the first one named is innermost."""
    for text in guards:
        name, _, parameters = text.partition(":")
        policy = make_guard(name, parse_assignments([p for p in parameters.split(",") if p], f"--guard {name}:"), policy)
    return policy
